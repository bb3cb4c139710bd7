#!/usr/bin/env python3
"""A Bloom filter over a plain bitmap: SETBIT and GETBIT, and mmh3 with k seeds.

A much-published recipe, for any Redis, with or without BF.*. The number of bits m and of hashes k come
from the capacity and the error rate. Bit i of an item is murmur3 with the seed i, modulo m.

    pip install redis mmh3
    python3 bitmap_mmh3.py --port 6379

Exits with 1 when an item is missed, or when the error rate is far from what was asked for.
"""

import argparse
import math
import sys

import mmh3
import redis

KEY = "example:bitmap-mmh3"


class BitmapFilter:
    def __init__(self, server, key, capacity, error_rate):
        self.server = server
        self.key = key
        self.bits = math.ceil(-capacity * math.log(error_rate) / math.log(2) ** 2)
        # As the recipe rounds it. With another number the bits of its programs are misread.
        self.hashes = round(self.bits / capacity * math.log(2))

    def places(self, item):
        # mmh3.hash may be negative. The % of Python is not; that of C, Java and Go would be.
        return [mmh3.hash(item, seed) % self.bits for seed in range(self.hashes)]

    def add(self, item):
        for place in self.places(item):
            self.server.setbit(self.key, place, 1)

    def contains(self, item):
        return all(self.server.getbit(self.key, place) for place in self.places(item))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--count", type=int, default=2000, help="items to add, and to probe")
    parser.add_argument("--error-rate", type=float, default=0.01)
    return parser.parse_args()


def main():
    args = arguments()
    server = redis.Redis(host=args.host, port=args.port)
    server.delete(KEY)
    seen = BitmapFilter(server, KEY, args.count, args.error_rate)
    added = [f"https://example.org/page/{n}" for n in range(args.count)]
    others = [f"https://example.org/other/{n}" for n in range(args.count)]
    for item in added:
        seen.add(item)
    missed = sum(not seen.contains(item) for item in added)
    wrong = sum(seen.contains(item) for item in others)
    ones = server.bitcount(KEY)
    server.delete(KEY)

    rate = wrong / args.count
    print(f"{seen.bits} bits, {seen.hashes} hashes, {ones} bits are 1")
    print(f"{args.count} items added, {missed} missed, {wrong} of {args.count} others wrong")
    print(f"error rate: {rate:.4f}, asked for: {args.error_rate:.4f}")
    allowance = 4 * math.sqrt(args.error_rate / args.count)
    return 1 if missed or rate > args.error_rate + allowance else 0


if __name__ == "__main__":
    sys.exit(main())
