"""Makes window.hex from the text of docs/formats.md, without this library: the header of a filter with
a window, and the bits of its layers.

    python3 window.py

How layers are sized is given: docs/formats.md does not say it.
"""

import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE / "../../filters/tests/bytes"))
import make  # noqa: E402

MILLISECONDS, GENERATIONS, CAPACITY, ERROR_RATE = 40_000, 4, 80, 0.05
# A generation takes 10 seconds, and the second item came 15 seconds after the first.
BEGAN = [1000, 11_000]
OPTIONS = 5 + 16
LAYER_BYTES, LAYER_HASHES = 64, 7


def main():
    numbers = make.split_mix(1)
    key = next(numbers), next(numbers)
    layers = [make.layer(20, 0.05 / 5 * 0.75, LAYER_BYTES, LAYER_HASHES) for _ in BEGAN]
    for layer in layers:
        layer["bits"] = bytearray(layer["bytes"])
        for p in make.blocked_positions(key, b"foo", layer):
            layer["bits"][p // 8] |= 1 << p % 8
    out = b"everbloom\r\n\x1a" + struct.pack(
        "<HHQIIIQQ", 1, 1, len(layers), len(layers), OPTIONS, 2, *key
    )
    out += struct.pack("<QIQdI", MILLISECONDS, GENERATIONS, CAPACITY, ERROR_RATE, len(BEGAN))
    for began in BEGAN:
        out += struct.pack("<IQ", 1, began)
    for layer in layers:
        out += struct.pack(
            "<QQQdI", layer["bytes"], 1, layer["capacity"], layer["error_rate"], layer["hashes"]
        )
    bits = b"".join(layer["bits"] for layer in layers)
    Path(HERE / "window.hex").write_text(f"{out.hex()}\n{bits.hex()}\n")


if __name__ == "__main__":
    main()
