#!/usr/bin/env python3
"""A Bloom filter never misses what was added to it.

Adds 100 000 strings and asks for each right after adding it: the answer must never be 0. Most go
through pipelines of a few hundred commands, the last ones as plain calls, one at a time.

    pip install redis
    python3 never_misses.py --port 6379

Exits with 1 when the filter missed one, which would be a fault of the server.
"""

import argparse
import secrets
import sys

import redis

KEY = "example:never-misses"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--count", type=int, default=100_000, help="strings to add")
    parser.add_argument("--plain", type=int, default=5_000, help="of these, without a pipeline")
    parser.add_argument("--chunk", type=int, default=500, help="strings in one pipeline")
    return parser.parse_args()


def misses_in_pipelines(r, items, chunk):
    missed = 0
    for start in range(0, len(items), chunk):
        pipe = r.pipeline(transaction=False)
        for item in items[start : start + chunk]:
            pipe.execute_command("BF.ADD", KEY, item)
            pipe.execute_command("BF.EXISTS", KEY, item)
        missed += sum(not found for found in pipe.execute()[1::2])
    return missed


def misses_one_by_one(r, items):
    bf = r.bf()
    missed = 0
    for item in items:
        bf.add(KEY, item)
        missed += not bf.exists(KEY, item)
    return missed


def main():
    args = arguments()
    r = redis.Redis(host=args.host, port=args.port)
    r.delete(KEY)

    items = [secrets.token_hex(32) for _ in range(args.count)]
    plain = min(args.plain, args.count)
    missed = misses_in_pipelines(r, items[: args.count - plain], args.chunk)
    missed += misses_one_by_one(r, items[args.count - plain :])
    # And once more at the end: growing must not have lost the early ones.
    bf = r.bf()
    for start in range(0, len(items), args.chunk):
        answers = bf.mexists(KEY, *items[start : start + args.chunk])
        missed += sum(not found for found in answers)
    r.delete(KEY)

    print(f"{args.count} strings added, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
