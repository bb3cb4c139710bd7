"""One filter in several threads."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from everbloom import BloomFilter, FormatError, ScalableBloomFilter

THREADS = 4


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*tasks):
    failures = []

    def guarded(task):
        try:
            task()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "threads wait for each other"
    assert failures == []


@pytest.mark.parametrize("of_class", [BloomFilter, ScalableBloomFilter])
def test_each_item_is_new_once(of_class):
    seen = of_class(100_000, 1e-9)
    new = [0] * (2 * THREADS)

    def array(number):
        new[number] = int(seen.add_many(np.arange(50_000)).sum())

    def one_by_one(number):
        new[number] = sum(seen.add(i) for i in range(50_000))

    tasks = [lambda n=n: array(n) for n in range(THREADS)]
    tasks += [lambda n=n: one_by_one(n) for n in range(THREADS, 2 * THREADS)]
    together(*tasks)
    assert sum(new) == 50_000 == len(seen)


def test_everything_at_once():
    one = BloomFilter(200_000, 0.01)
    other = one.empty_like()
    numbers = np.arange(100_000)

    def unite(a, b):
        for _ in range(20):
            a |= b
            assert (a | b).contains_many(numbers[:10]) is not None
            a == b

    def work(a, b):
        for i in range(20):
            a.update(numbers)
            a.update(x for x in range(1000) if x not in b)
            a.contains_many(numbers)
            a.to_bytes(), a.copy(), a.fill_ratio(), len(a), repr(b)

    together(
        lambda: unite(one, other),
        lambda: unite(other, one),
        lambda: work(one, other),
        lambda: work(other, one),
    )
    assert one.contains_many(numbers).all() and other.contains_many(numbers).all()


def test_filters_that_wait_for_each_other():
    one = BloomFilter(3_000_000, seed=1)
    other = one.empty_like()

    def unite(a, b):
        for _ in range(50):
            a |= b

    def clear():
        # Both others wait for this one, each with the other filter in its hands.
        for _ in range(50):
            one.clear()
            other.clear()

    together(lambda: unite(one, other), lambda: unite(other, one), clear, clear)


INTERRUPTED = """
import signal

import numpy as np

from everbloom import BloomFilter, ScalableBloomFilter


class Rang(Exception):
    pass


def ring(*_):
    raise Rang


signal.signal(signal.SIGALRM, ring)
def endless(item, rows):
    # One item again and again, which takes no memory.
    return np.broadcast_to(np.array(item), rows)


numbers = BloomFilter(1000)
growing = ScalableBloomFilter(1000)
texts = BloomFilter(1000)
for long in (
    lambda: numbers.update(endless(7, 2**40)),
    lambda: growing.update(endless(7, 2**40)),
    # They are checked before the first is added.
    lambda: texts.update(endless("seven", 2**40)),
    # It has an answer for each item, and reserves a byte for each of them first.
    lambda: texts.contains_many(endless("seven", 2**30)),
):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        long()
    except Rang:
        continue
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("it cannot have come to an end")
for seen in (numbers, growing):
    assert 7 in seen and seen.add(8)
assert len(texts) == 0 and texts.add("seven")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGALRM")
def test_a_signal_is_heard_within_a_large_array():
    program = [sys.executable, "-c", INTERRUPTED]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_the_bytes_of_a_large_filter_are_those_of_the_filter():
    seen = BloomFilter(10_000_000, seed=1)
    seen.update(range(1000))
    data = seen.to_bytes()
    assert BloomFilter.from_bytes(data) == seen and seen.copy().to_bytes() == data


def test_a_bytearray_is_read_while_other_threads_run():
    seen = BloomFilter(1_000_000, seed=1)
    data = bytearray(seen.to_bytes())
    assert BloomFilter.from_bytes(data) == BloomFilter.from_bytes(memoryview(data)) == seen
    is_lent = threading.Event()
    is_over = threading.Event()

    def look():
        # What is being read cannot become longer.
        while not is_over.is_set():
            try:
                data.append(0)
                data.pop()
            except BufferError:
                is_lent.set()
                return

    def read():
        for _ in range(1000):
            try:
                BloomFilter.from_bytes(data)
            except FormatError:
                pass
            if is_lent.is_set():
                break
        is_over.set()

    together(look, read)
    assert is_lent.is_set(), "other threads waited"
    data.append(0)
