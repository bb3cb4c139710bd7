#!/usr/bin/env python3
"""A Bloom filter over a plain bitmap: three shifted hash codes of Java, in one pipeline an item.

The Java recipe, in Python with the same bits: bit i of an item is (hashCode() >>> i) % 10 000 000 for
i = 1, 2, 3, under the key "bf-" + name. So a Java program and this one share a filter.

    pip install redis
    python3 bitmap_pipeline.py --port 6379

Exits with 1 when an item is missed. It prints the error rate of three independent hashes beside the
measured one. Shifted hash codes are not independent: they are one hash of 32 bits.
"""

import argparse
import sys

import redis

NAME = "example:bitmap-pipeline"
BITS = 10_000_000
SHIFTS = (1, 2, 3)


def hash_code(text):
    """What String.hashCode() returns in Java, as 32 bits without a sign."""
    code = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2]):
        code = (31 * code + (high << 8 | low)) & 0xFFFF_FFFF
    return code


class BitmapFilter:
    def __init__(self, server, name):
        self.server = server
        self.key = "bf-" + name

    def places(self, item):
        code = hash_code(item)
        return [(code >> shift) % BITS for shift in SHIFTS]

    def add(self, item):
        """Adds an item, and tells whether it is new."""
        pipe = self.server.pipeline(transaction=False)
        for place in self.places(item):
            pipe.setbit(self.key, place, 1)
        return not all(pipe.execute())

    def contains(self, item):
        pipe = self.server.pipeline(transaction=False)
        for place in self.places(item):
            pipe.getbit(self.key, place)
        return all(pipe.execute())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--count", type=int, default=20_000, help="items to add, and to probe")
    return parser.parse_args()


def main():
    args = arguments()
    server = redis.Redis(host=args.host, port=args.port)
    seen = BitmapFilter(server, NAME)
    server.delete(seen.key)
    added = [f"user{n}@example.org" for n in range(args.count)]
    others = [f"guest{n}@example.com" for n in range(args.count)]
    new = sum(seen.add(item) for item in added)
    missed = sum(not seen.contains(item) for item in added)
    wrong = sum(seen.contains(item) for item in others)
    ones = server.bitcount(seen.key)
    server.delete(seen.key)

    print(f"{BITS} bits, {len(SHIFTS)} hashes, {ones} bits are 1")
    print(f"{args.count} items added, {new} of them new, {missed} missed")
    print(f"{wrong} of {args.count} others wrong")
    expected = (ones / BITS) ** len(SHIFTS)
    print(f"error rate: {wrong / args.count:.1e}, of independent hashes: {expected:.1e}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
