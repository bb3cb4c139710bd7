"""Columns of pandas, polars and Arrow, and rows without a value in them."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from everbloom import BloomFilter, ScalableBloomFilter

TEXT = ["a", None, "b", "a", None]
INTS = [7, None, 8, 7, None]

TEXT_COLUMNS = {
    "pandas object": lambda values: pandas.Series(values, dtype=object),
    "pandas default": pandas.Series,
    "pandas string": lambda values: pandas.Series(values, dtype="string"),
    "pandas array": lambda values: pandas.array(values, dtype="string"),
    "pandas index": lambda values: pandas.Index(values, dtype=object),
    "pandas, other labels": lambda values: pandas.Series(values, index=range(len(values))[::-1]),
    "polars": polars.Series,
    "arrow": pyarrow.array,
    "arrow chunks": lambda values: pyarrow.chunked_array([values[:2], values[2:]]),
}
INT_COLUMNS = {
    "pandas object": TEXT_COLUMNS["pandas object"],
    "pandas Int64": lambda values: pandas.Series(values, dtype="Int64"),
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


def test_skip_missing_is_for_columns(seen):
    for items in (["a", None], ("a",), iter("a"), np.array(["a"])):
        with pytest.raises(TypeError, match="skip_missing is for columns"):
            seen.update(items, skip_missing=True)
    with pytest.raises(ValueError, match="one dimension"):
        seen.update(pandas.DataFrame({"a": [1], "b": [2]}))


def test_values_that_are_no_items(seen):
    with pytest.raises(TypeError, match="an array of float64"):
        seen.update(pandas.Series([1.5, 2.5]))
    with pytest.raises(TypeError, match="float is not an item"):
        seen.update(pandas.Series(["a", 1.5], dtype=object))


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
