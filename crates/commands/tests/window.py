"""Makes window.hex from the text of docs/formats.md, without this library: the header of a filter with
a window, the bits of its layers, and what DUMP gives of it.

    python3 window.py

How layers are sized is given: docs/formats.md does not say it.
"""

import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE / "../../filters/tests/bytes"))
import make  # noqa: E402

OPTIONS, EXPANSION = 5 + 16, 2
TYPE = bytes.fromhex("7af7ab6e5a289801")


def crc64(data):
    """CRC-64 of Jones, reflected."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc


def length(number):
    """A length of an RDB file."""
    if number < 1 << 6:
        return bytes([number])
    if number < 1 << 14:
        return struct.pack(">H", 0x4000 | number)
    return b"\x80" + struct.pack(">I", number)


def unsigned(*numbers):
    return b"".join(b"\x02" + length(number) for number in numbers)


def double(number):
    return b"\x04" + struct.pack("<d", number)


def string(data):
    return b"\x05" + length(len(data)) + data


def header(window, key, layers):
    out = b"everbloom\r\n\x1a" + struct.pack(
        "<HHQIIIQQ", 1, 1, len(layers), len(layers), OPTIONS, EXPANSION, *key
    )
    kept = window["kept"]
    numbers = [window[name] for name in ["ticks", "generations", "capacity", "error_rate"]]
    out += struct.pack("<QIQdQI", *numbers, window["dropped"], len(kept))
    for began, count in kept:
        out += struct.pack("<IQ", count, began)
    for layer in layers:
        numbers = [layer["bytes"], 1, layer["capacity"], layer["error_rate"], layer["hashes"]]
        out += struct.pack("<QQQdI", *numbers)
    return out


def payload(window, key, layers):
    out = b"\x07\x81" + TYPE + unsigned(len(layers), len(layers), OPTIONS, EXPANSION)
    out += string(struct.pack("<QQ", *key))
    out += unsigned(window["ticks"], window["generations"], window["capacity"])
    out += double(window["error_rate"]) + unsigned(window["dropped"], len(window["kept"]))
    for began, count in window["kept"]:
        out += unsigned(count, began)
    for layer in layers:
        out += unsigned(layer["capacity"]) + double(layer["error_rate"])
        out += unsigned(layer["hashes"], layer["bytes"]) + string(bytes(layer["bits"]))
        out += unsigned(1)
    out += b"\x00" + struct.pack("<H", 9)
    return out + struct.pack("<Q", crc64(out))


def main():
    numbers = make.split_mix(1)
    key = next(numbers), next(numbers)
    layers = make.window_layers()
    for layer in layers:
        layer["bits"] = bytearray(layer["bytes"])
        for p in make.blocked_positions(key, b"foo", layer):
            layer["bits"][p // 8] |= 1 << p % 8
    bits = b"".join(layer["bits"] for layer in layers)
    lines = [header(make.WINDOW, key, layers), bits]
    (HERE / "window.hex").write_text("".join(f"{line.hex()}\n" for line in lines))
    dump = payload(make.WINDOW, key, layers).hex()
    (HERE / "../../files/tests/golden/window.hex").write_text(f"{dump}\n")


if __name__ == "__main__":
    main()
