"""Words, levels and gaps: what columns are before they are features."""

import math
import re

import polars as pl
import pytest

from coterie.io.errors import BadValueError, ColumnTypeError, DataError, EmptyDataError, MissingColumnError
from coterie.io.formats import Table, TextFormat
from coterie.io.preparation import Preparation, prepare
from coterie.io.rows import Columns, read_rows, scan_rows
from coterie.io.stream import stream_moments

ENDINGS = pytest.mark.parametrize("ending", ["csv", "parquet"])


def write(folder, ending="csv", name="rows", **columns):
    """A table, and its name."""
    columns = {"node": ["A", "A", "B", "B"], "x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 0.0, 1.0, None]} | columns
    frame, file = pl.DataFrame(columns, strict=False), folder / f"{name}.{ending}"
    frame.write_csv(file) if ending == "csv" else frame.write_parquet(file)
    return file


@ENDINGS
@pytest.mark.parametrize(
    "words", [["yes", "no", "no", "yes"], ["True", "FALSE", "false", "true"], [True, False, False, True]]
)
def test_words_are_one_and_zero(tmp_path, ending, words):
    file = write(tmp_path, ending, x=words, y=[*words[:3], None])
    rows = read_rows(file, Columns.of(file, "node", "y"))
    assert rows["x"].to_list() == [1, 0, 0, 1]
    assert rows["y"].to_list()[:3] == [1, 0, 0]
    assert math.isnan(rows["y"][3])


def test_words_among_numbers_are_not_taken_for_numbers(tmp_path):
    for x, value in ((["1.5", "no", "2", "3"], "no"), (["yes", "no", "5", "no"], "yes")):
        file = write(tmp_path, x=x)
        with pytest.raises(BadValueError, match=f"column 'x', row [12]: '{value}' is not a number.*--one-hot"):
            read_rows(file, Columns.of(file, "node", "y"))


def test_a_word_after_the_first_rows_is_refused_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.setattr("coterie.io.values.FIRST_ROWS", 2)
    file = write(tmp_path, x=["yes", "no", "no", "perhaps"])
    with pytest.raises(BadValueError, match="column 'x', row 4: 'perhaps' is not a number"):
        read_rows(file, Columns.of(file, "node", "y"))


def test_text_is_refused_with_what_can_be_done(tmp_path):
    for ending, error in (("csv", BadValueError), ("parquet", ColumnTypeError)):
        file = write(tmp_path, ending, x=["red", "blue", "red", "red"])
        with pytest.raises(error, match=r"'x'.*--features.*--exclude.*--one-hot"):
            read_rows(file, Columns.of(file, "node", "y"))
    file = write(tmp_path, y=["spam", "ham", "spam", None])
    with pytest.raises(BadValueError, match=r"column 'y', row 1: 'spam'.*--loss logistic"):
        read_rows(file, Columns.of(file, "node", "y"))


def test_all_columns_of_text_are_named_at_once(tmp_path):
    file = write(tmp_path, x=["red"] * 4, z=["a"] * 4, u=["yes", "no", "no", "no"], v=[1, 2, 3, 4], w=["Mo"] * 4)
    with pytest.raises(BadValueError, match=r"row 1: 'red' is not a number \(nor is what 'z', 'w' hold\); name"):
        read_rows(file, Columns.of(file, "node", "y"))


@pytest.mark.parametrize(("value", "decimal", "sign"), [("1,5", ".", ","), ("-.5", ",", "."), ("1.234", ",", ".")])
def test_the_other_decimal_sign_is_recognised(tmp_path, value, decimal, sign):
    (tmp_path / "a.tsv").write_text(f"node\tx\ty\nA\t{value}\t1\n")
    with pytest.raises(BadValueError, match=f"give --decimal {re.escape(sign)}$"):
        read_rows(Table(tmp_path / "a.tsv", TextFormat(decimal=decimal)), Columns("node", ("x",), "y"))


def test_a_thousand_is_not_taken_for_one_wherever_it_stands(tmp_path, monkeypatch):
    monkeypatch.setattr("coterie.io.sources.LOOK_AHEAD", 1)
    (tmp_path / "a.csv").write_text("node;x;y\nA;1,5;1\nB;1.234;2\n")
    with pytest.raises(BadValueError, match=r"column 'x', row 2: '1\.234' is not a number"):
        read_rows(Table(tmp_path / "a.csv", TextFormat(decimal=",")), Columns("node", ("x",), "y"))


def test_classes_may_have_names(tmp_path):
    file = write(tmp_path, y=["spam", "ham", "spam", None])
    columns = Columns.of(file, "node", "y", classes=True)
    assert read_rows(file, columns)["y"].to_list() == ["spam", "ham", "spam", None]
    file = write(tmp_path)
    assert not Columns.of(file, "node", "y", classes=True).text_labels


@ENDINGS
def test_levels_become_columns_but_for_the_first(tmp_path, ending):
    file = write(tmp_path, ending, colour=["red", "blue", "NA", "red"], month=[1, 12, 1, 2])
    columns, gaps = prepare(file, Columns.of(file, "node", "y"), ["colour", "month"])
    assert gaps is None
    assert columns.features == ("x", "colour=blue", "colour=red", "month=12", "month=2")
    rows = read_rows(file, columns).select(columns.features[1:])
    assert rows.rows() == [(0, 1, 0, 0), (1, 0, 1, 0), (0, 0, 0, 0), (0, 1, 0, 1)]
    assert stream_moments(file, columns).n_features == 5


@ENDINGS
def test_a_level_that_the_fit_has_not_seen_is_named(tmp_path, ending):
    file = write(tmp_path, ending, colour=["red", "blue", "red", "red"])
    columns, _ = prepare(file, Columns.of(file, "node", "y"), ["colour"])
    new = write(tmp_path, ending, "new", colour=["red", "blue", "pink", "red"])
    with pytest.raises(BadValueError, match=r"new\.\w+: column 'colour', row 3: 'pink'.*'blue', 'red'"):
        read_rows(new, columns)
    gap = write(tmp_path, ending, "gap", colour=["red", None, "red", "red"])
    with pytest.raises(BadValueError, match=r"column 'colour', row 2 .*is missing.*--missing"):
        read_rows(gap, columns)


def test_what_cannot_be_one_hot(tmp_path):
    file = write(tmp_path, colour=["red"] * 4)
    with pytest.raises(BadValueError, match="'colour' has 1 level"):
        prepare(file, Columns.of(file, "node", "y"), ["colour"])
    with pytest.raises(MissingColumnError, match="no column 'Colour'"):
        prepare(file, Columns.of(file, "node", "y"), ["Colour"])
    with pytest.raises(DataError, match="'y' is to be one-hot, but is no feature: add it"):
        prepare(file, Columns.of(file, "node", "y"), ["y"])
    file = write(tmp_path, colour=["red", "blue", "red", "red"], **{"colour=red": [1, 2, 3, 4]})
    with pytest.raises(DataError, match="rename"):
        prepare(file, Columns.of(file, "node", "y"), ["colour"])


@ENDINGS
def test_gaps_are_filled_with_means(tmp_path, ending):
    file = write(tmp_path, ending, x=[1.0, None, math.nan, 4.0], colour=["red", "blue", None, "red"])
    columns, gaps = prepare(file, Columns.of(file, "node", "y"), ["colour"], "mean")
    assert columns.made.means == {"x": 2.5, "colour=red": 0.666666666667}
    assert gaps.in_words("mean") == "3 missing values are filled with the means of their columns (x 2, colour 1)"
    rows = read_rows(file, columns)
    assert rows["x"].to_list() == [1, 2.5, 2.5, 4]
    assert rows["colour=red"].to_list() == [1, 0, 0.666666666667, 1]
    new = write(tmp_path, ending, "new", x=[None, 0.0, 0.0, 0.0], colour=["blue"] * 4)
    assert read_rows(new, columns)["x"].to_list() == [2.5, 0, 0, 0]
    assert sum(part.gaps["x"].sum() for part in scan_rows(new, columns)) == 1


@ENDINGS
def test_gaps_are_dropped(tmp_path, ending):
    file = write(tmp_path, ending, x=[1.0, None, math.nan, 4.0], y=[1.0, 2.0, 3.0, 4.0])
    columns, gaps = prepare(file, Columns.of(file, "node", "y"), missing="drop")
    assert gaps.in_words("drop") == "2 of 4 rows are left out, because values are missing (x 2)"
    assert read_rows(file, columns)["x"].to_list() == [1, 4]
    assert stream_moments(file, columns).m.tolist() == [1, 1]
    assert [x for part in scan_rows(file, columns) for x in part.frame["x"]] == [1, None, None, 4]
    nothing = write(tmp_path, ending, "nothing", x=[None] * 4)
    with pytest.raises(EmptyDataError, match="no row is left"):
        read_rows(nothing, columns)


def test_other_bad_values_are_refused_all_the_same(tmp_path):
    file = write(tmp_path, x=[1.0, None, math.inf, 4.0])
    for missing in ("mean", "drop"):
        with pytest.raises(BadValueError, match=r"column 'x', row 3 .*is inf"):
            prepare(file, Columns.of(file, "node", "y"), missing=missing)
    file = write(tmp_path, x=[None] * 4)
    with pytest.raises(BadValueError, match="'x' is empty in every row"):
        prepare(file, Columns.of(file, "node", "y"), missing="mean")
    with pytest.raises(ValueError, match="'median'"):
        prepare(file, Columns.of(file, "node", "y"), missing="median")


def test_what_r_writes_for_a_gap_is_one(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("node,x,y\nNA,NA,1\nNA,3,NA\nB,5,2\n")
    columns, gaps = prepare(file, Columns.of(file, "node", "y"), missing="mean")
    assert gaps.rows == 1
    rows = read_rows(file, columns)
    assert rows["node"].to_list() == ["NA", "NA", "B"]  # a node may be called so
    assert rows["x"].to_list() == [4, 3, 5]
    with pytest.raises(BadValueError, match=r"row 1 .*is missing"):
        read_rows(file, Columns.of(file, "node", "y"))


def test_nothing_asked_for_changes_nothing(tmp_path):
    file = write(tmp_path)
    columns = Columns.of(file, "node", "y")
    assert prepare(file, columns) == (columns, None)
    assert Preparation(("a", "b"), {"a": ("u", "v")}).features == {"a=v": "a", "b": "b"}
