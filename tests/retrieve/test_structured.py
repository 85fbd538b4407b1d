"""Questions for pages and tables get these, others go to the other retriever."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

from graphcontext.config import compose
from graphcontext.data.records import Corpus, Graph, Passage, Question, Ranking, Source
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatResponse
from graphcontext.generate.prompt import Prompt
from graphcontext.graph.structure import Structure
from graphcontext.pipeline import Pipeline
from graphcontext.retrieve import routes
from graphcontext.retrieve.routes import LLMRouter, Route, RuleRouter, parse
from graphcontext.retrieve.structured import Structured
from graphcontext.retrieve.tfidf import TFIDF
from graphcontext.store import Store, Workspace


def passage(document: str, title: str, page: int, kind=None, text: str = "") -> Passage:
    shown = text or f"{title}, page {page}"
    name = f"{document}:{page}:{kind or 'text'}{':' + text[:9] if kind == 'table' else ''}"
    return Passage(name, title, "" if kind == "page" else text, shown, Source(document=document, page=page), kind=kind)


def report(document: str, title: str) -> list[Passage]:
    return [
        passage(document, title, 1, "page"),
        passage(document, title, 1, None, "the ferry leaves the harbour"),
        passage(document, title, 2, "page"),
        passage(document, title, 2, None, "lamps burn all night"),
        passage(document, title, 2, "table", "Table 1: x\n| a |"),
        passage(document, title, 2, "table", "Table 2: y\n| b |"),
        passage(document, title, 3, "page"),
        passage(document, title, 3, None, "wind and rain"),
    ]


CORPUS = Corpus("c", (*report("ferry_2030.pdf", "Ferry Report"), *report("light.pdf", "Manual of the Lighthouse")))
INDEX = {p.id: n for n, p in enumerate(CORPUS.passages)}


def ask(text: str, retriever: Any = None) -> Ranking:
    structured = Structured(retriever or TFIDF(top_k=5), RuleRouter())
    return structured.retrieve([Question("q", text, "c")], {"c": CORPUS}, {})[0]


def asked(text: str) -> list[int]:
    """Return the indices of the nodes that a question asks for."""
    ranking = ask(text)
    return [INDEX[name] for name in ranking.steps[0].chosen] if ranking.steps else []


def test_a_page_comes_first_then_what_stands_on_it():
    ranking = ask("What is described on page 2 of the Ferry Report?")
    assert [(INDEX[hit.id], hit.score) for hit in ranking.passages] == [(2, 1.0), (3, 0.5), (4, 0.5), (5, 0.5)]
    assert [step.evidence for step in ranking.steps] == ["structure: pages 2", "on the page"]
    # one hop in the structure graph
    graph = Structure().build(CORPUS)
    assert graph.indices[graph.indptr[2] : graph.indptr[3]].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In Table 2 of the ferry report, who leads?", [5]),
        ("Compare tables 1 and 2 of the Ferry Report.", [4, 5]),
        ("Which tables are on page 2 of the lighthouse manual?", [12, 13]),
        ("What do pages 1 to 3 of ferry_2030.pdf say?", [0, 2, 4 + 2]),
        ("What is on the last page of the lighthouse's manual?", [14]),
        ("Sum up the first and the last page of the Ferry Report", [0, 6]),
        ("What does the last table of the Ferry Report show?", [5]),
        ("How many tables are there in the Ferry Report?", [4, 5]),
        ("How many tables are on page 3 of the Ferry Report?", [6]),  # there is none: the page says so
        ("What is on page 1?", [0, 8]),  # no document is named: all
        ("What does Table 2 on page 2 of light.pdf show?", [13]),
    ],
)
def test_nodes_that_a_question_asks_for(text, expected):
    assert asked(text) == expected


def test_content_goes_to_the_other_retriever_without_page_nodes():
    seen = []

    class Inner(TFIDF):
        def retrieve(self, questions, corpora, graphs):
            seen.append((corpora["c"].passages, graphs))
            return super().retrieve(questions, corpora, graphs)

    weights = np.ones(3, np.float32)  # text 1 ↔ text 3 and page 0 → text 1
    indptr = np.array([0, 1, 2, 2, 3, *[3] * 12])
    graph = Graph("c", indptr, np.array([1, 3, 1], np.int32), weights)
    question = Question("q", "Where does the ferry leave?", "c")
    (ranking,) = Structured(Inner(top_k=2), RuleRouter()).retrieve([question], {"c": CORPUS}, {"c": graph})
    ((passages, graphs),) = seen
    assert all(p.kind != "page" for p in passages) and len(passages) == 10
    assert [INDEX[hit.id] for hit in ranking.passages] == [1, 9] and ranking.steps is None
    (cut,) = [g for g in graphs.values() if g.n_nodes == 10]
    assert cut.indptr.tolist() == [0, 1, 2, *[2] * 8] and cut.indices.tolist() == [1, 0]
    assert graphs[passages and next(k for k in graphs if k != "c")] is cut


def test_what_no_document_has_goes_to_the_other_retriever_and_is_counted():
    ranking = ask("Does page 77 say when the ferry leaves?")
    assert ranking.fallback == "structure_not_found" and ranking.passages
    assert ask("When does the ferry leave?").fallback is None


def test_a_corpus_without_structure_is_all_content():
    corpus = Corpus("c", (Passage("p", "T", "page 3 of a book", "page 3 of a book"),))
    structured = Structured(TFIDF(top_k=5), RuleRouter())
    (ranking,) = structured.retrieve([Question("q", "What is on page 3?", "c")], {"c": corpus}, {})
    assert [hit.id for hit in ranking.passages] == ["p"] and ranking.fallback is None


def test_chunks_do_not_change_rankings():
    questions = [
        Question(str(n), text, "c") for n, text in enumerate(["page 1", "ferry", "Table 2", "lamps", "page 9"])
    ]
    whole = Structured(TFIDF(top_k=5), RuleRouter()).retrieve(questions, {"c": CORPUS}, {})
    structured = Structured(TFIDF(top_k=5), RuleRouter())
    assert whole == [structured.retrieve([q], {"c": CORPUS}, {})[0] for q in questions]
    assert structured.top_k == 5


# -- routes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("What is on pages 2, 4 to 6 and 9?", Route(pages=(2, 4, 5, 6, 9))),
        ("pp. 3-5", Route(pages=(3, 4, 5))),
        ("on p. 4", Route(pages=(4,))),
        ("page three", Route(pages=(3,))),
        ("the 12th page", Route(pages=(12,))),
        ("second to last page", Route(pages=(-2,))),
        ("the last two pages", Route(pages=(-2, -1))),
        ("first three pages", Route(pages=(1, 2, 3))),
        ("pages 5 to 2", Route(pages=(5, 2))),
        ("Tables A-1 and B.2", Route(tables=("a-1", "b.2"))),
        ("the first table on page 2", Route(pages=(2,), nth_tables=(1,))),
        ("tables of page 4", Route(pages=(4,), all_tables=True)),
        ("list all tables", Route(all_tables=True)),
        ("Who is Jimmy Page?", Route()),
        ("Who wrote page-turning stories at 3 tables?", Route()),
        ("the front page of 2031", Route()),
        ("page " + "9" * 5000, Route()),
        ("", Route()),
    ],
)
def test_a_route_by_words(text, route):
    assert parse(text) == route


class FakeLLM:
    def __init__(self, texts: list[str]):
        self.texts = texts

    def chat(self, requests, role, max_new_tokens):
        status = {"": "empty", "!": "failed"}
        return [
            ChatResponse(r.item, t, status=status.get(t, "ok"), reason="timeout" if t == "!" else None)
            for r, t in zip(requests, self.texts, strict=True)
        ]


def test_a_route_by_a_model_and_the_rules_where_its_answer_is_none():
    texts = [
        '{"kind": "structure", "pages": [3, true], "tables": ["A-1"]}',
        'Sure: {"kind": "content"}',
        "no json",
        '{"kind": "structure", "pages": []}',
        "!",
        '{"kind": "other"}',
    ]
    router = LLMRouter(FakeLLM(texts), Prompt("", "{question}"), 9)
    found = router.route([Question(str(n), "What is on page 2?", "c") for n in range(6)])
    assert found[:2] == [Route((3,), ("a-1",)), Route()]
    assert [route.pages for route in found[2:]] == [(2,)] * 4
    assert [route.reason for route in found[2:]] == [
        "routed by rules: router: parse",
        "routed by rules: router: neither page nor table",
        "routed by rules: router: timeout",
        "routed by rules: router: parse",
    ]
    ranking = Structured(TFIDF(top_k=5), LLMRouter(FakeLLM(["?"]), Prompt("", "{question}"), 9)).retrieve(
        [Question("q", "lamps", "c")], {"c": CORPUS}, {}
    )[0]
    assert ranking.reason == "routed by rules: router: parse" and ranking.passages


def test_a_router_s_arguments_are_checked():
    with pytest.raises(InputError, match="max_new_tokens=0"):
        LLMRouter(None, Prompt("", "{question}"), 0)
    with pytest.raises(InputError, match=r"lacks \{question\}"):
        LLMRouter(None, Prompt("", "{context}"), 9)


def test_doctests():
    assert doctest.testmod(routes).failed == 0


# -- the shipped sample ------------------------------------------------------------------------------------------------


def test_all_structural_questions_of_the_sample_go_to_the_right_nodes(tmp_path):
    words = ["dataset=structural_sample", "retriever=structured", "enhancer=none", "generator=none", "metric=[]"]
    config = compose([*words, "dataset.limit=null", "dataset.workers=1"]).config
    pipeline = Pipeline(config, Workspace(Store(tmp_path / "store"), quiet=True))
    data = pipeline.data()
    rankings = pipeline.rankings(data, pipeline.graphs(data))
    assert len(rankings) == 52 and data.card["read"]["pages"] == 31
    kinds = {p.id: p.kind for corpus in data.corpora.values() for p in corpus.passages}
    wrong = []
    for question, ranking in zip(data.questions, rankings, strict=True):
        assert set(question.supports) <= set(kinds), question.id
        if question.id.startswith("content"):
            ok = ranking.steps is None and all(kinds[hit.id] != "page" for hit in ranking.passages)
        else:
            ok = set(ranking.steps[0].chosen) == set(question.supports) if ranking.steps else False
            ok = ok and [hit.id for hit in ranking.passages[: len(question.supports)]] == list(ranking.steps[0].chosen)
        wrong += [] if ok else [question.id]
    assert wrong == []


def test_the_sample_s_files_are_what_its_script_makes(tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    root = Path(__file__).parents[2]
    script = root / "scripts" / "sample_data" / "structural.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    shipped = root / "src" / "graphcontext" / "data" / "sample" / "structural_sample"
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(p.name for p in shipped.iterdir() if p.name not in ("README.md", "LICENSE.txt"))
    assert all((tmp_path / name).read_bytes() == (shipped / name).read_bytes() for name in made)
