"""Filters that forget."""

import pickle
import random

import numpy as np
import pytest

from everbloom import BloomFilter, FormatError, ScalableBloomFilter, WindowedBloomFilter

DAY = 24 * 60 * 60


def test_the_promise_of_a_window_of_ticks():
    """What was added within the window is found; two windows later nothing is."""
    chance = random.Random(7)
    seen = WindowedBloomFilter(2000, 1e-6, ticks=1000, seed=1)
    last, now = {}, 10**9
    for _ in range(20_000):
        now += chance.choice([0, 0, 1, 3])
        item = chance.randrange(3000)
        new = seen.add(item, now)
        assert not (new and item in last and last[item] >= now - 1000)
        last[item] = now
        if chance.random() < 0.01:
            within = [item for item, at in last.items() if at >= now - 1000]
            assert all(seen.contains_many(within, now))
            outside = [item for item, at in last.items() if at < now - 1250]
            assert not any(seen.contains_many(outside, now))
    assert len(last) > 2900
    assert not any(seen.contains_many(list(last), now + 1250))


def test_the_promise_of_a_window_of_items():
    last = WindowedBloomFilter(1000, 1e-6)
    for number in range(10_000):
        assert last.add(number)
        assert number in last and max(0, number - 999) in last
    assert last.contains_many(np.arange(9000, 10_000)).all()
    assert not last.contains_many(np.arange(8000)).any()
    assert last.capacity == 1000 and last.ticks is None


def test_an_item_that_comes_again_lives_on():
    seen = WindowedBloomFilter(1000, ticks=30 * DAY)
    assert seen.add("a", 0)
    assert not seen.add("a", 20 * DAY)
    assert seen.contains("a", 50 * DAY)
    assert not seen.contains("a", 80 * DAY)
    # To ask forgets nothing; and a clock that goes back does not, either.
    assert seen.contains("a", 50 * DAY)


def test_many_at_a_time():
    seen = WindowedBloomFilter(1000, 1e-6, ticks=100)
    seen.update(["a", "b"], np.arange(3), now=7)
    assert seen.add_many(["b", "c"], 8) == [False, True]
    assert seen.contains_many(["a", "c", "d"], 100) == [True, True, False]
    found = seen.contains_many(np.arange(5), now=9)
    assert isinstance(found, np.ndarray) and found.tolist() == [True] * 3 + [False] * 2
    assert seen.contains_many(["a", "c"], 1000) == [False, False]


def test_a_window_of_ticks_needs_the_time():
    seen = WindowedBloomFilter(1000, ticks=100)
    for ask in (
        lambda: seen.add("a"),
        lambda: seen.update(["a"]),
        lambda: seen.add_many(["a"]),
        lambda: seen.contains("a"),
        lambda: seen.contains_many(["a"]),
        lambda: "a" in seen,
        lambda: seen.advance(),
    ):
        with pytest.raises(TypeError, match="needs the time"):
            ask()
    with pytest.raises(TypeError, match="the error rate must be a number"):
        WindowedBloomFilter(10, "0.1")
    with pytest.raises(TypeError, match="the number of generations must be an int"):
        WindowedBloomFilter(10, generations="4")
    with pytest.raises(TypeError, match="the time must be an int"):
        seen.add("a", 1.5)
    with pytest.raises(ValueError, match="the time is below 0"):
        seen.add("a", -1)
    assert len(seen) == 0


def test_what_is_no_window():
    for arguments in [{"ticks": 0}, {"generations": 0}, {"generations": 65}]:
        with pytest.raises(ValueError, match="a window needs"):
            WindowedBloomFilter(1000, **arguments)
    with pytest.raises(ValueError, match="capacity"):
        WindowedBloomFilter(0)


def test_generations():
    seen = WindowedBloomFilter(1000, 1e-6, ticks=60, generations=4)
    assert (seen.generations, seen.ticks, seen.capacity) == (4, 60, 1000)
    assert (seen.error_rate, seen.layout) == (1e-6, "blocked")
    seen.update(["a", "b"], now=5)
    seen.update(["c"], now=40)
    assert seen.kept() == [(0, 2), (30, 0), (30, 1)]
    assert len(seen) == 3 and seen.estimated_len() == 3
    assert 0 < seen.fill_ratio() < 0.1 and seen.estimated_error_rate() < 1e-6
    assert "60 ticks" in repr(seen) and "last items" in repr(WindowedBloomFilter(10))
    seen.advance(now=41)
    assert seen.kept()[-1] == (41, 0) and seen.contains("a", 41)
    seen.advance(4, 42)
    assert not seen.contains("a", 42)
    seen.add("a", 42)
    seen.clear()
    assert len(seen) == 0 and not seen.contains("a", 42)


def filled(**arguments):
    seen = WindowedBloomFilter(100, 1e-6, **arguments)
    now = None
    for number in range(500):
        now = number if "ticks" in arguments else None
        seen.add(number, now)
    return seen, now


@pytest.mark.parametrize("arguments", [{}, {"ticks": 50}, {"ticks": 50, "generations": 64}])
def test_bytes_files_and_chunks(arguments, tmp_path):
    seen, now = filled(**arguments)
    path = tmp_path / "window.bloom"
    seen.save(path)
    for again in (
        WindowedBloomFilter.from_bytes(seen.to_bytes()),
        WindowedBloomFilter.load(path),
        WindowedBloomFilter.from_chunks(seen.chunks()),
        pickle.loads(pickle.dumps(seen)),
        seen.copy(),
    ):
        assert again == seen and again.kept() == seen.kept()
        assert all(again.contains_many(range(460, 500), now))
        assert not any(again.contains_many(range(300), now))
        assert again.add("more", now) and again != seen
    for bytes in (b"", seen.to_bytes()[:-1]):
        with pytest.raises(FormatError):
            WindowedBloomFilter.from_bytes(bytes)


def test_other_kinds_are_refused(tmp_path):
    window, _ = filled()
    for from_this, to_that, what in [
        (ScalableBloomFilter(), WindowedBloomFilter, "without a window"),
        (window, ScalableBloomFilter, "with a window"),
        (window, BloomFilter, "another kind"),
    ]:
        with pytest.raises(FormatError, match=what):
            to_that.from_bytes(from_this.to_bytes())
    with pytest.raises(FormatError, match="with a window"):
        ScalableBloomFilter.from_chunks(window.chunks())


def test_windows_unite():
    one = WindowedBloomFilter(1000, 1e-6, ticks=100)
    other = one.empty_like()
    one.add("a", 10)
    other.add("b", 10)
    both = one | other
    assert both.contains_many(["a", "b", "c"], 11) == [True, True, False]
    assert both.contains_many(["a", "b"], 200) == [False, False]
    with pytest.raises(ValueError, match="cannot be united"):
        WindowedBloomFilter(10, seed=1) | WindowedBloomFilter(10, seed=1)


def test_a_clock_that_was_ahead_does_not_spread():
    one = WindowedBloomFilter(1000, 1e-6, ticks=100)
    other = one.empty_like()
    one.add("a", 10)
    other.add("b", 1_000_000)
    for both in (one.union(other, now=20), other.union(one, now=20)):
        assert both.contains_many(["a", "b"], 100) == [True, True]
        assert both.contains_many(["a", "b"], 200) == [False, False]
        assert both.kept()[-1][0] <= 20
    # Without a time, every clock is taken to be right: "a" is too old.
    assert one.union(other).contains_many(["a", "b"], 1_000_001) == [False, True]
    with pytest.raises(TypeError):
        one.union(other, now="noon")
