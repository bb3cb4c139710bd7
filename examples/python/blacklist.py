#!/usr/bin/env python3
"""A list of blocked addresses as a file that is mapped, not read.

One program writes the file. Others open it at once, whatever its size, and share its memory.
`everbloom build` and `everbloom check` do the same at the shell.

    pip install ./python          # from a checkout
    python3 blacklist.py

Exits with 1 when a blocked address was not found, or when too many others were.
"""

import argparse
import math
import os
import sys
import tempfile

from everbloom import BloomFilter, BloomView

ERROR_RATE = 0.0001


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200_000, help="blocked addresses")
    count = parser.parse_args().count
    blocked = [f"spam{number}@example.com" for number in range(count)]
    friends = [f"friend{number}@example.org" for number in range(count)]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "blacklist.bloom")
        writer = BloomFilter(count, ERROR_RATE)
        writer.update(blocked)
        writer.save(path)
        print(f"{count} addresses in {os.path.getsize(path) / 1024:.0f} KiB")

        blacklist = BloomView.open(path)
        print("spam7@example.com" in blacklist, "friend7@example.org" in blacklist)
        missed = blacklist.contains_many(blocked).count(False)
        wrong = blacklist.contains_many(friends).count(True)
    print(f"{missed} missed, {wrong} of {count} others found")
    limit = count * ERROR_RATE + 4 * math.sqrt(count * ERROR_RATE)
    return 1 if missed or wrong > limit else 0


if __name__ == "__main__":
    sys.exit(main())
