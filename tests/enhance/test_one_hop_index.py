"""An index of one-hop triples made from a dump or a TSV, and what a look-up finds in it."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from graphcontext.enhance.one_hop_build import build_index
from graphcontext.enhance.one_hop_file import COLUMNS, OneHopFile
from graphcontext.enhance.one_hop_index import OneHopIndex
from graphcontext.enhance.wikidata_dump import read_dump
from graphcontext.errors import InputError, MissingSourceError


def claim(tail: str, rank: str = "normal") -> dict[str, Any]:
    value = {"entity-type": "item", "numeric-id": int(tail[1:]), "id": tail}
    return {"mainsnak": {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", "value": value}}, "rank": rank}


def entity(name: str, label: str | None, claims: Any = (), aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    labels = {"en": {"language": "en", "value": label}} if label else []  # PHP writes an empty one as a list
    return {
        "type": "property" if name[0] == "P" else "item",
        "id": name,
        "labels": {**labels, "de": {"value": f"{label} (de)"}} if label else labels,
        "aliases": {"en": [{"value": a} for a in aliases]} if aliases else [],
        "claims": dict(claims) or [],
    }


TEXT = {"mainsnak": {"snaktype": "value", "datavalue": {"type": "string", "value": "1991"}}, "rank": "normal"}
UNKNOWN = {"mainsnak": {"snaktype": "somevalue"}, "rank": "normal"}
PARTS = [("P361", [claim("Q2"), UNKNOWN, TEXT]), ("P31", [claim("Q3")])]
DUMP = [
    entity("P31", "instance of"),
    entity("P361", "part of"),
    entity("Q2", "operating system"),
    entity("Q3", "program", [("P361", [claim("Q99")])]),  # Q99 has no label: no sentence
    entity("Q14579", "Linux kernel", PARTS, ("kernel", "Linux")),
    entity("Q388", "Linux", [("P31", [claim("Q3", "deprecated"), claim("Q2"), claim("Q3", "preferred")])]),
    entity("Q50", "Kernel", [("P31", [claim("Q4167410")])], ("kernel",)),  # a disambiguation page
    entity("Q9", None, [("P31", [claim("Q2")])]),
    {"type": "lexeme", "id": "L1"},
]


def dump_text(entities: list[dict[str, Any]] = DUMP) -> bytes:
    return ("[\n" + ",\n".join(map(json.dumps, entities)) + "\n]\n").encode()


def index_of(tmp_path: Path, name: str, data: bytes, language: str = "en") -> OneHopIndex:
    source = tmp_path / name
    source.write_bytes(data)
    said: list[str] = []
    index = OneHopIndex("wikidata", language, str(tmp_path / "made" / f"{name}.sqlite"), str(source))
    assert index.prepare(said.append) == 1
    assert said[0].startswith(f"indexing {name}") and said[-1] == f"ready: one-hop index {name}.sqlite"
    return index


def test_labels_before_aliases_best_ranks_and_only_entities_with_labels(tmp_path: Path) -> None:
    found = index_of(tmp_path, "all.json", dump_text()).neighbours(["LINUX", "kernel", "Program", "nothing"])
    assert found["LINUX"].triples == (("Linux", "instance of", "program"),)  # Q388's label, not Q14579's alias
    assert found["kernel"].triples == (("kernel", "instance of", "program"), ("kernel", "part of", "operating system"))
    assert found["Program"].status == "empty"  # its only tail has no label
    assert (found["nothing"].status, list(found)) == ("empty", ["LINUX", "kernel", "Program", "nothing"])


def test_packed_or_not_and_in_another_language(tmp_path: Path) -> None:
    plain = index_of(tmp_path, "all.json", dump_text()).neighbours(["kernel"])
    assert index_of(tmp_path, "all.json.gz", gzip.compress(dump_text())).neighbours(["kernel"]) == plain
    assert index_of(tmp_path, "all.json.bz2", bz2.compress(dump_text())).neighbours(["kernel"]) == plain
    german = index_of(tmp_path, "de.json", dump_text(), "de").neighbours(["linux (de)", "kernel"])
    assert german["linux (de)"].triples == (("Linux (de)", "instance of (de)", "program (de)"),)
    assert german["kernel"].status == "empty"


def test_a_tsv_gives_what_the_file_source_gives(tmp_path: Path) -> None:
    rows = [
        "Q14579\tLinux kernel\tP361\tpart of\tQ2\toperating system",
        "Q388\tLinux\tP31\tinstance of\tQ2\toperating system",
        "Q14579\tLinux kernel\tP31\tinstance of\tQ3\tprogram",
        "Q7\tLinux\tP31\tinstance of\tQ4167410\tWikimedia disambiguation page",
    ]
    text = "\n".join(["\t".join(COLUMNS), *rows]).encode()
    names = ["linux", "linux kernel", "program"]
    index = index_of(tmp_path, "one.tsv", text)
    assert index.neighbours(names) == OneHopFile("wikidata", str(tmp_path / "one.tsv")).neighbours(names)


def test_the_key_follows_the_dump_and_not_the_place(tmp_path: Path) -> None:
    def content(index: OneHopIndex) -> dict[str, str]:
        return OneHopIndex.identity({"name": "wikidata", "language": "en", "path": str(index.path)})

    one, same = index_of(tmp_path, "a.json", dump_text()), index_of(tmp_path, "b.json", dump_text())
    assert content(one) == content(same) != content(index_of(tmp_path, "c.json", dump_text(DUMP[:-1])))
    (tmp_path / "moved").mkdir()
    moved = OneHopIndex("wikidata", path=shutil.move(one.path, tmp_path / "moved" / "x.sqlite"))
    assert content(moved) == content(same)


def test_an_absent_index_says_how_to_get_one(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHCONTEXT_HOME", str(tmp_path))
    monkeypatch.setenv("GRAPHCONTEXT_DATA", str(tmp_path))
    index = OneHopIndex("wikidata")
    config = {"name": "w", "language": "en"}
    for ask in (lambda: index.neighbours(["a"]), index.prepare, lambda: index.identity(config)):
        with pytest.raises(MissingSourceError) as caught:
            ask()
        first, _, rest = str(caught.value).partition(";")
        assert first == "no data: wikidata one-hop index (one_hop=file, or one_hop=none)"
        assert "prepare one_hop=index one_hop.dump_path=FILE" in rest
    (tmp_path / "wikidata").mkdir()
    (tmp_path / "wikidata" / "latest-all.json.gz").write_bytes(gzip.compress(dump_text()))
    assert index.prepare(lambda said: None) == 1  # the default place of a dump
    assert index.neighbours(["linux"])["linux"].triples == (("Linux", "instance of", "program"),)


def test_an_index_is_not_taken_for_another(tmp_path: Path) -> None:
    index = index_of(tmp_path, "a.json", dump_text())
    (tmp_path / "b.json").write_bytes(dump_text())
    with pytest.raises(InputError, match=r"made from a\.json, not from b\.json; delete it"):
        OneHopIndex("w", "en", str(index.path), str(tmp_path / "b.json")).prepare(print)
    with pytest.raises(InputError, match=r"is in 'en', one_hop\.language=de"):
        OneHopIndex("w", "de", str(index.path)).neighbours(["a"])
    with pytest.raises(InputError, match="is no one-hop index"):
        OneHopIndex("w", "en", str(tmp_path / "b.json")).neighbours(["a"])
    with pytest.raises(MissingSourceError, match=r"dump_path=none\.json is no file"):
        OneHopIndex("w", "en", str(tmp_path / "x.sqlite"), "none.json").prepare(print)


def test_an_index_of_another_format_is_refused(tmp_path: Path) -> None:
    index = index_of(tmp_path, "a.json", dump_text())
    with contextlib.closing(sqlite3.connect(index.path)) as database, database:
        database.execute("UPDATE facts SET value = '1' WHERE key = 'format'")
    config = {"name": "wikidata", "language": "en", "path": str(index.path)}
    for ask in (OneHopIndex(**config).prepare, lambda: OneHopIndex.identity(config)):
        with pytest.raises(InputError, match="format 1, this version reads 2; delete it and make it again"):
            ask()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("cut.json", dump_text()[:-40], "line 9: no entity in the JSON of a Wikidata dump"),
        ("cut.json.gz", gzip.compress(dump_text() * 400)[:-300], "is cut or damaged after line"),
        ("x.json", b'{"type": "item"}\n', r"line 1: .*KeyError: 'id'"),
        ("none.json", b"[\n]\n", "no statement between entities"),
    ],
)
def test_a_damaged_dump_leaves_no_index(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    source = tmp_path / name
    source.write_bytes(data)
    with pytest.raises(InputError, match=said):
        build_index(source, tmp_path / "made" / "x.sqlite", "en", lambda text: None)
    assert list((tmp_path / "made").iterdir()) == []


def test_old_dumps_number_their_tails() -> None:
    old = claim("Q3")
    del old["mainsnak"]["datavalue"]["value"]["id"]
    (found,) = read_dump([json.dumps(entity("Q1", "a", [("P31", [old])])).encode()], "x", "en")
    assert found.statements == ((31, 3),)
