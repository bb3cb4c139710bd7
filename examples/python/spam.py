#!/usr/bin/env python3
"""Finds messages that repeat recent ones, even with small changes.

The runs of four words of each message go into a filter with a window: of the last 10 000 messages,
so the clock is the number of the message.

    pip install ./python          # from a checkout
    python3 spam.py

Exits with 1 when a repeat was not found.
"""

import argparse
import random
import sys

from everbloom import WindowedBloomFilter

WINDOW = 10_000
WORDS = 14


class Recent:
    def __init__(self):
        self.runs = WindowedBloomFilter(WINDOW * WORDS, 0.001, ticks=WINDOW)
        self.number = 0

    def is_repeat(self, message):
        """Whether most of the message is in recent ones. It is remembered either way."""
        words = message.lower().split()
        runs = [" ".join(words[n : n + 4]) for n in range(len(words) - 3)]
        new = self.runs.add_many(runs, self.number)
        self.number += 1
        return sum(new) < 0.4 * len(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=20_000)
    messages = parser.parse_args().messages

    advertisement = [f"offer{n}" for n in range(WORDS)]
    recent = Recent()
    recent.is_repeat(" ".join(advertisement))
    repeats = found = alarms = 0
    for number in range(messages):
        if number % 100 == 99:
            # The advertisement again, with another word in it.
            changed = advertisement.copy()
            changed[random.randrange(3)] = str(number)
            repeats += 1
            found += recent.is_repeat(" ".join(changed))
        else:
            words = (f"word{random.randrange(10_000)}" for _ in range(WORDS))
            alarms += recent.is_repeat(" ".join(words))
    print(f"{messages} messages, {found} of {repeats} repeats found, {alarms} false alarms")
    print(f"memory: {sys.getsizeof(recent.runs) / 1024:.0f} KiB")
    return 1 if found < repeats or alarms > messages / 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
