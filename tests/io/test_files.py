import pytest

from coterie.io.files import staged, write_whole


def test_a_new_folder_appears_whole(tmp_path):
    out = tmp_path / "a" / "b"
    with staged(out) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "x.txt").write_text("1")
        assert not out.exists()
    assert (out / "inner" / "x.txt").read_text() == "1"
    assert [p.name for p in out.parent.iterdir()] == ["b"]
    assert out.stat().st_mode & 0o777 == 0o755


def test_an_old_folder_keeps_its_other_files(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    (tmp_path / "out" / "page.md").write_text("old")
    with staged(tmp_path / "out") as folder:
        (folder / "page.md").write_text("new")
    assert (tmp_path / "out" / "old.txt").read_text() == "old"
    assert (tmp_path / "out" / "page.md").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_everything_as_it_was(tmp_path, error):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "page.md").write_text("old")

    def write_half() -> None:
        with staged(tmp_path / "out") as folder:
            (folder / "page.md").write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert (tmp_path / "out" / "page.md").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file"), staged(tmp_path / "out"):
        pass
    assert (tmp_path / "out").read_text() == "mine"


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "new" / "page.html"
    write_whole(path, b"old")
    assert path.read_bytes() == b"old"
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert [left.name for left in path.parent.iterdir()] == ["page.html"]
    assert path.read_bytes() == b"old"


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        write_whole(tmp_path, b"")
