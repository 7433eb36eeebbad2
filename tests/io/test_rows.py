from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from coterie.io.errors import (
    BadValueError,
    ColumnTypeError,
    EmptyDataError,
    MissingColumnError,
    UnreadableFileError,
)
from coterie.io.rows import Columns, read_rows, scan_rows

ROLES = Columns("node", ("x",), "y", text_ids=False)
HEAD = "node,x,y\n"


def table(rows=10, **changed):
    plain = {"node": np.arange(rows) % 3, "x": np.arange(rows) / 2, "y": np.ones(rows)}
    return pl.DataFrame(plain | changed)


def with_value(column, row, value):
    values = table()[column].to_list()
    values[row - 1] = value
    return table(**{column: values})


def refused(path, error, *words):
    """The one line that the file is refused with."""
    with pytest.raises(error) as raised:
        read_rows(path, ROLES)
    message = str(raised.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("x", None, ["column 'x', row 7 (node 0)", "is missing"]),
        ("x", np.nan, ["column 'x', row 7 (node 0)", "is nan"]),
        ("x", -np.inf, ["column 'x', row 7 (node 0)", "is -inf"]),
        ("y", np.inf, ["column 'y', row 7 (node 0)", "labels are finite"]),
        ("y", -1e200, ["column 'y', row 7 (node 0)", "cannot be squared", "-1e+200"]),
        ("x", 1e300, ["column 'x', row 7 (node 0)", "cannot be squared", "1e+300"]),
        ("node", None, ["column 'node', row 7", "no node id"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_bad_values_are_named(tmp_path, column, value, words, ending):
    file = tmp_path / f"bad.{ending}"
    bad = with_value(column, 7, value)
    bad.write_csv(file) if ending == "csv" else bad.write_parquet(file, row_group_size=4)
    refused(file, BadValueError, str(file), *words)


def test_the_first_of_several_bad_values_is_named(tmp_path):
    both = with_value("x", 7, None).with_columns(y=pl.Series([1.0] * 4 + [np.inf] + [1.0] * 5))
    both.write_parquet(tmp_path / "bad.parquet")
    refused(tmp_path / "bad.parquet", BadValueError, "column 'y', row 5")


def test_rows_are_counted_in_their_own_file(tmp_path):
    table().write_parquet(tmp_path / "1.parquet")
    with_value("x", 3, None).write_parquet(tmp_path / "2.parquet")
    refused(tmp_path, BadValueError, "2.parquet: column 'x', row 3")


def test_sums_that_are_too_large_are_not_bad_values(tmp_path):
    table(x=np.full(10, 9e149)).write_parquet(tmp_path / "big.parquet")
    assert len(read_rows(tmp_path, ROLES)) == 10


@pytest.mark.parametrize(
    ("line", "words"),
    [("3,many,1", ["column 'x', row 2", "'many' is not a number"]), ("B4,1,1", ["column 'node', row 2", "'B4'"])],
)
def test_cells_of_a_csv_file_that_are_not_numbers(tmp_path, monkeypatch, line, words):
    monkeypatch.setattr("coterie.io.sources.LOOK_AHEAD", 1)
    (tmp_path / "bad.csv").write_text(f"{HEAD}1,2,3\n{line}\n4,5,6\n")
    refused(tmp_path / "bad.csv", BadValueError, "bad.csv", *words)


def test_a_csv_file_with_lines_of_different_lengths(tmp_path):
    (tmp_path / "bad.csv").write_text(f"{HEAD}1,2,3\n1,2,3,4\n")
    refused(tmp_path / "bad.csv", UnreadableFileError, "bad.csv", "more fields")


def test_ids_are_text_exactly_as_they_stand_unless_numbers_are_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text(f"{HEAD}01003,2,3\n1.50,2,\n")
    (tmp_path / "b.csv").write_text(f"{HEAD}01003,2,3\n")
    table().write_parquet(tmp_path / "c.parquet")
    text = replace(ROLES, text_ids=True)
    rows = read_rows(tmp_path / "a.csv", text)
    assert rows["node"].to_list() == ["01003", "1.50"]
    assert np.isnan(rows["y"][1])
    assert read_rows(tmp_path / "b.csv", ROLES)["node"].to_list() == [1003]
    assert read_rows(tmp_path / "c.parquet", text)["node"].to_list() == list(map(str, table()["node"]))


def test_a_column_that_is_not_there(tmp_path):
    table().write_parquet(tmp_path / "1.parquet")
    table().rename({"x": "z"}).write_parquet(tmp_path / "2.parquet")
    refused(tmp_path, MissingColumnError, "2.parquet", "no column 'x'", "'node', 'z', 'y'")


def test_columns_that_are_not_numbers(tmp_path):
    table(x=["a"] * 10).write_parquet(tmp_path / "text.parquet")
    refused(tmp_path / "text.parquet", ColumnTypeError, "text.parquet", "'x'", "String", "not numbers")
    table(node=np.ones(10)).write_parquet(tmp_path / "ids.parquet")
    refused(tmp_path / "ids.parquet", ColumnTypeError, "node column 'node' is Float64", "not whole numbers")


def test_ids_of_different_types_in_two_files(tmp_path):
    table().write_parquet(tmp_path / "1.parquet")
    table(node=list("abcdefghij")).write_parquet(tmp_path / "2.parquet")
    refused(tmp_path, ColumnTypeError, "2.parquet", "is String, not whole numbers")
    assert len(read_rows(tmp_path, replace(ROLES, text_ids=True))) == 20


def test_no_rows(tmp_path):
    (tmp_path / "nothing.csv").touch()
    refused(tmp_path / "nothing.csv", EmptyDataError, "nothing.csv: the file is empty")
    (tmp_path / "head.csv").write_text(HEAD)
    refused(tmp_path / "head.csv", EmptyDataError, "head.csv: there are no rows")
    table(0).write_parquet(tmp_path / "none.parquet")
    refused(tmp_path / "none.parquet", EmptyDataError, "none.parquet: there are no rows")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_was_cut_short(tmp_path, ending):
    file = tmp_path / f"cut.{ending}"
    table(1000).write_parquet(file) if ending == "parquet" else table(1000).write_ipc(file)
    file.write_bytes(file.read_bytes()[:-500])
    refused(file, UnreadableFileError, str(file), "cut short")


def test_batches_come_in_order_with_their_place(tmp_path):
    table(1000).write_parquet(tmp_path / "rows.parquet", row_group_size=100)
    seen = 1
    for rows in scan_rows(tmp_path / "rows.parquet", Columns("node", ("x",))):
        assert rows.first == seen
        assert rows.frame["x"][0] == (seen - 1) / 2
        assert rows.frame.columns == ["node", "x"]
        seen += len(rows.frame)
    assert seen == 1001


def test_every_other_column_is_a_feature_unless_named(tmp_path):
    table(z=np.arange(10)).write_parquet(tmp_path / "rows.parquet")
    assert Columns.of(tmp_path, "node", "y") == Columns("node", ("x", "z"), "y")
    assert Columns.of(tmp_path, "node", features=["z"]) == Columns("node", ("z",))
    with pytest.raises(MissingColumnError, match="'station'"):
        Columns.of(tmp_path, "station", "y")
    with pytest.raises(ValueError, match="named twice"):
        Columns.of(tmp_path, "node", "y", ["x", "y"])
    with pytest.raises(ValueError, match="no features"):
        Columns.of(tmp_path, "node", "y", [])
