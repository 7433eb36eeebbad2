from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from comparison import assert_same

import coterie as ct
from coterie.io import stream
from coterie.io.errors import TooLargeError
from coterie.io.moments import Moments
from coterie.io.rows import Columns
from coterie.io.stream import stream_moments

ROLES = Columns("node", ("a", "b"), "y", text_ids=False)


def frame(N=3000, nodes=40, seed=0, offset=0.0):
    """Unsorted rows; a few nodes have one row only, and one has no label."""
    rng = np.random.default_rng(seed)
    node = np.concatenate([rng.integers(0, nodes, N), nodes + np.arange(5), [-7, -7]])
    values = rng.integers(-(2**20), 2**20, (len(node), 3)) / 2**17 + np.array([1.0, 0.01, 0.01]) * offset
    values[node == -7, 2] = np.nan
    values[rng.random(len(node)) < 0.1, 2] = np.nan
    return pl.DataFrame({"y": values[:, 2], "node": node, "other": "text", "b": values[:, 1], "a": values[:, 0]})


def reference(table):
    return Moments.of(table.select("a", "b"), table["y"], table["node"].to_numpy())


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_streamed_is_in_memory_to_rounding(tmp_path, ending, offset):
    table, path = frame(offset=offset), tmp_path / f"rows.{ending}"
    write = {"parquet": lambda: table.write_parquet(path, row_group_size=100), "csv": lambda: table.write_csv(path)}
    write.get(ending, lambda: table.write_ipc(path))()
    assert_same(stream_moments(path, ROLES), reference(table))


def test_offsets_that_come_late_and_outliers_that_come_first(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"node": np.zeros(20_000, dtype=int), "a": rng.standard_normal(20_000), "b": 1.7e9})
    table = table.with_columns(y=2 * pl.col("a"), b=pl.col("b") + pl.int_range(20_000) // 100)
    table[0, "a"] = 1e8  # the origin of its node is far from all other rows
    table.write_parquet(tmp_path / "rows.parquet")
    assert_same(stream_moments(tmp_path / "rows.parquet", ROLES), reference(table), rtol=1e-11)


def test_folders_and_patterns_are_one_table(tmp_path):
    table = frame()
    for k in range(3):
        table[k::3].write_parquet(tmp_path / f"part-{k}.parquet")
    table[:0].write_parquet(tmp_path / "part-3.parquet")  # a part without rows is fine
    (tmp_path / "_SUCCESS").touch()
    for path in (tmp_path, tmp_path / "part-*.parquet", str(tmp_path / "*")):
        assert_same(stream_moments(path, ROLES), reference(table))


def test_ids_may_be_text_and_features_of_any_number_type(tmp_path):
    table = frame().with_columns(
        node=pl.format("station {}", "node"), a=pl.col("a").round().cast(pl.Int16), b=pl.col("b") > 0
    )
    table.write_parquet(tmp_path / "1.parquet")
    table.with_columns(pl.col("node").cast(pl.Categorical), pl.col("a").cast(pl.Float32)).write_parquet(
        tmp_path / "2.parquet"
    )
    twice = pl.concat([table, table]).with_columns(pl.col("a", "b").cast(pl.Float64))
    assert_same(stream_moments(tmp_path, replace(ROLES, text_ids=True)), reference(twice))


def test_more_nodes_than_there_was_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "FIRST_ROOM", 4)
    monkeypatch.setattr(stream, "BLOCK", 64)
    rng = np.random.default_rng(0)
    node = rng.integers(-(2**62), 2**62, 500)[rng.integers(0, 500, 2000)]
    table = pl.DataFrame({"node": node, **{name: rng.standard_normal(2000) for name in "aby"}})
    table.write_parquet(tmp_path / "rows.parquet", row_group_size=300)
    assert_same(stream_moments(tmp_path / "rows.parquet", ROLES), reference(table))


def test_the_answer_is_that_of_the_rows(tmp_path):
    table = frame(nodes=10).filter(pl.col("node") >= 0)
    model = pl.when(pl.col("node") < 5).then(pl.col("a")).otherwise(pl.col("b"))
    table = table.with_columns(y=model + 0.1 * pl.col("y"))
    table.write_parquet(tmp_path / "rows.parquet")
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(14)])
    whole = ct.LocalDatasets.from_rows(table.select("a", "b"), table["y"], table["node"].to_numpy(), graph.n_nodes)
    condensed = stream_moments(tmp_path / "rows.parquet", ROLES).datasets(graph)
    one, two = (ct.solve(ct.Problem(graph, data, lam=0.1), tol=1e-9) for data in (whole, condensed))
    assert two.gap <= 1e-9
    assert two.objective == pytest.approx(one.objective, rel=3e-9)


def test_moments_need_a_target(tmp_path):
    with pytest.raises(ValueError, match="name the target"):
        stream_moments(tmp_path, Columns("node", ("a",)))


def test_the_same_digits_with_any_number_of_threads(tmp_path, monkeypatch):
    frame(N=50_000).write_parquet(tmp_path / "rows.parquet")
    found = []
    for most in (1, 2, 8):
        monkeypatch.setattr(stream, "MOST_THREADS", most)
        monkeypatch.setattr("os.cpu_count", lambda: 8)
        found.append(stream_moments(tmp_path, ROLES))
    for other in found[1:]:
        assert other.ids == found[0].ids
        np.testing.assert_array_equal(other.mean, found[0].mean)
        np.testing.assert_array_equal(other.comoments, found[0].comoments)


@pytest.mark.slow
def test_wide_tables_take_what_their_nodes_take(tmp_path, monkeypatch):
    """Room for 1,024 nodes of 3,000 features would be 37 GB."""
    rng = np.random.default_rng(0)
    features = tuple(f"x{k}" for k in range(3000))
    Z = rng.standard_normal((6, len(features) + 1))
    table = pl.DataFrame(dict(zip((*features, "y"), Z.T, strict=True)) | {"node": [0, 0, 0, 1, 1, 1]})
    table.write_parquet(tmp_path / "rows.parquet")
    columns = Columns("node", features, "y", text_ids=False)
    found = stream_moments(tmp_path / "rows.parquet", columns)
    assert_same(found, Moments.of(table.select(features), table["y"], table["node"].to_numpy()))
    monkeypatch.setattr("coterie.io.memory.memory_available", lambda: 10**8)
    with pytest.raises(TooLargeError, match=r"3000 features at \d nodes or more take at least 0\.\d GB, and 0\.1 GB"):
        stream_moments(tmp_path / "rows.parquet", columns)
