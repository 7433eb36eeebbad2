"""Missing values in a frame of features are named."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie as ct


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_column_and_row_are_named(library):
    X = library({"a": [1.0, 2.0, 3.0], "area": [1.0, None, None]})
    with pytest.raises(ValueError, match="column 'area' of X is NaN in row 1 and 1 more"):
        ct.NetworkedLinearRegression().fit(X, np.ones(3))


def test_the_index_of_a_frame_names_the_nodes():
    places = pd.DataFrame({"lat": [1.0, 2.0, 3.0], "lon": [0.0, 0.0, 0.0]}, index=["n", "m", "s"])
    assert list(ct.knn_graph(places, 1).ids) == ["n", "m", "s"]
    assert list(ct.knn_graph(places, 1, ids=[3, 4, 5]).ids) == [3, 4, 5]
    assert ct.knn_graph(places.to_numpy(), 1).ids is None
