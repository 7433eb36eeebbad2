"""Text in many forms is one table."""

import gzip
import io

import polars as pl
import pytest

from coterie.io.edges import read_graph
from coterie.io.errors import BadGraphError, MissingColumnError, UnreadableFileError
from coterie.io.formats import Table, TextFormat
from coterie.io.rows import Columns, read_rows
from coterie.io.sources import data_files, sha256_of
from coterie.io.tables import count_rows, read_table

COMMAS = "node,x,y\nKöln,1.5,2\nBonn,-0.25,\n"
SEMICOLONS = "node;x;y\nKöln;1,5;2\nBonn;-0,25;\n"
ROLES = Columns("node", ("x",), "y")


def expected():
    return pl.DataFrame({"node": ["Köln", "Bonn"], "x": [1.5, -0.25], "y": [2.0, float("nan")]})


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", COMMAS.encode(), TextFormat()),
        ("a.csv.gz", gzip.compress(COMMAS.encode()), TextFormat()),
        ("a.tsv", COMMAS.replace(",", "\t").encode(), TextFormat()),
        ("A.TSV.GZ", gzip.compress(COMMAS.replace(",", "\t").encode()), TextFormat()),
        ("a.csv", SEMICOLONS.encode(), TextFormat(decimal=",")),
        ("a.csv", COMMAS.replace(",", "|").encode(), TextFormat("|")),
        ("a.csv", COMMAS.replace(",", "\t").encode(), TextFormat("tab")),
        ("a.csv", COMMAS.encode("latin-1"), TextFormat(encoding="latin-1")),
        ("a.csv.gz", gzip.compress(SEMICOLONS.encode("cp1252")), TextFormat(";", ",", "cp1252")),
        ("a.csv", COMMAS.encode("utf-16"), TextFormat(encoding="utf-16")),
        ("a.csv", COMMAS.encode("utf-8-sig"), TextFormat()),
    ],
    ids=["csv", "csv.gz", "tsv", "tsv.gz", "decimal", "bars", "tabs", "latin-1", "all", "utf-16", "mark"],
)
def test_one_table_in_many_forms(tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, tmp_path):
        table = Table(path, text)
        assert read_rows(table, ROLES).equals(expected(), null_equal=True)
        assert count_rows(table) == 2
    assert sha256_of(Table(tmp_path / name, text)) == sha256_of(tmp_path / name)


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read_once_and_used_often(monkeypatch, packed):
    content = gzip.compress(COMMAS.encode()) if packed else COMMAS.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    table = Table("-")
    assert count_rows(table) == 2
    assert read_rows(table, ROLES)["node"].to_list() == ["Köln", "Bonn"]
    assert list(map(str, data_files(table))) == ["standard input"]
    with pytest.raises(MissingColumnError, match=r"^standard input: there is no column 'z'"):
        read_rows(table, Columns("node", ("z",)))


def test_standard_input_may_be_parquet(monkeypatch, tmp_path):
    expected().write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "a.parquet").read_bytes())))
    assert read_rows(Table("-"), ROLES)["x"].to_list() == [1.5, -0.25]


def test_edges_and_other_tables_are_read_alike(tmp_path):
    (tmp_path / "edges.tsv.gz").write_bytes(gzip.compress(b"a\tb\tweight\nA\tB\t2.5\n"))
    assert read_graph(tmp_path / "edges.tsv.gz").weights.tolist() == [2.5]
    (tmp_path / "edges.csv").write_bytes("a;b;weight\nÅ;B;2,5\n".encode("latin-1"))
    graph = read_graph(Table(tmp_path / "edges.csv", TextFormat(";", ",", "latin-1")))
    assert (sorted(graph.names), graph.weights.tolist()) == (["B", "Å"], [2.5])
    (tmp_path / "any.csv").write_text("a;b\n1;0,5\n")
    assert read_table(Table(tmp_path / "any.csv", TextFormat(decimal=",")))["b"].to_list() == [0.5]


def test_rows_of_any_form_are_named(tmp_path):
    (tmp_path / "edges.csv").write_bytes("a;b;weight\nÅ;B;2,5\nB;Å;-1,5\n".encode("latin-1"))
    with pytest.raises(BadGraphError, match=r"edges\.csv: column 'weight', row 2: the weight is -1\.5"):
        read_graph(Table(tmp_path / "edges.csv", TextFormat(decimal=",", encoding="latin-1")))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"separator": "ab"}, "separator is one sign"),
        ({"separator": ""}, "separator is one sign"),
        ({"decimal": ";"}, "decimal sign"),
        ({"separator": ",", "decimal": ","}, "cannot be both"),
        ({"encoding": "klingon"}, "'klingon'"),
    ],
)
def test_forms_that_there_are_not(options, word):
    with pytest.raises(ValueError, match=word):
        TextFormat(**options)


def test_what_is_wrong_says_which_option_helps(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(COMMAS.replace(",", "\t"))
    with pytest.raises(MissingColumnError, match="give --separator tab"):
        read_rows(file, ROLES)
    file.write_bytes(COMMAS.encode("latin-1"))
    with pytest.raises(UnreadableFileError, match="not UTF-8; give its --encoding"):
        read_rows(file, ROLES)
    with pytest.raises(UnreadableFileError, match="the text is not ascii"):
        read_rows(Table(file, TextFormat(encoding="ascii")), ROLES)


def test_a_packed_file_that_was_cut_short(tmp_path):
    whole = gzip.compress("".join(["node,x,y\n", *(f"n{k},{k * 7919 % 10007},1\n" for k in range(5000))]).encode())
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFileError, match=r"a\.csv\.gz: cannot be read"):
        read_rows(tmp_path / "a.csv.gz", ROLES)
