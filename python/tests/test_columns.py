"""Columns of pandas, polars and Arrow, and rows without a value in them."""

import datetime
import sys

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

from everbloom import BloomFilter, CuckooFilter, ScalableBloomFilter, WindowedBloomFilter

TEXT = ["a", None, "b", "a", None]
INTS = [7, None, 8, 7, None]


class Exported:
    """What another library has: only what Arrow asks of it."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_array__(self, requested_schema=None):
        return self.column.__arrow_c_array__(requested_schema)


class Streamed:
    def __init__(self, column):
        self.column = column

    def __arrow_c_stream__(self, requested_schema=None):
        return self.column.__arrow_c_stream__(requested_schema)


TEXT_COLUMNS = {
    "pandas object": lambda values: pandas.Series(values, dtype=object),
    "pandas default": pandas.Series,
    "pandas string": lambda values: pandas.Series(values, dtype="string"),
    "pandas array": lambda values: pandas.array(values, dtype="string"),
    "pandas index": lambda values: pandas.Index(values, dtype=object),
    "pandas, other labels": lambda values: pandas.Series(values, index=range(len(values))[::-1]),
    "pandas python": lambda values: pandas.Series(values, dtype="string[python]"),
    "pandas arrow": lambda values: pandas.Series(values, dtype=pandas.ArrowDtype(pyarrow.string())),
    "pandas category": lambda values: pandas.Series(values, dtype="category"),
    "pandas categories": lambda values: pandas.Categorical(values, ["b", "x", "a"]),
    "polars": polars.Series,
    "polars slice": lambda values: polars.Series(["x", *values, "y"]).slice(1, len(values)),
    "polars chunks": lambda values: polars.Series(values[:2]).append(polars.Series(values[2:])),
    "polars category": lambda values: polars.Series(values, dtype=polars.Categorical),
    "polars enum": lambda values: polars.Series(values, dtype=polars.Enum(["x", "b", "a"])),
    "arrow": pyarrow.array,
    "arrow large": lambda values: pyarrow.array(values, pyarrow.large_string()),
    "arrow views": lambda values: pyarrow.array(values, pyarrow.string_view()),
    "arrow slice": lambda values: pyarrow.array(["x", None, *values, "y"])[2:-1],
    "arrow chunks": lambda values: pyarrow.chunked_array([values[:2], values[2:]]),
    "arrow dictionary": lambda values: pyarrow.array(values).dictionary_encode(),
    "arrow dictionary slice": lambda values: (
        pyarrow.array(["x", None, *values]).dictionary_encode()[2:]
    ),
    "arrow dictionary with null": lambda values: pyarrow.DictionaryArray.from_arrays(
        [["b", None, "a"].index(value) for value in values], pyarrow.array(["b", None, "a"])
    ),
    "arrow capsules": lambda values: Exported(pyarrow.array(values)),
    "arrow stream": lambda values: Streamed(pyarrow.chunked_array([values[:1], values[1:]])),
}
INT_COLUMNS = {
    "pandas object": TEXT_COLUMNS["pandas object"],
    "pandas Int64": lambda values: pandas.Series(values, dtype="Int64"),
    "pandas category": TEXT_COLUMNS["pandas category"],
    "polars": polars.Series,
    "arrow": pyarrow.array,
    "arrow chunks": TEXT_COLUMNS["arrow chunks"],
}
COLUMNS = [(TEXT_COLUMNS[name], TEXT) for name in TEXT_COLUMNS]
COLUMNS += [(INT_COLUMNS[name], INTS) for name in INT_COLUMNS]
NAMES = [f"text: {name}" for name in TEXT_COLUMNS] + [f"ints: {name}" for name in INT_COLUMNS]


@pytest.fixture(params=[BloomFilter, ScalableBloomFilter])
def seen(request):
    return request.param(10_000, 1e-9)


def is_mask(answers, expected):
    return isinstance(answers, np.ndarray) and answers.tolist() == expected


@pytest.mark.parametrize("column, values", COLUMNS, ids=NAMES)
def test_columns_answer_arrays(seen, column, values):
    values = [value for value in values if value is not None]
    assert is_mask(seen.add_many(column(values)), [True, True, False])
    assert is_mask(seen.contains_many(column(values[:2])), [True, True])
    seen.clear()
    seen.update(column(values), skip_missing=True)
    assert values[0] in seen and values[1] in seen and len(seen) == 2


@pytest.mark.parametrize("column, values", COLUMNS, ids=NAMES)
def test_a_missing_value_is_an_error_before_anything_is_added(seen, column, values):
    for task in (seen.update, seen.add_many, seen.contains_many):
        with pytest.raises(ValueError, match="row 1 has no value.*skip_missing=True"):
            task(column(values))
    assert len(seen) == 0 and seen.fill_ratio() == 0


@pytest.mark.parametrize("column, values", COLUMNS, ids=NAMES)
def test_missing_values_are_skipped_on_request(seen, column, values):
    new = seen.add_many(column(values), skip_missing=True)
    assert is_mask(new, [True, False, True, False, False])
    assert len(seen) == 2
    found = seen.contains_many(column(values), skip_missing=True)
    assert is_mask(found, [True, False, True, True, False])
    seen.clear()
    seen.update(column(values), skip_missing=True)
    assert len(seen) == 2


def test_a_column_without_any_value(seen):
    nothing = pandas.Series([None, None], dtype=object)
    assert is_mask(seen.add_many(nothing, skip_missing=True), [False, False])
    assert is_mask(seen.contains_many(pyarrow.array([], pyarrow.string())), [])


def test_the_answers_select_rows_of_a_table(seen):
    table = pandas.DataFrame({"url": ["a", None, "b", "a"], "n": range(4)})
    new = table[seen.add_many(table["url"], skip_missing=True)]
    assert new["n"].tolist() == [0, 2]
    frame = polars.DataFrame({"url": ["b", "c"]})
    assert frame.filter(~seen.contains_many(frame["url"]))["url"].to_list() == ["c"]


def test_rows_are_counted_with_those_that_are_skipped(seen):
    column = pandas.Series([None, "a", None, 1.5, "b"], dtype=object)
    for change in (seen.update, seen.add_many, seen.contains_many):
        with pytest.raises(TypeError, match="row 3, counted from 0: float"):
            change(column, skip_missing=True)
    assert len(seen) == 0
    column[3] = "\ud800"
    with pytest.raises(UnicodeEncodeError, match="in row 3"):
        seen.update(column, skip_missing=True)
    assert len(seen) == 0


def test_a_column_of_structs_says_what_to_write(seen):
    rows = [{"id": 1, "day": 2}, {"id": 3, "day": 4}]
    arrow = pyarrow.array(rows)
    frame = pandas.Series(rows, dtype=pandas.ArrowDtype(arrow.type))
    for column in (arrow, pyarrow.chunked_array([arrow]), arrow[:0]):
        for change in (seen.update, seen.add_many, seen.contains_many):
            with pytest.raises(TypeError, match=r"struct<.*pyarrow.compute.struct_field\("):
                change(column)
    for column in (polars.Series(rows), polars.Series(rows)[:0], frame):
        with pytest.raises(TypeError, match=r"(?i)struct.*column.struct.field\("):
            seen.update(column, skip_missing=True)
    assert len(seen) == 0
    # What it says works.
    seen.update(polars.Series(rows).struct.field("id"))
    assert seen.contains_many(pyarrow.compute.struct_field(arrow, "id")).all()
    assert 1 in seen and 3 in seen and len(seen) == 2


def test_skip_missing_is_for_columns(seen):
    for items in (["a", None], ("a",), iter("a"), np.array(["a"])):
        with pytest.raises(TypeError, match="skip_missing is for columns"):
            seen.update(items, skip_missing=True)


TABLES = [
    pandas.DataFrame({"url": ["a"]}),
    polars.DataFrame({"url": ["a"]}),
    pyarrow.table({"url": ["a"]}),
    pyarrow.record_batch({"url": ["a"]}),
    duckdb.sql("SELECT 'a' AS url"),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__module__)
def test_a_table_is_not_a_column(seen, table):
    for task in (seen.update, seen.add_many, seen.contains_many):
        with pytest.raises(TypeError, match=r"is a table: pass one of its columns.*\['url'\]"):
            task(table)


# Of each type: a column, and the same items as a list.
TYPES = {
    "bytes": (pyarrow.array([b"a", b"\0"]), [b"a", b"\0"]),
    "large bytes": (pyarrow.array([b"a", b"\0"], pyarrow.large_binary()), [b"a", b"\0"]),
    "fixed bytes": (pyarrow.array([b"a\0", b"\0b"], pyarrow.binary(2)), [b"a\0", b"\0b"]),
    "polars bytes": (polars.Series([b"a", b"\0"]), [b"a", b"\0"]),
    "long views": (polars.Series(["x" * n for n in range(40)]), ["x" * n for n in range(40)]),
    "text": (polars.Series(["", "\0", "é", "漢字", "🦀"]), ["", "\0", "é", "漢字", "🦀"]),
    "bool": (pyarrow.array([True, False, True] * 5), [1, 0]),
    "bool slice": (pyarrow.array([False] * 9 + [True])[9:], [True]),
    "polars bool": (polars.Series([True]), [1]),
}
for width in (8, 16, 32, 64):
    for name, least in ((f"int{width}", -(2 ** (width - 1))), (f"uint{width}", 0)):
        numbers = [least, 0, 7, 2**width - 1 + least]
        TYPES[name] = (pyarrow.array(numbers, name), numbers)
        TYPES[f"{name} dictionary"] = (pyarrow.array(numbers, name).dictionary_encode(), numbers)


@pytest.mark.parametrize("column, items", TYPES.values(), ids=TYPES.keys())
def test_items_of_a_column_are_those_of_a_list(seen, column, items):
    seen.update(column)
    assert all(seen.contains_many(items)) and len(seen) == len(set(items))
    seen.clear()
    seen.update(items)
    assert seen.contains_many(column).all()
    assert not seen.add_many(column).any()


def test_many_chunks_of_many_items(seen):
    texts = [f"https://{i % 700}.example/{i % 1500}" for i in range(3000)]
    chunks = [texts[:1], texts[1:600], [], texts[600:]]
    for column in (
        pyarrow.chunked_array(chunks),
        pyarrow.chunked_array([pyarrow.array(chunk).dictionary_encode() for chunk in chunks if chunk]),
        polars.Series(texts),
        polars.Series(texts, dtype=polars.Categorical),
        pandas.Series(texts, dtype=object),
        np.array(texts),
        np.array(texts, dtype=object)[::-1],
    ):
        seen.clear()
        rows = texts if str(column[0]) == texts[0] else texts[::-1]
        other = seen.empty_like()
        assert seen.add_many(column).tolist() == other.add_many(rows)
        assert seen == other
        assert seen.contains_many(column).all()


def test_a_dictionary_asks_each_value_once_and_only_those_in_use(seen):
    column = pyarrow.DictionaryArray.from_arrays([2, 0, 2], ["a", "unused", "b", "a"])
    assert is_mask(seen.add_many(column), [True, True, False])
    assert "unused" not in seen and len(seen) == 2
    twice = pyarrow.DictionaryArray.from_arrays([0, 3, 1], ["c", "d", "e", "c"])
    assert is_mask(seen.add_many(twice), [True, False, True])


def test_a_dictionary_in_filters_that_count_or_forget():
    column = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    basket = CuckooFilter(1000)
    assert is_mask(basket.add_many(column), [True, True, False])
    assert (basket.count("a"), basket.count("b")) == (2, 1)
    # What comes again is remembered from then on: the last one is never forgotten.
    last = WindowedBloomFilter(100, 1e-9, seed=1)
    plain = WindowedBloomFilter(100, 1e-9, seed=1)
    rows = ["again", *map(str, range(60)), "again", *map(str, range(60, 140))]
    last.update(pyarrow.array(rows).dictionary_encode())
    plain.update(rows)
    assert last == plain and "again" in last


def test_a_broken_dictionary(seen):
    indices = pyarrow.array([0, 7, -1], pyarrow.int8())
    broken = pyarrow.DictionaryArray.from_arrays(indices, ["a"], safe=False)
    with pytest.raises(ValueError, match="row 1 has no value"):
        seen.update(broken)
    assert len(seen) == 0
    assert is_mask(seen.add_many(broken, skip_missing=True), [True, False, False])


def test_a_column_of_nulls(seen):
    for column in (pyarrow.nulls(3), polars.Series([None, None, None])):
        with pytest.raises(ValueError, match="row 0 has no value"):
            seen.update(column)
        assert is_mask(seen.add_many(column, skip_missing=True), [False] * 3)


def test_pandas_without_pyarrow(seen, monkeypatch):
    column = pandas.Series(["a", "b", "a"], dtype="category")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert is_mask(seen.add_many(column), [True, True, False])


def test_text_among_other_objects(seen):
    column = pandas.Series([*map(str, range(700)), 7, b"8", *map(str, range(700))], dtype=object)
    assert seen.add_many(column).tolist() == [True] * 701 + [False] * 701
    assert seen.contains_many(column.to_numpy()).all()


def test_values_that_are_no_items(seen):
    with pytest.raises(TypeError, match="an array of float64"):
        seen.update(pandas.Series([1.5, 2.5]))
    with pytest.raises(TypeError, match="float is not an item"):
        seen.update(pandas.Series(["a", 1.5], dtype=object))
    for column in (pyarrow.array([1.5]), polars.Series([1.5]), pyarrow.array([[1]])):
        with pytest.raises(TypeError, match="is not (an item|of items)"):
            seen.update(column)
    days = pandas.period_range("2026-01-01", periods=2, freq="D")
    for column in (days, days.to_series(), polars.Series([datetime.date(2026, 1, 1)])):
        with pytest.raises(TypeError, match="is not an item"):
            seen.update(column)
    assert len(seen) == 0


class OnlyList:
    """Of an array that does not become numpy's."""

    def to_numpy(self):
        raise ValueError("it would need a copy")

    def to_pylist(self):
        return ["x", "y"]


def test_what_is_only_a_list(seen):
    assert is_mask(seen.add_many(OnlyList()), [True, True])
    without_list = type("WithoutList", (), {"to_numpy": OnlyList.to_numpy})()
    with pytest.raises(ValueError, match="need a copy"):
        seen.update(without_list)
