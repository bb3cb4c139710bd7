#!/usr/bin/env python3
"""A feed that shows no article twice within a week.

One filter with a window remembers who saw what: the item is the pair of user and article. After a
week it is forgotten, and an article may come again.

    pip install ./python          # from a checkout
    python3 feed.py

Exits with 1 when somebody was shown an article twice within a week.
"""

import argparse
import random
import sys

from everbloom import WindowedBloomFilter

DAY = 24 * 60 * 60
DAYS = 20
OFFERED = 10
ARTICLES = 300


def unseen(seen, user, articles, now):
    """The articles that this user did not see in the last week. They count as seen from now on."""
    new = seen.add_many([(user, article) for article in articles], now)
    return [article for article, is_new in zip(articles, new) if is_new]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=2000)
    users = parser.parse_args().users

    # A window has what all users see in a week.
    seen = WindowedBloomFilter(users * OFFERED * 7, 0.001, ticks=7 * DAY)
    last_shown = {}
    shown = repeats = returned = 0
    for day in range(DAYS):
        now = 1_800_000_000 + day * DAY  # In a program that runs: int(time.time())
        for user in range(users):
            offered = random.sample(range(ARTICLES), OFFERED)
            for article in unseen(seen, user, offered, now):
                before = last_shown.get((user, article))
                repeats += before is not None and now - before <= 7 * DAY
                returned += before is not None
                last_shown[user, article] = now
                shown += 1

    print(f"{users} users, {DAYS} days: {users * DAYS * OFFERED} articles offered, {shown} shown")
    print(f"{repeats} shown twice within a week, {returned} shown again later")
    print(f"memory: {sys.getsizeof(seen) / users:.0f} bytes a user")
    return 1 if repeats else 0


if __name__ == "__main__":
    sys.exit(main())
