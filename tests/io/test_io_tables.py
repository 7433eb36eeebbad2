import sys

import numpy as np
import polars as pl
import pytest

from coterie.io.errors import ColumnTypeError, EmptyDataError, MissingColumnError, UnreadableFileError
from coterie.io.files import MissingExtraError
from coterie.io.memory import memory_needed
from coterie.io.sources import data_files
from coterie.io.tables import count_rows, read_table


def test_a_table_as_it_is(tmp_path):
    table = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    table.write_csv(tmp_path / "1.csv")
    table.write_parquet(tmp_path / "2.parquet")
    table.write_ipc(tmp_path / "3.arrow")
    for file in tmp_path.iterdir():
        assert read_table(file).equals(table)
    assert read_table(tmp_path, ["b"]).equals(pl.concat([table] * 3).select("b"))
    assert count_rows(tmp_path) == 6


def test_numbers_of_two_types_become_one(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"a": [1.5]}).write_parquet(tmp_path / "2.parquet")
    assert read_table(tmp_path)["a"].to_list() == [1, 1.5]
    pl.DataFrame({"a": ["text"]}).write_parquet(tmp_path / "3.parquet")
    with pytest.raises(ColumnTypeError, match=r"3\.parquet: column 'a' is String here, but Int64 in .*1\.parquet"):
        read_table(tmp_path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"no such file or folder"):
        data_files(tmp_path / "rows.csv")
    with pytest.raises(EmptyDataError, match=r"no file of this folder ends in \.parquet"):
        data_files(tmp_path)
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(UnreadableFileError, match=r"rows\.xlsx: cannot tell"):
        data_files(tmp_path / "rows.xlsx")
    pl.DataFrame({"a": [1]}).write_csv(tmp_path / "a.csv")
    with pytest.raises(MissingColumnError, match="no column 'z'; the columns are 'a'"):
        read_table(tmp_path / "a.csv", ["z"])
    pl.DataFrame({"a": []}, schema={"a": pl.Int64}).write_csv(tmp_path / "a.csv")
    with pytest.raises(EmptyDataError, match=r"a\.csv: there are no rows"):
        read_table(tmp_path / "a.csv")


def test_memory_is_told_before_it_is_used(tmp_path):
    pl.DataFrame({name: np.zeros(1000) for name in "aby"}).write_parquet(tmp_path / "rows.parquet")
    assert memory_needed(tmp_path, 2) == 6 * 1000 * 4 * 8


def test_without_polars_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(MissingExtraError, match=r"coterie\[data\]"):
        read_table(tmp_path / "a.csv")


def test_a_polars_that_loses_errors_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pl, "__version__", "1.37.1")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(MissingExtraError, match=r"Polars 1\.37\.1 is too old"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_separator_is_named(tmp_path, mark):
    (tmp_path / "rows.csv").write_text(f"node{mark}x\na{mark}1\n")
    with pytest.raises(MissingColumnError, match="it seems to be separated by") as error:
        read_table(tmp_path / "rows.csv", ["node"])
    assert repr(mark) in str(error.value)
