from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie as ct
from coterie.estimators.tables import as_classes, as_labels, as_row_weights, has_column, library_of, take_groups

NUMBERS = [
    [1, None, 2],
    (1.0, np.nan, 2.0),
    np.array([1, None, 2], dtype=object),
    np.array([1, np.nan, 2]),
    pd.Series([1, None, 2]),
    pd.Series([1, None, 2], dtype="Int64"),
    pd.Series([1, None, 2], dtype="Float32"),
    pd.Series([1, None, 2], dtype=object),
    pl.Series([1, None, 2]),
    pl.Series([1.0, float("nan"), 2.0]),
]

STRINGS = [
    ["b", None, "a"],
    ["b", np.nan, "a"],
    np.array(["b", np.nan, "a"], dtype=object),
    pd.Series(["b", None, "a"]),
    pd.Series(["b", None, "a"], dtype="string"),
    pd.Series(["b", None, "a"], dtype="category"),
    pd.Series(["b", np.nan, "a"], dtype=object),
    pl.Series(["b", None, "a"]),
]

BOOLEANS = [[True, None, False], pd.Series([True, None, False], dtype="boolean"), pl.Series([True, None, False])]


@pytest.mark.parametrize("y", NUMBERS)
def test_gaps_among_numbers(y):
    assert as_labels(y, 3).tolist() == pytest.approx([1, np.nan, 2], nan_ok=True)
    classes, code = as_classes(y, 3)
    assert classes.tolist() == [1, 2]
    assert code.tolist() == pytest.approx([0, np.nan, 1], nan_ok=True)


@pytest.mark.parametrize("y", STRINGS)
def test_gaps_among_strings(y):
    classes, code = as_classes(y, 3)
    assert classes.tolist() == ["a", "b"]
    assert code.tolist() == pytest.approx([1, np.nan, 0], nan_ok=True)
    with pytest.raises(ValueError, match="could not convert string"):
        as_labels(y, 3)


@pytest.mark.parametrize("y", BOOLEANS)
def test_gaps_among_booleans(y):
    assert as_labels(y, 3).tolist() == pytest.approx([1, np.nan, 0], nan_ok=True)
    assert as_classes(y, 3)[0].tolist() == [False, True]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="X has 4 rows, y 3"):
        as_labels([1, 2, 3], 4)
    with pytest.raises(ValueError, match="X has 4 rows, y 3"):
        as_classes(["a", "b", "a"], 4)
    with pytest.raises(ValueError, match="X has 4 rows, sample_weight 3"):
        as_row_weights([1, 2, 3], 4)


def test_row_weights():
    assert as_row_weights(None, 3) is None
    assert as_row_weights(2, 3).tolist() == [2, 2, 2]
    assert as_row_weights(pd.Series([1, 2, 3]), 3).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="1D"):
        as_row_weights(np.ones((3, 2)), 3)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is nan"):
        as_row_weights([1, np.nan, 2], 3)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_nodes(library):
    frame = library.DataFrame({"town": ["a", "b"], "x": [1.0, 2.0]})
    features, ids = take_groups(frame, "town")
    assert isinstance(features, library.DataFrame)
    assert list(features.columns) == ["x"]
    assert ids == ["a", "b"]
    assert has_column(frame, "town")
    assert not has_column(frame, None)
    assert not has_column(np.ones((2, 2)), "town")
    assert library_of(frame) == library.__name__
    assert library_of(np.ones((2, 2))) is None
    assert library_of([[1.0]]) is None


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("column", [["red", "blue"], [date(2026, 1, 1), date(2026, 1, 2)]], ids=["text", "dates"])
def test_a_column_that_is_not_numbers_is_named(library, column):
    frame = library.DataFrame({"size": [1.0, 2.0], "colour": column})
    if library is pd and not isinstance(column[0], str):
        frame["colour"] = pd.to_datetime(frame["colour"])
    with pytest.raises(ValueError, match=r"column 'colour' of X holds .*, not numbers"):
        ct.NetworkedLinearRegression().fit(frame, [1.0, 2.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [1, np.inf, 2]}, r"y contains infinity .*: y\[1\] is inf"),
        ({"y": ["1", "2", "many"]}, r"y\[2\] is 'many'; labels are numbers; NetworkedLogisticRegression takes"),
        ({"X": [[0, 1], [np.nan, 2], [3, 4]]}, "column 0 of X is NaN in row 1: fill in or drop"),
        ({"X": pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, np.inf]})}, "column 'b' of X is infinity in row 2"),
        ({"sample_weight": [1, 1, -1]}, r"sample_weight\[2\] is -1; weights are finite numbers ≥ 0"),
        ({"sample_weight": [1, np.nan, 1]}, r"sample_weight\[1\] is nan; weights are finite numbers ≥ 0"),
    ],
)
def test_what_is_wrong_with_a_table_is_named_in_one_line(given, message):
    table = {"X": [[0.0, 1.0], [1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0, 3.0]} | given
    for model in (ct.NetworkedLinearRegression(), ct.NetworkedPoissonRegression()):
        with pytest.raises(ValueError, match=message) as error:
            model.fit(**table)
        assert "\n" not in str(error.value)


def test_what_is_wrong_with_classes_is_named():
    model, X = ct.NetworkedLogisticRegression(class_weight={"no": -1.0, "yes": 1.0}), [[0.0], [1.0], [2.0]]
    with pytest.raises(ValueError, match="class_weight of 'no' is -1; weights are finite numbers ≥ 0"):
        model.fit(X, ["no", "yes", "no"])
    with pytest.raises(ValueError, match=r"y\[1\] is 'yes', y\[2\] is 1; classes are all of one type"):
        model.fit(X, [None, "yes", 1])
