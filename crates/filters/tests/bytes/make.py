"""Makes the files 3-*.bin and 4-*.bin from the text of docs/formats.md, without this library.

    python3 make.py

The filters get the items of ITEMS. What their layers are made for is given: docs/formats.md does
not say how layers are sized.
"""

import math
import struct
from pathlib import Path

M64 = 2**64 - 1
ITEMS = [b"foo", b"bar", b"baz", b"an item of more than sixteen bytes", b""]


def murmur64a(data, seed):
    m = 0xC6A4A7935BD1E995
    h = seed ^ len(data) * m & M64
    for at in range(0, len(data) - len(data) % 8, 8):
        k = int.from_bytes(data[at : at + 8], "little") * m & M64
        k = (k ^ k >> 47) * m & M64
        h = (h ^ k) * m & M64
    rest = data[len(data) - len(data) % 8 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & M64
    h = (h ^ h >> 47) * m & M64
    return h ^ h >> 47


def split_mix(state):
    while True:
        state = state + 0x9E3779B97F4A7C15 & M64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
        yield z ^ z >> 31


def halves(number):
    return number & M64, number >> 64


def fold(x, y):
    low, high = halves(x * y)
    return low ^ high


PI = """
243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89
452821e638d01377 be5466cf34e90c6c c0ac29b7c97c50dd 3f84d5b5b5470917
9216d5d98979fb1b d1310ba698dfb5ac 2ffd72dbd01adfb7 b8e1afed6a267e96
ba7c9045f12c7f99 24a19947b3916cf7 0801f2e2858efc16 636920d871574e69
"""


def keyed_hash(key, item):
    """Items of up to 64 bytes."""
    p = [int(number, 16) for number in PI.split()]
    s = [fold(key[0] ^ p[2 * i], key[1] ^ p[2 * i + 1]) for i in range(8)]
    length = len(item)

    def number(data):
        return int.from_bytes(data, "little")

    def pair(data, i):
        return (number(data[:8]) ^ s[2 * i]) * (number(data[8:]) ^ s[2 * i + 1])

    if length <= 16:
        if length == 0:
            x, y = 0, 0
        elif length <= 3:
            x, y = item[0] + (item[length // 2] << 8) + (item[-1] << 16), 0
        elif length <= 7:
            x, y = number(item[:4]), number(item[-4:])
        else:
            x, y = number(item[:8]), number(item[-8:])
        p = (x ^ s[0]) * (y ^ s[1])
    else:
        assert length <= 64
        p = pair(item[:16], 0) + pair(item[-16:], 1)
        if length >= 32:
            p += pair(item[16:32], 2) + pair(item[-32:-16], 3)
    low, high = halves(p % 2**128)
    low, high = halves((low ^ length ^ s[2]) * (high ^ s[3]))
    return low ^ high, low ^ (high << 32 & M64 | high >> 32)


def classic_positions(item, layer):
    a = murmur64a(item, 0xC6A4A7935BD1E995)
    b = murmur64a(item, a)
    return [(a + i * b & M64) % (layer["bytes"] * 8) for i in range(layer["hashes"])]


def blocked_positions(key, item, layer):
    a, b = keyed_hash(key, item)
    block = a * (layer["bytes"] // 64) >> 64
    multipliers = split_mix(0)
    positions = []
    for i in range(layer["hashes"]):
        half = b & 0xFFFFFFFF if i % 2 == 0 else b >> 32
        product = half * (next(multipliers) >> 32 | 1) & 0xFFFFFFFF
        positions.append(block * 512 + (product >> 23))
    return positions


def insert(layers, positions_of):
    for layer in layers:
        layer["bits"], layer["items"] = bytearray(layer["bytes"]), 0
    newest = 0
    for item in ITEMS:
        def found(layer):
            bits = layer["bits"]
            return all(bits[p // 8] >> p % 8 & 1 for p in positions_of(item, layer))

        if any(found(layer) for layer in layers[: newest + 1]):
            continue
        if layers[newest]["items"] == layers[newest]["capacity"]:
            newest += 1
        layer = layers[newest]
        for p in positions_of(item, layer):
            layer["bits"][p // 8] |= 1 << p % 8
        layer["items"] += 1
    assert newest == len(layers) - 1


def layer(capacity, error_rate, size, hashes, bits_per_entry=0.0):
    return {
        "capacity": capacity,
        "error_rate": error_rate,
        "bytes": size,
        "hashes": hashes,
        "bits_per_entry": bits_per_entry,
    }


def write(name, kind, options, expansion, seed, layers, window=None):
    if window:
        numbers = split_mix(seed)
        layout, key = 1, (next(numbers), next(numbers))
        # An item enters each generation that has a layer.
        for each in layers:
            insert([each], lambda item, layer: blocked_positions(key, item, layer))
    elif seed is None:
        layout, key = 0, (0, 0)
        insert(layers, classic_positions)
    else:
        numbers = split_mix(seed)
        layout, key = 1, (next(numbers), next(numbers))
        insert(layers, lambda item, layer: blocked_positions(key, item, layer))
    items = sum(layer["items"] for layer in layers)
    padded = [bytes(layer["bits"]) + bytes(-layer["bytes"] % 64) for layer in layers]
    blocks = window_blocks(window) if window else []
    length = 64 + 64 * (len(blocks) + len(layers)) + sum(map(len, padded))
    out = b"EVRBLOOM" + struct.pack(
        "<HBBIIIQQQQ", 3, kind, layout, options, expansion, len(layers), items, *key, length
    )
    checksum = murmur64a(out, 0)
    out += struct.pack("<Q", checksum)
    for block in blocks:
        checksum = murmur64a(block, checksum)
        out += block + struct.pack("<Q", checksum)
    for layer in layers:
        entry = struct.pack(
            "<QQQddIBxxxQ",
            layer["bytes"],
            layer["items"],
            layer["capacity"],
            layer["error_rate"],
            layer["bits_per_entry"],
            layer["hashes"],
            0,
            murmur64a(bytes(layer["bits"]), 0),
        )
        checksum = murmur64a(entry, checksum)
        out += entry + struct.pack("<Q", checksum)
    out += b"".join(padded)
    assert len(out) == length
    Path(__file__).with_name(name).write_bytes(out)


def window_blocks(window):
    """The block of a window and those of its generations, without checksums."""
    kept = window["kept"]
    head = struct.pack(
        "<QQdIIQ16x",
        window["ticks"],
        window["capacity"],
        window["error_rate"],
        window["generations"],
        len(kept),
        window["dropped"],
    )
    fours = [kept[at : at + 4] for at in range(0, len(kept), 4)]
    packed = [b"".join(struct.pack("<QI", *generation) for generation in four) for four in fours]
    return [head] + [four.ljust(56, b"\0") for four in packed]


# Forty seconds in four generations. It began at 1000 ms, the next generation at 11 000 ms. Then
# nothing came until 51 000 ms: three generations have no layer, and the first one was dropped.
WINDOW = {
    "ticks": 40_000,
    "generations": 4,
    "capacity": 80,
    "error_rate": 0.05,
    "dropped": 64,
    "kept": [(11_000, 1), (51_000, 0), (51_000, 0), (51_000, 0), (51_000, 1)],
}


def window_layers():
    return [layer(20, 0.05 / 5 * 0.75, 64, 7) for _ in range(2)]


def classic(capacity, error_rate):
    """RedisBloom's sizes, which are whole words of 64 bits."""
    bits_per_entry = -math.log(error_rate) / 0.480453013918201
    hashes = math.ceil(0.693147180559945 * bits_per_entry)
    size = (math.floor(capacity * bits_per_entry) + 63) // 64 * 8
    return layer(capacity, error_rate, size, hashes, bits_per_entry)


def write_noted(name, text, is_critical, filter_name):
    """A note in front of the filter of another file."""
    text = text.encode()
    out = b"EVRBLOOM" + struct.pack("<HBBH", 4, 0, is_critical, len(text)) + text
    out += bytes(-(len(out) + 8) % 64)
    out += struct.pack("<Q", murmur64a(out, 0))
    folder = Path(__file__).parent
    (folder / name).write_bytes(out + (folder / filter_name).read_bytes())


def mix(z):
    return next(split_mix(z - 0x9E3779B97F4A7C15 & M64))


def cuckoo_place(key, item, table):
    """The fingerprint of an item, and its two buckets."""
    a, b = keyed_hash(key, item)
    first_width, buckets, more, shift = (table[it] for it in ("first", "buckets", "more", "shift"))
    fingerprint = (b * (2**first_width - 1) << more >> 64) + 2**more
    bucket = a * buckets >> 64
    sum = mix((fingerprint >> more) + 0x9E3779B97F4A7C15) * buckets >> 64
    upper = ((sum >> shift | 1) - (bucket >> shift)) % (buckets >> shift)
    return fingerprint, [bucket, upper << shift | (sum ^ bucket) % 2**shift]


def cuckoo_arrays(key, width, step, buckets, expansion, tables):
    """The packed slots of tables. `tables` has the items of each, so few that each finds an empty slot."""
    arrays = []
    for number, items in enumerate(tables):
        more = step + number if number else 0
        size = buckets * expansion**number
        shift = (expansion**number).bit_length() - 1
        table = {"first": width, "buckets": size, "more": more, "shift": shift}
        slots = [0] * (size * 4)
        for item in items:
            fingerprint, homes = cuckoo_place(key, item, table)
            at = [4 * home + slot for home in homes for slot in range(4)]
            slots[next(slot for slot in at if slots[slot] == 0)] = fingerprint
        bits = sum(slot << at * (width + more) for at, slot in enumerate(slots))
        arrays.append(bits.to_bytes(size * 4 * (width + more) // 8, "little"))
    return arrays


def write_cuckoo(name, seed, error_rate, width, step, buckets, expansion, tables):
    numbers = split_mix(seed)
    key = (next(numbers), next(numbers))
    arrays = cuckoo_arrays(key, width, step, buckets, expansion, tables)
    padded = [array + bytes(-len(array) % 64) for array in arrays]
    length = 64 * (2 + len(arrays)) + sum(map(len, padded))
    count = sum(map(len, tables))
    head = b"EVRBLOOM" + struct.pack(
        "<HBBHHH6xQQQQ", 3, 4, 4, 500, expansion, len(arrays), count, 0, buckets, length
    )
    records = [head, struct.pack("<QQdBB30x", *key, error_rate, width, step)]
    records += [struct.pack("<Q48x", murmur64a(array, 0)) for array in arrays]
    out, checksum = b"", 0
    for record in records:
        checksum = murmur64a(record, checksum)
        out += record + struct.pack("<Q", checksum)
    out += b"".join(padded)
    assert len(out) == length
    Path(__file__).with_name(name).write_bytes(out)


def main():
    write_cuckoo("3-cuckoo.bin", 7, 0.01, 10, 2, 4, 2, [ITEMS])
    write_cuckoo("3-cuckoo-grown.bin", 7, 0.001, 13, 4, 4, 4, [ITEMS[:3], ITEMS, ITEMS[1:]])
    write("3-fixed-classic.bin", 1, 13, 0, None, [classic(5, 0.01)])
    write("3-scalable-classic.bin", 2, 5, 2, None, [classic(3, 0.005), classic(6, 0.0025)])
    write("3-fixed-blocked.bin", 1, 13, 0, 42, [layer(100, 0.01, 128, 6)])
    # As older versions grew it. Now the second layer would have twice the capacity of the first.
    layers = [layer(3, 0.00125, 64, 8), layer(54, 0.00109375, 128, 8)]
    write("3-scalable-blocked.bin", 2, 5, 2, 42, layers)
    write("3-windowed.bin", 2, 5 + 16, 2, 1, window_layers(), WINDOW)
    text = "a note of more than the forty-two bytes that fit into one record: é"
    write_noted("4-noted.bin", text, False, "3-fixed-classic.bin")


if __name__ == "__main__":
    main()
