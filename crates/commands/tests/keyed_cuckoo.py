"""Makes keyed-cuckoo.hex from the text of docs/formats.md, without this library: of two cuckoo filters
with a chosen error rate the header, and what DUMP gives of it.

    python3 keyed_cuckoo.py

How tables are sized is given: docs/formats.md does not say it.
"""

import struct

from window import HERE, crc64, double, length, make, string, unsigned

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def type_id(name, version):
    number = 0
    for letter in name:
        number = number << 6 | ALPHABET.index(letter)
    return number << 10 | version


def filter_of(seed, error_rate, width, step, buckets, expansion, tables):
    numbers = make.split_mix(seed)
    key = next(numbers), next(numbers)
    items, count, slots, kicks, deleted = sum(map(len, tables)), len(tables), 4, 500, 0
    arrays = make.cuckoo_arrays(key, width, step, buckets, expansion, tables)

    header = b"everbloom\r\n\x1a" + struct.pack("<HH", 1, 3)
    header += struct.pack("<QQQQHHH", items, buckets, deleted, count, slots, kicks, expansion)
    header += struct.pack("<QQdBB", *key, error_rate, width, step)

    out = b"\x07\x81" + struct.pack(">Q", type_id("everblmCF", 1))
    out += unsigned(count, buckets, items, deleted, slots, kicks, expansion)
    out += string(struct.pack("<QQ", *key)) + double(error_rate) + unsigned(width, step)
    for number, array in enumerate(arrays):
        out += unsigned(buckets * expansion**number) + string(array)
    out += b"\x00" + struct.pack("<H", 9)
    return [header, out + struct.pack("<Q", crc64(out))]


def main():
    lines = filter_of(1, 0.01, 10, 2, 8, 1, [[b"foo"]])
    items = make.ITEMS
    lines += filter_of(7, 0.001, 13, 4, 4, 4, [items[:3], items, items[1:]])
    text = "".join(f"{line.hex()}\n" for line in lines)
    (HERE / "../../files/tests/golden/keyed-cuckoo.hex").write_text(text)


if __name__ == "__main__":
    main()
