#!/usr/bin/env python3
"""A filter before a cache and a database: ids that do not exist cost no query.

The filter is on a server with BF.* commands, the cache beside it.

    pip install redis
    python3 guard.py --port 6379

Exits with 1 when a row was not found, or when the filter let too many absent ids through.
"""

import argparse
import math
import random
import sys

import redis

BLOOM_TYPES = [b"MBbloom--", b"everbloom", b"bloomfltr"]
FILTER = "example:guard"
ERROR_RATE = 0.01


class Guard:
    def __init__(self, server, name, database):
        self.server = server
        self.name = name
        self.database = database
        self.filter_errors = 0
        self.queries = 0
        self.in_vain = 0

    def get(self, key):
        """The value of a row, or None."""
        try:
            if not self.may_exist(key):
                return None
        except redis.RedisError:
            # Without the filter all keys reach the cache, and those that it lacks the database.
            self.filter_errors += 1  # or raise, if the database must be protected
        try:
            cached = self.server.get(f"cache:{key}")
        except redis.RedisError:
            cached = None
        if cached is not None:
            return cached.decode()
        self.queries += 1
        value = self.database.get(key)
        if value is not None:
            self.keep(key, value)
        else:
            self.in_vain += 1
        return value

    def may_exist(self, key):
        """Whether the filter has a key. Without a filter BF.EXISTS answers 0, too, and "no such row"
        would be wrong then. So the same round trip asks for the type, b"none" if it is gone."""
        # redis-py sends a pipeline as a transaction: nothing comes between the two commands.
        with self.server.pipeline() as pipeline:
            pipeline.type(self.name)
            pipeline.execute_command("BF.EXISTS", self.name, key)
            kind, found = pipeline.execute()
        if kind not in BLOOM_TYPES:
            raise redis.RedisError(f"{self.name} is no Bloom filter: {kind}")
        return bool(found)

    def keep(self, key, value):
        try:
            self.server.set(f"cache:{key}", value, ex=600)
        except redis.RedisError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--rows", type=int, default=5000)
    args = parser.parse_args()
    server = redis.Redis(host=args.host, port=args.port)

    # A program adds a row to the filter before it writes it to the database.
    database = {f"example:{number}": f"name of {number}" for number in range(args.rows)}
    server.delete(FILTER)
    server.bf().reserve(FILTER, ERROR_RATE, args.rows)
    keys = list(database)
    for start in range(0, len(keys), 1000):
        server.bf().madd(FILTER, *keys[start : start + 1000])

    guard = Guard(server, FILTER, database)
    wrong = absent = 0
    for _ in range(args.rows * 2):
        # Of twenty requests, nineteen ask for ids that do not exist.
        exists = random.random() < 0.05
        key = random.choice(keys[:100]) if exists else f"example:{random.randrange(10**9, 10**10)}"
        absent += not exists
        wrong += guard.get(key) != database.get(key)
    print(f"{args.rows * 2} requests, {absent} of them for absent ids, {wrong} answered wrongly")
    print(f"{guard.queries} queries reached the database, {guard.in_vain} of them in vain")

    # A filter that is gone hides no row.
    server.delete(FILTER)
    in_vain = guard.in_vain
    lost = sum(guard.get(key) != database[key] for key in keys)
    print(f"without its filter {guard.filter_errors} look-ups failed, {lost} rows were not found")
    wrong += lost + abs(guard.filter_errors - len(keys))
    server.delete(*(f"cache:{key}" for key in keys))
    limit = absent * ERROR_RATE + 4 * math.sqrt(absent * ERROR_RATE)
    return 1 if wrong or in_vain > limit else 0


if __name__ == "__main__":
    sys.exit(main())
