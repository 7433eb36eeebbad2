import numpy as np
import polars as pl
import pytest

import coterie as ct
from coterie.io.edges import edge_frame, read_graph
from coterie.io.errors import BadGraphError, ColumnTypeError, DuplicateError
from coterie.problem.convert import Measure


def test_what_is_written_is_read(tmp_path):
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 3), (2, 3)], [1.0, 2.0, 0.5], ids=["a", "b", "c", "d"])
    edge_frame(graph).write_parquet(tmp_path / "edges.parquet")
    again = read_graph(tmp_path / "edges.parquet")
    assert again.names == graph.names
    np.testing.assert_array_equal(again.edges, graph.edges)
    np.testing.assert_array_equal(again.weights, graph.weights)


def test_ends_of_two_types_become_text(tmp_path):
    (tmp_path / "edges.csv").write_text("i,j\n1,2\n2,B3\n")
    assert list(read_graph(tmp_path / "edges.csv").names) == ["1", "2", "B3"]


def test_an_edge_may_be_listed_each_way_round(tmp_path):
    (tmp_path / "edges.csv").write_text("i,j,weight\n1,2,3\n2,1,3\n")
    assert read_graph(tmp_path / "edges.csv").n_edges == 1


def test_rows_are_counted_in_their_own_file(tmp_path):
    pl.DataFrame({"i": [1, 2], "j": [2, 3], "weight": [1.0, 1.0]}).write_csv(tmp_path / "1.csv")
    pl.DataFrame({"i": [3, 3], "j": [4, 2], "weight": [1.0, 5.0]}).write_csv(tmp_path / "2.csv")
    with pytest.raises(DuplicateError, match=r"2\.csv: column 'weight', row 2: the edge '3' – '2' has the weight 5.0"):
        read_graph(tmp_path)


def test_weights_of_text_are_named(tmp_path):
    pl.DataFrame({"a": [1], "b": [2], "kind": ["road"]}).write_csv(tmp_path / "edges.csv")
    with pytest.raises(ColumnTypeError, match="column 'kind' must hold numbers, but is String"):
        read_graph(tmp_path / "edges.csv", Measure(weight="kind"))


def test_ids_are_read_as_they_stand_at_both_ends(tmp_path):
    """One column that looks like numbers, and one that does not, are one set of ids."""
    (tmp_path / "edges.csv").write_text("from,to\n01003,01005\n01005,A1\n")
    assert list(read_graph(tmp_path / "edges.csv").names) == ["01003", "01005", "A1"]
    with pytest.raises(ColumnTypeError, match="column 'to' names nodes, but is String; ids were asked for as whole"):
        read_graph(tmp_path / "edges.csv", text_ids=False)
    (tmp_path / "edges.csv").write_text("from,to\n01003,01005\n")
    assert list(read_graph(tmp_path / "edges.csv", text_ids=False).names) == [1003, 1005]


def test_distances_become_weights(tmp_path):
    pl.DataFrame({"i": ["a", "b"], "j": ["b", "c"], "km": [0.0, 2.0]}).write_csv(tmp_path / "edges.csv")
    np.testing.assert_allclose(read_graph(tmp_path / "edges.csv", Measure(distance="km")).weights, [5.0, 1 / 2.2])
    pl.DataFrame({"i": ["a", "b"], "j": ["b", "c"], "km": [1.0, -2.0]}).write_csv(tmp_path / "edges.csv")
    with pytest.raises(BadGraphError, match=r"column 'km', row 2: the distance is -2\.0; distances are finite and not"):
        read_graph(tmp_path / "edges.csv", Measure(distance="km"))
