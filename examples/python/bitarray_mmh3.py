#!/usr/bin/env python3
"""The filter that articles build from bitarray and mmh3, beside everbloom's.

    pip install ./python bitarray mmh3
    python3 bitarray_mmh3.py

Exits with 1 when a filter missed an item, or found too many others.
"""

import argparse
import math
import sys
import time

import mmh3
from bitarray import bitarray

from everbloom import BloomFilter

ERROR_RATE = 0.01


class ArticleFilter:
    """m = -n ln p / (ln 2)^2 bits, k = m / n ln 2 hashes: murmur3 with the seeds 0, 1, 2, ..."""

    def __init__(self, capacity, error_rate):
        self.size = int(-capacity * math.log(error_rate) / math.log(2) ** 2)
        self.hash_count = round(self.size / capacity * math.log(2))
        self.array = bitarray(self.size)
        self.array.setall(0)

    def update(self, items):
        for item in items:
            for seed in range(self.hash_count):
                self.array[mmh3.hash(item, seed) % self.size] = True

    def contains_many(self, items):
        return [
            all(self.array[mmh3.hash(item, seed) % self.size] for seed in range(self.hash_count))
            for item in items
        ]


def measure(name, seen, bits, items, others):
    """Prints a row, and tells whether the filter kept its promise."""
    started = time.perf_counter()
    seen.update(items)
    added = time.perf_counter()
    missed = list(seen.contains_many(items)).count(False)
    asked = time.perf_counter()
    wrong = list(seen.contains_many(others)).count(True)
    each = 1e9 / len(items)
    print(
        f"{name:10} add {(added - started) * each:6.0f} ns, ask {(asked - added) * each:6.0f} ns, "
        f"{bits / len(items):.1f} bits an item, {missed} missed, {100 * wrong / len(others):.2f} %"
    )
    limit = len(others) * ERROR_RATE
    return not missed and wrong <= limit + 4 * math.sqrt(limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200_000)
    count = parser.parse_args().count
    items = [f"https://example.org/{number}" for number in range(count)]
    others = [f"https://example.com/{number}" for number in range(count)]

    article, ours = ArticleFilter(count, ERROR_RATE), BloomFilter(count, ERROR_RATE)
    kept = measure("article", article, article.size, items, others)
    kept &= measure("everbloom", ours, ours.bits, items, others)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
