#!/usr/bin/env python3
"""A crawler that fetches each page again after 30 days, and not earlier.

The window forgets in steps of a quarter, so a page is due 30 to 37.5 days after it was fetched.
Its memory is a file, so it may be stopped at any time: here it is, after every crawl.

    pip install ./python          # from a checkout
    python3 crawler.py

Exits with 1 when a page was fetched twice within 30 days.
"""

import argparse
import os
import sys
import tempfile
from collections import deque

from everbloom import WindowedBloomFilter

DAY = 24 * 60 * 60


def links_of(page, pages):
    """A web of made-up pages: what a program would fetch and parse."""
    return [(page * 7 + n * n + 1) % pages for n in range(10)] + [(page + 1) % pages]


def crawl(path, pages, now):
    """Fetches what was not fetched in the last 30 days; the pages, in their order."""
    if os.path.exists(path):
        fetched = WindowedBloomFilter.load(path)
    else:
        fetched = WindowedBloomFilter(pages, 0.0001, ticks=30 * DAY)
    queue, visited, result = deque([0]), {0}, []
    while queue:
        page = queue.popleft()
        url = f"https://example.org/{page}"
        # Adding a known URL again would restart its window, so add only what is fetched.
        if not fetched.contains(url, now):
            fetched.add(url, now)
            result.append(page)
        for link in links_of(page, pages):
            if link not in visited:
                visited.add(link)
                queue.append(link)
    fetched.save(path)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20_000)
    pages = parser.parse_args().pages

    early = missed = 0
    last = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "crawler.bloom")
        for day in (0, 1, 20, 38, 39, 76):
            now = 1_800_000_000 + day * DAY  # In a program that runs: int(time.time())
            fetched = crawl(path, pages, now)
            print(f"day {day}: {len(fetched)} of {pages} pages fetched")
            early += sum(now - last.get(page, -(10**10)) <= 30 * DAY for page in fetched)
            if day in (0, 38, 76):
                missed += pages - len(fetched)
            last.update((page, now) for page in fetched)
    print(f"{early} fetched twice within 30 days, {missed} not fetched though they were due")
    return 1 if early or missed > pages // 100 else 0


if __name__ == "__main__":
    sys.exit(main())
