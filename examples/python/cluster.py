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
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

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
        """The answer of a command for each item; one request for each part."""
        places = defaultdict(list)
        for place, item in enumerate(items):
            places[zlib.crc32(item.encode()) % PARTS].append(place)
        answers = [False] * len(items)
        for part, own in places.items():
            found = command(self.key(part), [items[place] for place in own])
            for place, answer in zip(own, found):
                answers[place] = bool(answer)
        return answers

    def add(self, key, items):
        # MADD would make a lost part again, without a word.
        return self.server.bf().insert(key, items, noCreate=True)

    def contains(self, key, items):
        found = self.server.bf().mexists(key, *items)
        # A lost part looks like an empty one.
        if not all(found) and not self.server.exists(key):
            raise KeyError(key)
        return found

    def add_many(self, items):
        return self.each(self.add, items)

    def contains_many(self, items):
        return self.each(self.contains, items)


def connect(host, port, cluster):
    if not cluster:
        return redis.Redis(host=host, port=port)
    # A failover takes longer than this: catch RedisError, and call again.
    retry = Retry(ExponentialBackoff(cap=0.5, base=0.05), 5)
    return redis.RedisCluster(
        host=host, port=port, retry=retry, socket_timeout=3, socket_connect_timeout=1
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--cluster", action="store_true", help="the server is a node of a cluster")
    parser.add_argument("--count", type=int, default=50_000)
    args = parser.parse_args()
    server = connect(args.host, args.port, args.cluster)

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
