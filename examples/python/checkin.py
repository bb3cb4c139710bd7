#!/usr/bin/env python3
"""Check-in: a bit for each day of the year that a user was there.

No filter: user and day are numbers, so a bitmap is exact. A key has 46 bytes a year.

    pip install redis
    python3 checkin.py --port 6379

Exits with 1 when a day was counted wrongly.
"""

import argparse
import random
import sys

import redis

DAYS = 365


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--users", type=int, default=200)
    args = parser.parse_args()
    server = redis.Redis(host=args.host, port=args.port)

    wrong = checkins = 0
    for user in range(args.users):
        key = f"example:checkin:{user}:2027"
        days = random.sample(range(DAYS), random.randrange(1, DAYS))
        pipe = server.pipeline(transaction=False)
        pipe.delete(key)
        for day in days:
            pipe.setbit(key, day, 1)
        pipe.execute()

        asked = random.randrange(DAYS)
        wrong += server.bitcount(key) != len(days)
        wrong += server.getbit(key, asked) != (asked in days)
        # A range of BITCOUNT is in bytes, unless it ends with BIT (Redis 7).
        january = server.bitcount(key, 0, 30, "BIT")
        wrong += january != sum(day < 31 for day in days)
        checkins += len(days)
        server.delete(key)
    print(f"{args.users} users, {checkins} days, {wrong} counted wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
