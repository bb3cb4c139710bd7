#!/usr/bin/env python3
"""One set over all nodes of a cluster: it is split into filters under many keys.

A filter is one key, so it is on one node. Here an item's CRC-32 chooses one of 64 keys, and the
cluster spreads these. A server without a cluster takes the program, too.

    pip install redis
    python3 cluster.py --port 7000 --cluster

Exits with 1 when an item was missed, or when too many others were found.
"""

import argparse
import math
import sys
import zlib
from collections import defaultdict

import redis

PARTS = 64
ERROR_RATE = 0.001


class SplitFilter:
    def __init__(self, server, name, capacity):
        self.server = server
        self.name = name
        for part in range(PARTS):
            server.delete(self.key(part))
            # The parts get about the same number of items; a tenth more is room enough.
            server.bf().reserve(self.key(part), ERROR_RATE, math.ceil(1.1 * capacity / PARTS))

    def key(self, part):
        return f"{self.name}:{part}"

    def each(self, command, items):
        """The answer of `madd` or `mexists` for each item; one request for each part."""
        places = defaultdict(list)
        for place, item in enumerate(items):
            places[zlib.crc32(item.encode()) % PARTS].append(place)
        answers = [False] * len(items)
        for part, own in places.items():
            found = command(self.key(part), *(items[place] for place in own))
            for place, answer in zip(own, found):
                answers[place] = bool(answer)
        return answers

    def add_many(self, items):
        return self.each(self.server.bf().madd, items)

    def contains_many(self, items):
        return self.each(self.server.bf().mexists, items)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--cluster", action="store_true", help="the server is a node of a cluster")
    parser.add_argument("--count", type=int, default=50_000)
    args = parser.parse_args()
    connect = redis.RedisCluster if args.cluster else redis.Redis
    server = connect(host=args.host, port=args.port)

    seen = SplitFilter(server, "example:cluster", args.count)
    items = [f"https://example.org/{number}" for number in range(args.count)]
    others = [f"https://example.com/{number}" for number in range(args.count)]
    new = sum(seen.add_many(items))
    missed = seen.contains_many(items).count(False)
    wrong = sum(seen.contains_many(others))
    for part in range(PARTS):
        server.delete(seen.key(part))
    print(f"{args.count} items in {PARTS} filters: {new} new, {missed} missed")
    print(f"{wrong} of {args.count} others found")
    limit = args.count * ERROR_RATE + 4 * math.sqrt(args.count * ERROR_RATE)
    return 1 if missed or wrong > limit else 0


if __name__ == "__main__":
    sys.exit(main())
