import polars as pl
import pytest

from coterie.io.tables import write_batches

SCHEMA = {"a": pl.Int64, "b": pl.String}


def batches(fail=False):
    for k in range(3):
        yield pl.DataFrame({"a": [k, k], "b": ["x", None]})
    if fail:
        raise ValueError("bad row")


@pytest.mark.parametrize(("ending", "read"), [("csv", pl.read_csv), ("pq", pl.read_parquet), ("feather", pl.read_ipc)])
def test_batches_are_written_in_order(tmp_path, ending, read):
    write_batches(tmp_path / "new" / f"table.{ending}", batches(), SCHEMA)
    assert read(tmp_path / "new" / f"table.{ending}")["a"].to_list() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_an_error_on_the_way_leaves_the_old_file(tmp_path, ending):
    file = tmp_path / f"table.{ending}"
    file.write_text("old")
    with pytest.raises(ValueError, match="bad row"):
        write_batches(file, batches(fail=True), SCHEMA)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
