"""Items in arrays."""

import array
import datetime
import uuid

import numpy as np
import pytest

from everbloom import BloomFilter, ScalableBloomFilter

INTS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8", "?"]


@pytest.fixture(params=[BloomFilter, ScalableBloomFilter])
def seen(request):
    return request.param(10_000, 1e-9)


@pytest.mark.parametrize("dtype", INTS)
def test_arrays_of_ints(seen, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        items = np.array([False, True])
    else:
        info = np.iinfo(dtype)
        items = np.array([info.min, info.max, 0, 1, 7], dtype=dtype)
    answers = seen.add_many(items)
    assert isinstance(answers, np.ndarray) and answers.dtype == bool
    # One item for each value, the same as Python's.
    assert answers.tolist() == [True] * len(items) if dtype.kind != "u" else True
    for number in items.tolist():
        assert int(number) in seen
    assert seen.contains_many(items).all()
    assert 5 not in seen


def test_the_answers_are_a_mask(seen):
    seen.update(np.arange(1000))
    asked = np.arange(500, 1500)
    known = seen.contains_many(asked)
    known[0] = False
    assert asked[~known].tolist() == [500, *range(1000, 1500)]


def test_long_strided_and_reversed(seen):
    items = np.arange(20_000).reshape(10_000, 2)[:, 1][::-3]
    seen.update(items)
    assert all(number in seen for number in items.tolist())
    assert len(seen) == len(items)
    assert 0 not in seen


def test_fixed_width_bytes(seen):
    items = np.array([b"a", b"abc", b"", b"abcd"])
    assert items.dtype == "S4"
    seen.update(items)
    # The zeros at the end are no part of the item, as numpy itself sees it.
    assert "a" in seen and "abc" in seen and "" in seen and "abcd" in seen
    assert b"a\0\0\0" not in seen
    assert seen.contains_many(np.array([b"abc", b"x"])).tolist() == [True, False]


def test_text_and_objects(seen):
    seen.update(np.array(["ä", "abc"]))
    assert "ä" in seen and "abc" in seen
    seen.update(np.array(["x", 7, b"y"], dtype=object))
    assert "x" in seen and 7 in seen and "y" in seen
    answers = seen.contains_many(np.array(["x", "z"], dtype=object))
    assert isinstance(answers, np.ndarray) and answers.tolist() == [True, False]


@pytest.mark.parametrize("order", ["<", ">"])
def test_text_of_all_lengths_and_alphabets(seen, order):
    texts = ["", "a", "a\0b", "é", "漢字", "🦀 crab", *map(str, range(1500))]
    column = np.array(texts, dtype=f"{order}U8")
    assert seen.add_many(column).all() and seen.contains_many(texts) == [True] * len(texts)
    assert seen.contains_many(column[::-2]).all() and len(seen) == len(texts)
    # As numpy sees it, zeros at the end are no part of a text.
    assert seen.contains_many(np.array(["a\0\0"])).all()


def test_half_a_pair_of_surrogates_is_no_text(seen):
    column = np.array(["a"] * 600 + ["\ud800", "b"])
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        seen.update(column)
    assert len(seen) == 0


def test_objects_that_are_no_text(seen):
    column = np.array(["a"] * 600 + ["\ud800"], dtype=object)
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        seen.update(column)
    with pytest.raises(TypeError, match="NoneType is not an item"):
        seen.update(np.empty(3, dtype=object))
    assert len(seen) == 0


def test_one_of_numpys_ints_is_an_item(seen):
    seen.add(np.int64(7))
    assert 7 in seen and np.uint8(7) in seen


@pytest.mark.parametrize("dtype", ["f8", "c16", "V4"])
def test_what_is_no_item(seen, dtype):
    with pytest.raises(TypeError, match=f"an array of .* is not of items"):
        seen.update(np.zeros(3, dtype=dtype))
    with pytest.raises(TypeError):
        seen.update(np.zeros(3, dtype="M8[s]"))


def test_one_dimension(seen):
    for items in (np.zeros((2, 2), dtype=int), np.array(7)):
        with pytest.raises(ValueError, match="one dimension"):
            seen.update(items)
    with pytest.raises(TypeError, match="ndarray is not an item"):
        seen.add(np.array([1, 2]))
    assert seen.contains_many(np.array([], dtype=int)).tolist() == []


def test_other_arrays(seen):
    seen.update(array.array("q", [1, -2]))
    assert 1 in seen and -2 in seen
    assert seen.contains_many(array.array("H", [1, 3])) == [True, False]
    # One item, as bytes are.
    for many in (seen.add_many, seen.update, seen.contains_many):
        with pytest.raises(TypeError, match="memoryview is one item"):
            many(memoryview(b"\x01\x05"))


HALF = "\ud800"


@pytest.mark.parametrize("wrong", [1.5, None, HALF, 2**200, ()])
@pytest.mark.parametrize(
    "form", [list, tuple, lambda rows: np.array([*rows, None], dtype=object)[:-1]]
)
def test_nothing_is_added_when_a_row_is_no_item(seen, wrong, form):
    for rows in (["a", "b", wrong, "c"], ["a", 1, wrong], ["a"] * 5000 + [wrong]):
        row = rows.index(wrong)
        for add in (seen.add_many, seen.update):
            with pytest.raises((TypeError, ValueError, OverflowError), match=f"row {row}, counted"):
                add(form(rows))
        assert len(seen) == 0 and "a" not in seen
    assert all(seen.add_many(form(["a", "b"])))


def test_half_a_character_in_an_array_of_text_adds_nothing(seen):
    texts = np.array(["a", "b" * 600, HALF])
    with pytest.raises(ValueError, match="row 2, counted"):
        seen.add_many(texts)
    assert len(seen) == 0


def test_what_comes_once_is_added_until_the_error(seen):
    def items():
        yield "a"
        yield 1.5

    with pytest.raises(TypeError, match="row 1, counted from 0: float is not an item"):
        seen.add_many(items())
    assert len(seen) == 1 and "a" in seen

    def ends():
        yield "b"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        seen.add_many(ends())
    assert "b" in seen


def test_masked_rows_are_refused(seen):
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    for many in (seen.add_many, seen.update, seen.contains_many):
        with pytest.raises(ValueError, match="row 1 is masked"):
            many(masked)
    assert len(seen) == 0
    assert seen.add_many(masked.compressed()).all() and 2 not in seen
    assert seen.add_many(np.ma.array([4, 5])).all()


def test_a_bool_of_numpy_is_a_bool(seen):
    assert seen.add(np.bool_(True)) and not seen.add(True) and 0 not in seen
    assert not seen.add_many([np.bool_(True)])[0]


@pytest.mark.parametrize(
    "wrong, said",
    [
        (datetime.date(2026, 1, 1), "isoformat"),
        (uuid.UUID(int=7), r"str\(x\) or x.bytes"),
        (1.5, r"str\(x\)"),
        (np.datetime64(1, "s"), "int64"),
        ([1], "tuple"),
    ],
)
def test_the_error_says_what_to_write(seen, wrong, said):
    with pytest.raises(TypeError, match=said):
        seen.add(wrong)
    with pytest.raises(TypeError, match="int64"):
        seen.add_many(np.array([1.5]))
    with pytest.raises(TypeError, match="one field"):
        seen.add_many(np.zeros(2, dtype=[("id", "i8")]))
