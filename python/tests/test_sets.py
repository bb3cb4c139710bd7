"""Fixed filters as sets."""

import pytest

from everbloom import BloomFilter, ScalableBloomFilter


@pytest.fixture(params=["blocked", "classic"])
def two(request):
    one = BloomFilter(1000, 1e-6, layout=request.param)
    other = one.empty_like()
    one.update(list("ab"))
    other.update(list("bc"))
    return one, other


def test_union_and_intersection(two):
    one, other = two
    both = one | other
    assert both.contains_many(list("abcd")) == [True, True, True, False]
    common = one & other
    assert common.contains_many(list("abc")) == [False, True, False]
    assert len(common) == 1
    # Neither has changed.
    assert one.contains_many(list("abc")) == [True, True, False]
    before = one
    one |= other
    assert one is before and one == both and len(one) == 3
    one &= other
    assert one.contains_many(list("abc")) == [False, True, True]


def test_a_filter_with_itself(two):
    one, _ = two
    same = one.copy()
    assert one | one == same and one & one == same
    one |= one
    one &= one
    assert one == same


def test_what_does_not_fit():
    seen = BloomFilter(1000, seed=1)
    for other, text in [
        (BloomFilter(1000), "different keys.*empty_like.*seed"),
        (BloomFilter(9000, seed=1), "different bit counts"),
        (BloomFilter(1000, layout="classic"), "different layouts"),
    ]:
        before = seen.copy()
        with pytest.raises(ValueError, match=text):
            seen | other
        with pytest.raises(ValueError, match=text):
            seen &= other
        assert seen == before
    for other in ["a", {"a"}, ScalableBloomFilter(1000), None]:
        with pytest.raises(TypeError):
            seen | other
        with pytest.raises(TypeError, match="use update"):
            seen |= other


def test_empty_like():
    seen = BloomFilter(1000)
    seen.update(list("abc"))
    empty = seen.empty_like()
    assert len(empty) == 0 and "a" not in empty
    empty |= seen
    assert empty == seen


def test_shrink_to():
    seen = BloomFilter(1_000_000, 0.01)
    seen.update(range(50_000))
    bits = seen.bits
    assert seen.shrink_to(50_000) < 0.01
    assert seen.bits * 18 < bits
    assert 50_000 <= seen.capacity < 100_000
    assert all(seen.contains_many(range(50_000)))
    before = seen.copy()
    with pytest.raises(ValueError, match="no smaller size keeps the error rate"):
        seen.shrink_to(50_000)
    with pytest.raises(ValueError, match="needs a capacity of"):
        seen.shrink_to(1)
    assert seen == before
    with pytest.raises(ValueError, match="becomes smaller only for a capacity of [0-9]+ or less"):
        BloomFilter(1000).shrink_to(1000)
    for capacity, error in [(0, ValueError), (-1, ValueError), (2**64, OverflowError), ("a", TypeError)]:
        with pytest.raises(error):
            seen.shrink_to(capacity)
    with pytest.raises(ValueError, match="blocked layout can be made smaller"):
        BloomFilter(1000, layout="classic").shrink_to(10)


@pytest.mark.parametrize("make", [BloomFilter, ScalableBloomFilter])
def test_union_of_several(make):
    one = make(1000, 1e-6)
    others = [one.empty_like() for _ in range(3)]
    for number, other in enumerate(others):
        other.update([number], iter([number + 10]))
    both = one.union(*others)
    assert both.contains_many([0, 1, 2, 10, 11, 12, 3]) == [True] * 6 + [False]
    assert len(one) == 0 and one.union() == one and one.union(one) == one
    with pytest.raises(TypeError, match="use update"):
        one.union(["a"])


def test_growing_filters_unite():
    one = ScalableBloomFilter(100, 1e-6)
    one.update(range(1000))
    today = one.empty_like()
    assert len(today) == 0 and today.layers == 1
    today.update(range(1000, 3000))
    both = one | today
    assert all(both.contains_many(range(3000))) and 3000 not in both
    assert not any(one.contains_many(range(1000, 3000)))
    one |= today
    assert one == both
    with pytest.raises(ValueError, match="different keys"):
        one |= ScalableBloomFilter()
    with pytest.raises(TypeError):
        one & today
