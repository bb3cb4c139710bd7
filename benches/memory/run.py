#!/usr/bin/env python3
"""What a filter that grows takes, in both layouts, as a table in markdown.

    cargo build --release
    python3 benches/memory/run.py --bin target/release/everbloom

Each filter is reserved for 100 items with EXPANSION 2, and grows. "bytes" is MEMORY USAGE of a key
whose name is not longer than 16 bytes, and "bits" are those of all layers for each item. The last
line says by how much less the library's memory_usage() is. The figures are the same on every machine
of 64 bits. All take a minute.
"""
import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import servers  # noqa: E402

ITEMS = [1, 10, 100, 101, 150, 300, 1000, 3000, 10_000, 100_000, 1_000_000, 10_000_000]
RATES = ["0.01", "0.001", "0.0001"]
# The blocked layout with a key that is not drawn, so that its errors are the same ones each time.
LAYOUTS = {"classic": ["LAYOUT", "CLASSIC"], "blocked": ["LAYOUT", "BLOCKED", "SEED", 1]}
# Items of a BF.MADD.
BATCH = 10_000
# The first item. With these, item 101 is not found by error in a full layer, and makes a layer.
FIRST = 1000


def add(client, key, items):
    """Adds the items with these numbers, in order."""
    for start in range(items.start, items.stop, BATCH):
        batch = range(start, min(start + BATCH, items.stop))
        head = b"*%d\r\n$7\r\nBF.MADD\r\n$%d\r\n%s\r\n" % (len(batch) + 2, len(key), key)
        client.sock.sendall(head + b"".join(b"$10\r\n%010d\r\n" % (number + FIRST) for number in batch))
        client.reply()


def figures(client, key):
    """Bytes in the server, bytes in the library, bits, layers."""
    stats = client.call("BF.STATS", key)
    stats = dict(zip(stats[::2], stats[1::2]))
    server = client.call("MEMORY", "USAGE", key)
    return server, stats[b"memory"], stats[b"bits"], stats[b"layers"]


def rows(client, rate, most):
    """For each number of items the figures of each layout."""
    added = 0
    for name, layout in LAYOUTS.items():
        client.call("BF.RESERVE", name, rate, 100, "EXPANSION", 2, *layout)
    for count in [count for count in ITEMS if count <= most]:
        for name in LAYOUTS:
            add(client, name.encode(), range(added, count))
        added = count
        yield count, [figures(client, name) for name in LAYOUTS]
    client.call("FLUSHALL")


def number(value):
    return "{:,}".format(value).replace(",", " ")


def table(client, most):
    columns, beside = ["rate", "items"], set()
    for name in LAYOUTS:
        columns += [name + ": bytes", "bits", "layers"]
    columns.append("blocked / classic")
    print("| " + " | ".join(columns) + " |")
    print("|" + "--:|" * len(columns))
    for rate in RATES:
        for count, layouts in rows(client, rate, most):
            cells = ["%g %%" % (float(rate) * 100), number(count)]
            for server, library, bits, layers in layouts:
                beside.add(server - library)
                many = bits >= 100 * count
                bits_an_item = number(round(bits / count)) if many else "%.1f" % (bits / count)
                cells += [number(server), bits_an_item, str(layers)]
            classic, blocked = [server for server, *_ in layouts]
            cells.append("%.2f" % (blocked / classic))
            print("| " + " | ".join(cells) + " |", flush=True)
    print("\nmemory_usage() is less by %s bytes." % ", ".join(map(str, sorted(beside))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="target/release/everbloom")
    parser.add_argument("--items", type=int, default=ITEMS[-1], help="the most")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = servers.everbloom(args.bin, folder)
        try:
            table(servers.Client(), args.items)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
