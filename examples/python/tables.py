#!/usr/bin/env python3
"""A lookup in sorted tables: a filter for each table tells which tables to skip.

Storage engines do this for their files. The filter is built with the table and kept beside it.

    pip install ./python          # from a checkout
    python3 tables.py

Exits with 1 when a row was not found, or when too many tables were read in vain.
"""

import argparse
import bisect
import math
import random
import sys

from everbloom import BloomFilter

TABLES = 20
ERROR_RATE = 0.01


class Table:
    def __init__(self, rows):
        self.rows = sorted(rows)
        self.filter = BloomFilter(max(len(rows), 1), ERROR_RATE)
        self.filter.update(rows)
        self.reads = 0

    def has(self, key):
        if key not in self.filter:
            return False
        # A file would be read here.
        self.reads += 1
        place = bisect.bisect_left(self.rows, key)
        return place < len(self.rows) and self.rows[place] == key


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows

    keys = [f"key{random.randrange(10**12)}" for _ in range(rows)]
    tables = [Table(keys[number::TABLES]) for number in range(TABLES)]
    asked = random.sample(keys, rows // 10)
    missed = sum(not any(table.has(key) for table in tables) for key in asked)
    for table in tables:
        table.reads = 0
    for number in range(rows // 10):
        any([table.has(f"absent{number}") for table in tables])
    lookups, reads = rows // 10 * TABLES, sum(table.reads for table in tables)
    print(f"{len(asked)} rows looked up, {missed} missed")
    print(f"absent keys: {reads} of {lookups} lookups read a table, {100 * reads / lookups:.2f} %")
    limit = lookups * ERROR_RATE + 4 * math.sqrt(lookups * ERROR_RATE)
    return 1 if missed or reads > limit else 0


if __name__ == "__main__":
    sys.exit(main())
