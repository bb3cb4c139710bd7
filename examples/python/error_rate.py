#!/usr/bin/env python3
"""How often a Bloom filter claims to know what it never saw.

Makes 100 000 random strings, adds one half and asks for the other. Two filters: the one that
BF.ADD creates by default (error rate 0.01, grown from a capacity of 100), and one made by
BF.RESERVE 0.001 50000.

    pip install redis
    python3 error_rate.py --port 6379

Exits with 1 when an added string is missed, or when a filter is wrong much more often than it may
be: the reserved one above its 0.1 %, the grown one above 1.5 % (which strings they are decides whether
a filter that grew from 100 to 50 000 exceeds its 1 % a little, as RedisBloom's does) or below 0.5 %,
because nothing can be that good in so few bits; all with four standard deviations of allowance for
chance.
"""

import argparse
import math
import secrets
import sys

import redis

KEY = "example:error-rate"
CHUNK = 1000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--count", type=int, default=100_000, help="strings: half are added")
    return parser.parse_args()


def chunks(items):
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def count_found(bf, items):
    return sum(sum(map(bool, bf.mexists(KEY, *chunk))) for chunk in chunks(items))


def measure(bf, name, added, probed, limit, least=0.0):
    """Fills the filter, prints its error rate, and tells whether that is from `least` to `limit`."""
    for chunk in chunks(added):
        bf.madd(KEY, *chunk)
    missed = len(added) - count_found(bf, added)
    wrong = count_found(bf, probed)
    rate = wrong / len(probed)
    print(f"{name}: {missed} missed, {wrong} of {len(probed)} wrong, {100 * rate:.3f} %")
    allowance = 4 * math.sqrt(limit * (1 - limit) / len(probed))
    return missed == 0 and least - allowance <= rate <= limit + allowance


def main():
    args = arguments()
    r = redis.Redis(host=args.host, port=args.port)
    bf = r.bf()
    items = [secrets.token_hex(32) for _ in range(args.count)]
    added, probed = items[: args.count // 2], items[args.count // 2 :]

    r.delete(KEY)
    grown = measure(bf, "default filter", added, probed, 0.015, least=0.005)
    r.delete(KEY)
    bf.reserve(KEY, 0.001, max(len(added), 1))
    reserved = measure(bf, f"BF.RESERVE 0.001 {len(added)}", added, probed, 0.001)
    r.delete(KEY)
    return 0 if grown and reserved else 1


if __name__ == "__main__":
    sys.exit(main())
