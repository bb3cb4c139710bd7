"""The sessions in the documentation are what Python answers."""

import doctest
import os
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "page", ["README.md", "../docs/guide/python.md", "../docs/guide/dedup-table.md"]
)
def test_sessions(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = PYTHON / page
    failed, attempted = doctest.testfile(os.fspath(path), module_relative=False)
    assert attempted > 5 and failed == 0
