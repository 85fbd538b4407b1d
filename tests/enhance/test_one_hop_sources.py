"""What all sources of one-hop triples have in common: one story, told by each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphcontext.data.records import Question, Ranking, Scored
from graphcontext.enhance.one_hop_file import COLUMNS, OneHopFile
from graphcontext.enhance.one_hop_none import NoOneHop
from graphcontext.enhance.triples import Extraction
from graphcontext.enhance.wikidata import Wikidata
from tests.enhance.test_one_hop_index import claim, dump_text, entity, index_of
from tests.enhance.test_one_hop_sparql import Endpoint, source
from tests.enhance.test_triples import CORPUS, Extractor

USES = ("P2283", "uses")
LABELS = {"Q10": "kernel", "Q20": "kernel", "Q30": "memory", "Q99": None}
STATEMENTS = (("Q10", "Q99"), ("Q20", "Q30"))  # Q10's only tail has no label: no sentence can be made of it


def from_file(tmp_path: Path, endpoint: Endpoint) -> OneHopFile:
    rows = [(head, LABELS[head], *USES, tail, LABELS[tail] or "") for head, tail in STATEMENTS]
    path = tmp_path / "one.tsv"
    path.write_text("\n".join("\t".join(row) for row in (COLUMNS, *rows)), encoding="utf-8")
    return OneHopFile("wikidata", str(path))


def from_index(tmp_path: Path, endpoint: Endpoint) -> Any:
    stated = {head: [(USES[0], [claim(tail)])] for head, tail in STATEMENTS}
    items = [entity(number, label, stated.get(number, ())) for number, label in LABELS.items()]
    return index_of(tmp_path, "all.json", dump_text([entity(*USES), *items]))


def from_sparql(tmp_path: Path, endpoint: Endpoint) -> Any:
    return source(endpoint)  # the query itself asks for labels


def from_nothing(tmp_path: Path, endpoint: Endpoint) -> NoOneHop:
    return NoOneHop()


Make = Callable[[Path, Endpoint], Any]
KNOWING = pytest.mark.parametrize("make", [from_file, from_index, from_sparql])


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    rows = [(head, "0", *USES, tail, label) for head, tail in STATEMENTS if (label := LABELS[tail])]
    server = Endpoint({"kernel": rows})
    yield server
    server.close()


@KNOWING
def test_an_entity_whose_triples_make_no_sentence_is_not_meant(make: Make, tmp_path: Path, endpoint: Endpoint) -> None:
    # Q10 has the lower number, but nothing can be said about it: Q20 is the kernel
    assert make(tmp_path, endpoint).neighbours(["kernel"])["kernel"].triples == (("kernel", "uses", "memory"),)


@KNOWING
def test_each_spelling_of_a_name_has_an_answer_and_a_blank_one_an_empty_one(
    make: Make, tmp_path: Path, endpoint: Endpoint
) -> None:
    names = ["Kernel", "kernel", "KERNEL", "nothing", " "]
    together = make(tmp_path, endpoint).neighbours(names)
    assert list(together) == names
    assert [together[name].status for name in names] == ["ok", "ok", "ok", "empty", "empty"]
    (tmp_path / "again").mkdir()
    alone = make(tmp_path / "again", endpoint)
    assert {name: alone.neighbours([name])[name] for name in names} == together


@pytest.mark.parametrize("make", [from_file, from_index, from_sparql, from_nothing])
def test_questions_that_write_a_name_in_two_ways_are_enhanced_at_once(
    make: Make, tmp_path: Path, endpoint: Endpoint
) -> None:
    said = {"p0": ("Kernel", "frees", "Memory"), "p1": ("kernel", "maps", "memory")}
    extractor = Extractor({passage: Extraction((triple,)) for passage, triple in said.items()})
    enhancer = Wikidata(extractor, make(tmp_path, endpoint))

    def enhance(*passages: str) -> list[Any]:
        questions = [Question(f"q{p}", "?", "c") for p in passages]
        rankings = [Ranking(q.id, (Scored(p, 1.0),)) for q, p in zip(questions, passages)]
        return enhancer.enhance(questions, rankings, {"c": CORPUS})

    together = enhance("p0", "p1")
    assert together == [*enhance("p0"), *enhance("p1")]
    if make is not from_nothing:
        assert ["kernel uses memory." in [u.text for u in c.units] for c in together] == [True, True]
