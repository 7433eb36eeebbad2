import polars as pl
import pytest

from coterie.io.errors import BadValueError, DuplicateError, UnreadableFileError
from coterie.io.files import check_writable, staged
from coterie.io.rows import Columns, read_rows
from coterie.io.tables import read_table

ROLES = Columns("node", ("x",), "y")


@pytest.mark.parametrize("row", ["b,1", 'b,"1"'])
def test_a_row_with_fewer_fields_is_named(tmp_path, row):
    """Polars fills it up with empty fields, and an empty label is one that is not known."""
    (tmp_path / "t.csv").write_text(f"node,x,y\na,1,2\n{row}\nc,1,\n")
    for read in (lambda path: read_rows(path, ROLES), read_table):
        with pytest.raises(BadValueError, match=r"t\.csv: row 2 has fewer fields than the header, which has 3"):
            read(tmp_path / "t.csv")


def test_commas_and_lines_in_quotation_marks_are_fields(tmp_path):
    (tmp_path / "t.csv").write_text('node,x,y\n"a\nb",1,2\n"c,d",1,\n')
    assert read_rows(tmp_path / "t.csv", ROLES)["node"].to_list() == ["a\nb", "c,d"]


def test_names_that_stand_twice_or_are_not_utf8(tmp_path):
    (tmp_path / "t.csv").write_text("node,x,x,y\na,1,2,3\n")
    with pytest.raises(DuplicateError, match=r"t\.csv: two columns are called 'x'"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes("node,pr\xe9vu,y\na,1,2\n".encode("latin-1"))
    with pytest.raises(UnreadableFileError, match="the header is not UTF-8"):
        read_table(tmp_path / "t.csv")


def test_a_mark_of_byte_order_is_no_name(tmp_path):
    (tmp_path / "t.csv").write_bytes("node,x,y\na,1,2\n".encode("utf-8-sig"))
    assert read_table(tmp_path / "t.csv").columns == ["node", "x", "y"]
    assert isinstance(read_table(tmp_path / "t.csv"), pl.DataFrame)


def test_a_folder_that_exists_is_written_from_inside(tmp_path, monkeypatch):
    """It may be a mount point, or stand in a folder that cannot be written to."""
    out = tmp_path / "out"
    out.mkdir()
    tmp_path.chmod(0o500)
    try:
        with staged(out) as folder:
            assert folder.parent == out
            (folder / "model.json").write_text("{}")
    finally:
        tmp_path.chmod(0o700)
    assert [file.name for file in out.iterdir()] == ["model.json"]
    check_writable(out)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_writable(tmp_path / "nowhere")
