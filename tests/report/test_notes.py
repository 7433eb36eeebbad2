import numpy as np
import pytest
from fitted_models import fitted, with_everything

from coterie.report.notes import Notes


def noted(**notes):
    model = fitted()
    model.notes_ = notes
    return model


def test_a_model_without_notes():
    notes = Notes.of(fitted())
    assert notes.coordinates is notes.baselines is notes.seed is notes.command is None
    assert notes.data == {}
    assert notes.resolvability == []


def test_all_notes_are_read():
    notes = Notes.of(with_everything())
    assert notes.seed == 7
    assert notes.baselines.best == 1
    assert [row["resolved"] for row in notes.resolvability] == [True, False]


def test_latitude_goes_up_whichever_comes_first():
    values = np.random.default_rng(0).uniform([60, 25], [61, 26], (12, 2))
    ahead = Notes.of(noted(coordinates={"names": ["Latitude", "lng"], "values": values.tolist()})).coordinates
    behind = Notes.of(noted(coordinates={"names": ["lng", "lat"], "values": values[:, ::-1].tolist()})).coordinates
    assert ahead.names == ("lng", "Latitude")
    np.testing.assert_array_equal(ahead.values, behind.values)
    assert ahead.stretch == pytest.approx(2, rel=0.05)  # at 60 degrees a degree of longitude is half as long


def test_other_coordinates_keep_their_shape_and_gaps():
    values = [[1.0, 2.0]] * 10 + [None, [np.nan, 1.0]]
    coordinates = Notes.of(noted(coordinates={"names": ["x", "y"], "values": values})).coordinates
    assert coordinates.stretch == 1
    assert not coordinates.geographic
    assert np.isnan(coordinates.values).all(axis=1).sum() == 2


@pytest.mark.parametrize(
    ("key", "note", "problem"),
    [
        ("coordinates", {"names": ["x", "y"], "values": [[1.0, 2.0]]}, "12 pairs"),
        ("coordinates", {"names": ["x"], "values": [[1.0]] * 12}, "two names"),
        ("coordinates", {"values": []}, "names"),
        ("baselines", {"methods": ["a", "b"], "errors": [[1.0]], "over": "rows"}, "2 methods"),
        ("baselines", {"methods": ["a"], "errors": [[1.0, 2.0]], "over": "rows", "weights": [1]}, "2 folds"),
        ("baselines", {"methods": ["a"], "errors": [[1.0, 2.0]], "over": "rows", "weights": [1, 0]}, "positive"),
        ("resolvability", {"cluster": [1], "flow": []}, "no column n_nodes"),
        ("data", 3, "int"),
    ],
)
def test_a_bad_note_is_named(key, note, problem):
    with pytest.raises(ValueError, match=f"note '{key}' cannot be read.*{problem}"):
        Notes.of(noted(**{key: note}))
