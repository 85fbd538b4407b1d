"""Algorithm 1 of GraphContextGen on given triples: τ_f = τ_init ∪ the one-hop triples with both ends in C."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.enhance.one_hop import EMPTY, Neighbours
from graphcontext.enhance.surface_form import normalise
from graphcontext.enhance.triples import Extraction
from graphcontext.enhance.wikidata import Wikidata
from graphcontext.errors import InputError

CORPUS = Corpus(
    "c",
    (
        Passage("p0", "", "", "Nginx listens on a port. It is a web server."),
        Passage("p1", "", "", "The kernel hands out ports; an import is no port."),
    ),
)
LISTENS = ("Nginx", "listens on", "port")
HANDS = ("kernel", "hands out", "ports")


class Extractor:
    name = "stub"
    repeatable = True

    def __init__(self, **found: Extraction):
        self.found = found

    def extract(self, passages):
        return [self.found.get(p.id, Extraction(status="empty")) for p in passages]


class OneHop:
    name = "wikidata"

    def __init__(self, **triples: object):
        self.known, self.asked = triples, []

    def neighbours(self, names):
        self.asked.append(list(names))
        found = {name: self.known.get(normalise(name).replace(" ", "_"), ()) for name in names}
        return {n: t if isinstance(t, Neighbours) else Neighbours(tuple(t)) if t else EMPTY for n, t in found.items()}


def enhance(extractor, one_hop, *ranked: str, **options):
    questions = [Question(f"q{i}", "?", "c") for i in range(len(ranked))]
    rankings = [Ranking(q.id, tuple(Scored(p, 1.0) for p in ids.split())) for q, ids in zip(questions, ranked)]
    return Wikidata(extractor, one_hop, **options).enhance(questions, rankings, {"c": CORPUS})


def facts(context):
    return [(u.text, u.source) for u in context.units if u.source not in ("p0", "p1")]


def test_algorithm_1_keeps_triples_with_both_ends_in_the_context() -> None:
    # τ_init = {(Nginx, listens on, port), (kernel, hands out, ports)}; Ent(C) = {nginx, port, kernel, ports}
    # τ'(nginx) = {(nginx, uses, port), (nginx, instance of, web server)}: "web server" is not in Ent(C)
    # τ'(kernel) = {(kernel, part of, operating system)}: nothing; τ'(port) = {(port, used by, NGINX)}: kept
    extractor = Extractor(p0=Extraction((LISTENS,)), p1=Extraction((HANDS,)))
    one_hop = OneHop(
        nginx=[("nginx", "uses", "port"), ("nginx", "instance of", "web server")],
        kernel=[("kernel", "part of", "operating system")],
        port=[("port", "used by", "NGINX")],
    )
    (context,) = enhance(extractor, one_hop, "p0 p1")
    assert facts(context) == [
        ("nginx uses port.", "wikidata"),
        ("port used by NGINX.", "wikidata"),
        ("Nginx listens on port.", "stub"),
        ("kernel hands out ports.", "stub"),
    ]
    assert [u.source for u in context.units[:2]] == ["p0", "p1"]
    assert (context.status, context.reason, context.retry) == ("ok", None, None)
    assert one_hop.asked == [["Nginx", "kernel", "port", "ports"]]  # once, sorted, for all questions


def test_match_text_looks_for_whole_words_in_the_passages() -> None:
    # "web server" and "import" stand in C; "mport" and "ports; a" do not as words
    tails = ["web server", "import", "mport", "The  Kernel", "operating system"]
    one_hop = OneHop(nginx=[("nginx", "r", t) for t in tails])
    (context,) = enhance(Extractor(p0=Extraction((LISTENS,))), one_hop, "p0 p1", match="text")
    assert [text for text, source in facts(context) if source == "wikidata"] == [
        "nginx r web server.",
        "nginx r import.",
        "nginx r The  Kernel.",
    ]
    with pytest.raises(InputError, match=r"match=txt; did you mean text\?"):
        Wikidata(Extractor(), one_hop, match="txt")


def test_a_triple_that_the_passages_say_too_stays_the_extractors() -> None:
    one_hop = OneHop(nginx=[LISTENS, ("nginx", "is", "Nginx")])  # nor is an entity its own neighbour
    (context,) = enhance(Extractor(p0=Extraction((LISTENS,))), one_hop, "p0")
    assert facts(context) == [("Nginx listens on port.", "stub")]
    assert context.reason is None
    (context,) = enhance(Extractor(p0=Extraction((LISTENS,))), OneHop(nginx=[("nginx", "is", "server")]), "p0")
    assert context.reason == "no wikidata triple kept"


def test_what_is_missing_is_counted() -> None:
    extractor = Extractor(p0=Extraction((LISTENS,)))
    contexts = enhance(extractor, OneHop(), "p0", "p1", "")
    assert [c.reason for c in contexts] == ["no wikidata entry", "no triples", None]  # T15
    assert [len(c.units) for c in contexts] == [2, 1, 0]


def test_a_fault_of_the_source_leaves_the_context_and_is_tried_again() -> None:
    extractor = Extractor(p0=Extraction((LISTENS,)))
    one_hop = OneHop(nginx=Neighbours(status="failed", reason="HTTP 503"), port=[("port", "used by", "nginx")])
    (context,) = enhance(extractor, one_hop, "p0")
    assert facts(context) == [("port used by nginx.", "wikidata"), ("Nginx listens on port.", "stub")]
    assert (context.status, context.retry) == ("ok", True)
    assert context.reason == "wikidata failed for 1 of 2 entities: HTTP 503"


def test_only_context_gen_shows_the_sentences_alone() -> None:
    one_hop = OneHop(port=[("port", "used by", "nginx")])
    (context,) = enhance(Extractor(p0=Extraction((LISTENS,))), one_hop, "p0", show_passages=False)
    assert [u.text for u in context.units] == ["port used by nginx.", "Nginx listens on port."]


NAMES = st.sampled_from(["a", "b", "A ", "c d", "e"])
TRIPLES = st.lists(st.tuples(NAMES, st.just("r"), NAMES), max_size=6)


@given(init=TRIPLES, known=st.dictionaries(st.sampled_from("abe"), st.lists(NAMES, max_size=4)))
def test_both_ends_of_a_kept_triple_are_entities_of_the_context(init, known) -> None:
    extractor = Extractor(p0=Extraction(tuple(init)))
    one_hop = OneHop(**{head: [(head, "q", tail) for tail in tails] for head, tails in known.items()})
    (alone,) = enhance(extractor, one_hop, "p0")
    ends = {normalise(x) for h, _, t in init for x in (h, t)}
    for text, source in facts(alone):
        if source == "wikidata":
            head, _, tail = text.rstrip(".").partition(" q ")
            assert normalise(head) in ends and normalise(tail) in ends
    assert enhance(extractor, one_hop, "p1", "p0")[1].units == alone.units  # whatever stands beside it
