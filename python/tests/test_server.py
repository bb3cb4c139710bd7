"""Filters go to `everbloom serve` and come back."""

import time

import pytest

from everbloom import (
    BloomFilter,
    CuckooFilter,
    FormatError,
    ScalableBloomFilter,
    WindowedBloomFilter,
)

def filters():
    for layout in ("blocked", "classic"):
        yield f"fixed-{layout}", BloomFilter(5000, 0.001, layout=layout)
        yield f"scalable-{layout}", ScalableBloomFilter(100, 0.001, layout=layout)


ITEMS = [f"item {i}" for i in range(3000)] + [b"\0\xff", "ä", ""]
OTHERS = [f"other {i}" for i in range(3000)]


@pytest.mark.parametrize("name,seen", list(filters()), ids=lambda value: value if isinstance(value, str) else "")
def test_to_the_server_and_back(server, name, seen):
    seen.update(ITEMS)
    for iterator, piece in seen.chunks():
        server.bf().loadchunk(name, iterator, piece)
    bf = server.bf()
    assert bf.mexists(name, *ITEMS) == [1] * len(ITEMS)
    # Also the same false positives.
    assert [bool(found) for found in bf.mexists(name, *OTHERS)] == seen.contains_many(OTHERS)
    assert bf.card(name) == len(seen)

    if name.startswith("scalable"):
        bf.madd(name, *OTHERS)
        seen.update(OTHERS)

    back = ScalableBloomFilter.from_chunks(pieces(bf.scandump, name))
    assert all(back.contains_many(ITEMS))
    assert len(back) == len(seen)
    assert list(back.chunks()) == list(seen.chunks())
    if name.startswith("scalable"):
        assert back == seen and all(back.contains_many(OTHERS))
    else:
        assert back.expansion == 0


def pieces(scandump, key):
    iterator = 0
    while True:
        iterator, piece = scandump(key, iterator)
        yield iterator, piece
        if iterator == 0:
            return


def test_a_window_goes_to_the_server_and_back(server):
    """The server's clock is in milliseconds."""
    now = time.time_ns() // 10**6
    seen = WindowedBloomFilter(1000, 1e-6, ticks=3_600_000)
    seen.update(["long ago"], now=now - 10 * 3_600_000)
    seen.update(ITEMS, now=now)
    for iterator, piece in seen.chunks():
        server.bf().loadchunk("window", iterator, piece)
    assert server.bf().mexists("window", *ITEMS, "long ago") == [1] * len(ITEMS) + [0]
    server.bf().add("window", "there")
    back = WindowedBloomFilter.from_chunks(pieces(server.bf().scandump, "window"))
    assert all(back.contains_many([*ITEMS, "there"], now + 1000))
    assert (back.ticks, back.capacity) == (3_600_000, 1000)


@pytest.mark.parametrize("options", [{"bucket_size": 4}, {"error_rate": 0.001}])
def test_a_cuckoo_filter_goes_to_the_server_and_back(server, options):
    seen = CuckooFilter(1000, **options)
    seen.update(ITEMS)
    key = f"cuckoo {options}"
    for iterator, piece in seen.chunks():
        server.cf().loadchunk(key, iterator, piece)
    assert server.cf().mexists(key, *ITEMS) == [1] * len(ITEMS)
    assert server.cf().delete(key, "item 7") and seen.remove("item 7")
    back = CuckooFilter.from_chunks(pieces(server.cf().scandump, key))
    assert back == seen


def test_chunks_are_of_one_moment():
    seen = ScalableBloomFilter(1000)
    seen.update(list("ab"))
    chunks = seen.chunks()
    first = next(chunks)
    seen.update(range(100_000))
    back = ScalableBloomFilter.from_chunks([first, *chunks])
    assert back.contains_many(list("ab")) == [True, True] and len(back) == 2


def test_damaged_chunks():
    seen = ScalableBloomFilter(100, seed=1)
    seen.update(range(5000))
    chunks = list(seen.chunks())
    assert len(chunks) > 2
    from_chunks = ScalableBloomFilter.from_chunks
    assert from_chunks(chunks) == seen
    for bad, text in [
        ([], "no chunk"),
        (chunks[1:], "not a header"),
        (chunks[:-1], "the chunks end after"),
        ([chunks[0], *chunks[2:]], "missing or out of order"),
        ([chunks[0], *chunks[:0:-1]], "missing or out of order"),
        ([*chunks, (chunks[-1][0] + 1, b"x")], "outside"),
        ([(1, chunks[0][1][:-1])], "not a header"),
        ([(1, b"")], "not a header"),
        ([(-1, b"abc")], "not a header"),
        ([chunks[0], (-5, b"abc")], "missing or out of order"),
        ([chunks[0], (4, chunks[1][1])], "missing or out of order"),
    ]:
        with pytest.raises(FormatError, match=text):
            from_chunks(bad)
    for bad in ([1], [(1,)], [("a", b"")], 7, [(1, "text")]):
        with pytest.raises((TypeError, ValueError, BufferError)):
            from_chunks(bad)
