"""A column of URLs without repeats: a filter beside what the libraries of tables have, exactly.

    pip install -r benches/requirements.txt duckdb . && python benches/tables.py --rows 10000000

Two days come one after the other. A day is a Parquet file of so many rows; a third of them repeat an
earlier row, half of these one of the day before. Each way reads both days in a process of its own: it keeps
what it needs of the first day in a file, and says which rows of the second day are new to both. Prints the
seconds and the memory that the second day took beyond its column, and the size of what was kept.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet


def make(folder, rows):
    """Two days of URLs of about 60 characters, which say nothing about when they came first."""
    random = np.random.default_rng(7)
    new = rows * 2 // 3
    first = np.concatenate([np.arange(new), random.integers(0, new, rows - new)])
    second = np.concatenate([np.arange(rows, rows + new), random.integers(0, new, (rows - new) // 2)])
    second = np.concatenate([second, random.integers(rows, rows + new, rows - len(second))])
    for day, numbers in enumerate((first, second)):
        random.shuffle(numbers)
        text = pyarrow.array(numbers.astype("u8") * np.uint64(0x9E3779B97F4A7C15)).cast("string")
        part = pyarrow.array(numbers % 50_000).cast("string")
        urls = pyarrow.compute.binary_join_element_wise("https://www.shop-", part, ".example/p/", "")
        urls = pyarrow.compute.binary_join_element_wise(urls, text, "/index.html", "")
        pyarrow.parquet.write_table(pyarrow.table({"url": urls}), folder / f"{day}.parquet")
    print(f"{rows} rows a day, {len(np.unique(second))} different ones on the second", file=sys.stderr)


def of_filter(read, mask):
    """The filter for both days, kept in a file."""

    def first(day, kept):
        import everbloom

        column = read(day)
        seen = everbloom.BloomFilter(2 * len(column), 0.001)
        seen.update(column)
        seen.save(kept)

    def second(column, kept):
        import everbloom

        seen = everbloom.BloomFilter.load(kept)
        new = mask(column, seen.add_many(column))
        seen.save(kept)
        return len(new)

    return first, second


def read_arrow(day):
    return pyarrow.parquet.read_table(day)["url"]


def read_polars(day):
    import polars

    return polars.read_parquet(day)["url"]


def read_pandas(day):
    import pandas

    return pandas.read_parquet(day)["url"]


def polars_first(day, kept):
    read_polars(day).unique().to_frame().write_parquet(kept)


def polars_second(column, kept):
    import polars

    new = column.to_frame().unique(maintain_order=True)
    known = polars.read_parquet(kept)
    new = new.join(known, on="url", how="anti")
    polars.concat([known, new]).write_parquet(kept)
    return len(new)


def pandas_first(day, kept):
    read_pandas(day).drop_duplicates().to_frame().to_parquet(kept)


def pandas_second(column, kept):
    import pandas

    new = column.drop_duplicates()
    known = pandas.read_parquet(kept)["url"]
    new = new[~new.isin(known)]
    pandas.concat([known, new]).to_frame().to_parquet(kept)
    return len(new)


def read_duckdb(day):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE day AS SELECT url FROM '{day}'")
    return connection


def duckdb_first(day, kept):
    connection = read_duckdb(day)
    connection.execute(f"COPY (SELECT DISTINCT url FROM day) TO '{kept}' (FORMAT parquet)")


def duckdb_second(connection, kept):
    connection.execute(
        f"CREATE TABLE new AS SELECT DISTINCT url FROM day ANTI JOIN read_parquet('{kept}') USING (url)"
    )
    connection.execute(f"CREATE TABLE known AS FROM read_parquet('{kept}') UNION ALL FROM new")
    connection.execute(f"COPY known TO '{kept}' (FORMAT parquet)")
    return connection.execute("SELECT count(*) FROM new").fetchone()[0]


def duckdb_filter_second(connection, kept):
    import everbloom

    seen = everbloom.BloomFilter.load(kept)

    def is_new(urls):
        return pyarrow.array(seen.add_many(urls))

    connection.create_function("is_new", is_new, ["VARCHAR"], "BOOLEAN", type="arrow", side_effects=True)
    connection.execute("CREATE TABLE new AS SELECT url FROM day WHERE is_new(url)")
    seen.save(kept)
    return connection.execute("SELECT count(*) FROM new").fetchone()[0]


WAYS = {
    "polars, a filter": (read_polars, *of_filter(read_polars, lambda column, new: column.filter(new))),
    "polars, `unique` and an anti join": (read_polars, polars_first, polars_second),
    "pandas, a filter": (read_pandas, *of_filter(read_pandas, lambda column, new: column[new])),
    "pandas, `drop_duplicates` and `isin`": (read_pandas, pandas_first, pandas_second),
    "Arrow, a filter": (
        read_arrow,
        *of_filter(read_arrow, lambda column, new: column.filter(pyarrow.array(new))),
    ),
    "DuckDB, a filter": (read_duckdb, of_filter(read_arrow, None)[0], duckdb_filter_second),
    "DuckDB, `DISTINCT` and an anti join": (read_duckdb, duckdb_first, duckdb_second),
}


def memory(name):
    """A line of the process's status, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measure(way, folder):
    """In a process of its own, whose memory is that of this way only."""
    read, _, second = WAYS[way]
    kept = folder / "kept"
    column = read(folder / "1.parquet")
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    start, busy = time.perf_counter(), time.process_time()
    new = second(column, kept)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    return {
        "new": new,
        "seconds": seconds,
        "busy": busy,
        "memory": memory("VmHWM") - before,
        "kept": kept.stat().st_size / 2**20,
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--first")
    arguments.add_argument("--second")
    options = arguments.parse_args()
    if options.first:
        return WAYS[options.first][1](options.folder / "0.parquet", options.folder / "kept")
    if options.second:
        return print(json.dumps(measure(options.second, options.folder)))
    print("| | seconds | processor seconds | memory | kept | new rows |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        make(folder, options.rows)
        for way in WAYS:
            again = [sys.executable, __file__, "--folder", folder]
            subprocess.run([*again, "--first", way], check=True)
            done = subprocess.run([*again, "--second", way], check=True, stdout=subprocess.PIPE)
            got = json.loads(done.stdout)
            print(
                f"| {way} | {got['seconds']:.2f} | {got['busy']:.2f} | {got['memory']:.0f} MiB"
                f" | {got['kept']:.0f} MiB | {got['new']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
