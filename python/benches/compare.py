"""everbloom beside rbloom, pybloom-live and the filter of the articles (bitarray + mmh3).

    pip install -r benches/requirements.txt . && python benches/compare.py

Prints nanoseconds an item, the best of several runs, and the ratio to rbloom. Items are strings of 20
to 26 characters in random order, in a filter made for as many at 1 %.

A second table has the same items in columns: the median of the runs, which take turns, and the ratio to
a list. With `--columns` it prints only that one.
"""

import argparse
import gc
import math
import random
import statistics
import time

import mmh3
import numpy as np
import pandas
import polars
import pyarrow
from bitarray import bitarray
from pybloom_live import BloomFilter as PybloomFilter
from rbloom import Bloom

import everbloom


class ArticleFilter:
    """As articles and courses write it."""

    def __init__(self, capacity, error_rate):
        self.size = int(-capacity * math.log(error_rate) / math.log(2) ** 2)
        self.hash_count = int(self.size / capacity * math.log(2))
        self.bits = bitarray(self.size)
        self.bits.setall(0)

    def add(self, item):
        for seed in range(self.hash_count):
            self.bits[mmh3.hash(item, seed) % self.size] = True

    def __contains__(self, item):
        for seed in range(self.hash_count):
            if not self.bits[mmh3.hash(item, seed) % self.size]:
                return False
        return True


def texts(prefix, count):
    items = [f"https://{prefix}.example/{i}" for i in range(count)]
    random.Random(7).shuffle(items)
    return items


def new_strings(items):
    """The same text in strings that Python has not hashed yet, as if read from a file."""
    return "\n".join(items).split("\n")


def nanoseconds(work, prepare, count, runs):
    best = math.inf
    for _ in range(runs):
        argument = prepare()
        gc.collect()
        gc.disable()
        start = time.process_time()
        work(argument)
        best = min(best, time.process_time() - start)
        gc.enable()
    return best * 1e9 / count


def add_each(seen, items):
    for item in items:
        seen.add(item)


def rows(make, items, others, runs, batch):
    """The figures of one library."""
    seen = make()
    add_each(seen, items)

    def of(work, asked=items, prepare=None):
        return nanoseconds(work, prepare or (lambda: new_strings(asked)), len(asked), runs)

    result = {
        "`add`, one by one": of(lambda asked, m=make: add_each(m(), asked)),
        "`in`, present": of(lambda asked: [item in seen for item in asked]),
        "`in`, absent": of(lambda asked: [item in seen for item in asked], others),
        "`in`, present, strings hashed before": of(
            lambda asked: [item in seen for item in asked], prepare=lambda: items
        ),
    }
    if hasattr(seen, "update"):
        result["`update`"] = of(lambda asked: make().update(asked))
    if batch:
        result["all at once, present"] = of(seen.contains_many)
        result["all at once, absent"] = of(seen.contains_many, others)
        numbers, text = np.arange(len(items)), np.array(items, dtype="S")
        result["all at once, numpy `int64`"] = of(seen.contains_many, prepare=lambda: numbers)
        result["all at once, numpy `S`"] = of(seen.contains_many, prepare=lambda: text)
    else:
        result["all at once, present"] = result["`in`, present"]
        result["all at once, absent"] = result["`in`, absent"]
    return result


def columns_of(items):
    """The same items in columns. The last ones have one of a thousand values in each row."""
    # Columns of objects have them in the order of memory, as the list has.
    items = new_strings(items)
    arrow, few = pyarrow.array(items), items[:1000] * (len(items) // 1000)
    return {
        "list": items,
        "Arrow `string`": arrow,
        "Arrow `large_string`": arrow.cast(pyarrow.large_string()),
        "Arrow `string_view`": arrow.cast(pyarrow.string_view()),
        "polars `String`": polars.Series(items),
        "pandas `str`": pandas.Series(items),
        "pandas `object`": pandas.Series(items, dtype=object),
        "numpy `U`": np.array(items),
        "numpy `S`": np.array(items, dtype="S"),
        "numpy `object`": np.array(items, dtype=object),
        "Arrow dictionary, all different": arrow.dictionary_encode(),
        "list, one of a thousand": few,
        "Arrow dictionary, one of a thousand": pyarrow.array(few).dictionary_encode(),
        "polars `Categorical`, one of a thousand": polars.Series(few, dtype=polars.Categorical),
        "pandas `category`, one of a thousand": pandas.Series(few, dtype="category"),
    }


def print_columns(items, runs):
    """The time of each column, and how it compares to the list in the same round."""
    columns = columns_of(items)
    seen = everbloom.BloomFilter(len(items), 0.01)
    seen.update(items)
    empty = seen.empty_like()
    times = {name: ([], []) for name in columns}

    def fill(column):
        empty.clear()
        empty.update(column)

    for _ in range(runs):
        for name, column in columns.items():
            asked = new_strings(column) if isinstance(column, list) else column
            for work, found in zip((seen.contains_many, fill), times[name]):
                found.append(nanoseconds(work, lambda: asked, len(asked), 1))
    print("\n| ns an item | `contains_many` | / list | `update` | / list |\n|---|--:|--:|--:|--:|")
    for name, found in times.items():
        cells = []
        for each, of_list in zip(found, times["list"]):
            ratio = statistics.median(a / b for a, b in zip(each, of_list))
            cells += [f"{statistics.median(each):.1f}", f"{ratio:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--items", type=int, default=1_000_000)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--columns", action="store_true", help="only the table of columns")
    options = arguments.parse_args()
    items, others = texts("seen", options.items), texts("other", options.items)
    if options.columns:
        return print_columns(items, options.runs)
    for item in items:
        hash(item)
    # The slow ones get a tenth of the items: their figures hardly depend on it.
    few, few_others = items[: len(items) // 10], others[: len(others) // 10]
    figures = {
        "everbloom": rows(
            lambda: everbloom.BloomFilter(len(items), 0.01), items, others, options.runs, True
        ),
        "rbloom": rows(lambda: Bloom(len(items), 0.01), items, others, options.runs, False),
        "pybloom-live": rows(lambda: PybloomFilter(len(items), 0.01), few, few_others, 1, False),
        "bitarray + mmh3": rows(lambda: ArticleFilter(len(items), 0.01), few, few_others, 1, False),
    }
    print("| ns an item | " + " | ".join(figures) + " | everbloom / rbloom |")
    print("|---|" + "--:|" * (len(figures) + 1))
    for row in figures["everbloom"]:
        cells = [figure.get(row) for figure in figures.values()]
        ratio = f"{cells[0] / cells[1]:.2f}" if cells[1] else ""
        texts_of = [f"{cell:.0f}" if cell else "" for cell in cells]
        print(f"| {row} | " + " | ".join(texts_of) + f" | {ratio} |")
    print_columns(items, options.runs)


if __name__ == "__main__":
    main()
