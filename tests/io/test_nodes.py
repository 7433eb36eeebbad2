import numpy as np
import polars as pl
import pytest

from coterie.io.errors import DuplicateError
from coterie.io.nodes import read_coordinates


def test_one_place_a_node_in_order(tmp_path):
    table = pl.DataFrame({"id": [3, 1, 3, 1], "x": [0.5, 2.0, 0.5, 2.0 + 1e-13], "z": [1.0, 4.0, 1.0, 4.0]})
    table[:2].write_parquet(tmp_path / "1.parquet")
    table[2:].write_parquet(tmp_path / "2.parquet")
    ids, places = read_coordinates(tmp_path, "id", ("z", "x"))
    assert ids == ["1", "3"]
    np.testing.assert_array_equal(places, [[4.0, 2.0], [1.0, 0.5]])


def test_names_of_columns_do_not_get_mixed_up(tmp_path):
    pl.DataFrame({"admin": ["b", "a"], "first": [1.0, 2.0], "id": [3.0, 4.0]}).write_csv(tmp_path / "t.csv")
    ids, places = read_coordinates(tmp_path / "t.csv", "admin", ("id", "first"))
    assert ids == ["a", "b"]
    np.testing.assert_array_equal(places, [[4.0, 2.0], [3.0, 1.0]])


def test_two_places_of_one_node(tmp_path):
    pl.DataFrame({"id": [1, 2], "x": [0.5, 2.0]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"id": [2, 1], "x": [2.0, 0.6]}).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(DuplicateError, match=r"2\.parquet: column 'x', row 2: 0.6, but node '1' had 0.5"):
        read_coordinates(tmp_path, "id", ("x",))
