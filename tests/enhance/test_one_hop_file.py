"""One-hop triples from a TSV file: names, ambiguity, order, damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from graphcontext.enhance.one_hop_file import COLUMNS, OneHopFile
from graphcontext.errors import InputError, MissingSourceError
from graphcontext.prepare import prepare_sources

ROWS = [
    "Q9\tkernel\tP361\tpart of\tQ2\toperating system",
    "Q9\tkernel\tP31\tinstance of\tQ3\tprogram",
    "Q40\tKernel\tP31\tinstance of\tQ4\tseed",  # another entity of this name, made later
    "Q5\tJava\tP31\tinstance of\tQ4167410\tWikimedia disambiguation page",
    "Q251\tJava\tP31\tinstance of\tQ6\tprogramming language",
]


def write(path: Path, rows: list[str] = ROWS, end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(end.join(["\t".join(COLUMNS), *rows, ""]), encoding="utf-8", newline="")
    return path


def test_names_are_compared_without_case_and_the_lowest_number_is_meant(tmp_path: Path) -> None:
    found = OneHopFile("wikidata", str(write(tmp_path / "one.tsv"))).neighbours(["KERNEL", '"Java"', "seed", " "])
    assert found["KERNEL"].triples == (("kernel", "instance of", "program"), ("kernel", "part of", "operating system"))
    assert found['"Java"'].triples == (("Java", "instance of", "programming language"),)
    assert (found["seed"].status, found[" "].status) == ("empty", "empty")


def test_rows_in_any_order_line_ends_and_packing_give_the_same(tmp_path: Path) -> None:
    one = write(tmp_path / "one.tsv")
    write(tmp_path / "folder" / "a.tsv", ["", *ROWS[3:]], end="\r\n")
    with gzip.open(tmp_path / "folder" / "b.tsv.gz", "wt", encoding="utf-8-sig") as stream:
        stream.write(write(tmp_path / "two.tsv", [*ROWS[2::-1], ROWS[0]]).read_text())
    names = ["kernel", "java"]
    assert OneHopFile("x", str(tmp_path / "folder")).neighbours(names) == OneHopFile("x", str(one)).neighbours(names)


def test_the_key_follows_content_not_place(tmp_path: Path) -> None:
    def content(path: Path) -> str:
        return OneHopFile.identity({"name": "wikidata", "path": str(path)})["content"]

    one, same = write(tmp_path / "a.tsv"), write(tmp_path / "b.tsv")
    assert content(one) == content(same) != content(write(tmp_path / "c.tsv", ROWS[1:]))


def test_an_absent_file_names_the_ways_out_first(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    with pytest.raises(MissingSourceError) as caught:
        OneHopFile.identity({"name": "wikidata", "path": None})
    first, _, rest = str(caught.value).partition(";")  # a table's row shows what stands before the semicolon
    assert first == "no data: wikidata one-hop triples (one_hop.path=FILE, or one_hop=none)"
    assert str(tmp_path / "wikidata") in rest
    with pytest.raises(MissingSourceError, match=r"triples \(.*\); one_hop\.path=/nowhere/x: no such file or folder$"):
        OneHopFile.identity({"name": "wikidata", "path": "/nowhere/x"})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["Q1\ta\tP1\tb\tQ2"], r"line 2: 5 columns, the first line has 6"),
        (["Q1\ta\tP1\tb\t17\tc"], r"line 2: the id '17' is no letter and number"),
        (["Q1\ta\tP1\tb\tX2\tc"], r"line 2: ids begin with Q and X"),
    ],
)
def test_a_faulty_row_is_named_by_its_line(tmp_path: Path, rows: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        OneHopFile("x", str(write(tmp_path / "x.tsv", rows))).neighbours(["a"])


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"a\tb\nc\td\n")
    with pytest.raises(InputError, match="needed: head_id, head_label"):
        OneHopFile("x", str(tmp_path / "x.tsv")).neighbours(["a"])
    (tmp_path / "x.tsv").write_bytes("\t".join(COLUMNS).encode() + b"\n\xff\n")
    with pytest.raises(InputError, match="cannot be read: UnicodeDecodeError"):
        OneHopFile("x", str(tmp_path / "x.tsv")).neighbours(["a"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.tsv"):
        OneHopFile("x", str(tmp_path / "empty")).neighbours(["a"])


def test_what_the_package_ships_is_read_and_prepared() -> None:
    shipped = OneHopFile("cqa_one_hop")
    triples = shipped.neighbours(["systemd", "Swap"])
    assert ("systemd", "instance of", "init system") in triples["systemd"].triples
    assert ("swap", "location", "disk") in triples["Swap"].triples
    said: list[str] = []
    node = {"_target_": "graphcontext.enhance.one_hop_file.OneHopFile", "name": "cqa_one_hop", "path": None}
    assert shipped.prepare(said.append) == 1 and "cqa_one_hop" in said[0]
    assert prepare_sources([], said.append) == (0, [])
    assert OneHopFile.identity(node)["content"]


@pytest.mark.needs_data
def test_a_real_slice_of_wikidata_is_read(data_root: Path) -> None:
    found = OneHopFile("wikidata", str(data_root / "wikidata")).neighbours(["colombia", "netherlands"])
    assert ("Colombia", "member of", "International Finance Corporation") in found["colombia"].triples
