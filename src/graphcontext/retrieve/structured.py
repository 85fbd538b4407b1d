"""Structural questions are answered from the pages and tables of documents, others by another retriever (KGP §4.1)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from graphcontext.component import needs_graph
from graphcontext.data.outline import Outline, Section, TableNode
from graphcontext.data.records import Corpus, Graph, Question, Ranking, Scored, Step
from graphcontext.retrieve.by_corpus import by_corpus
from graphcontext.retrieve.routes import Route

NOT_FOUND = "structure_not_found"
ASKED, BESIDE = 1.0, 0.5  # scores of the nodes that were asked for, and of what stands on an asked page


class Structured:
    """Routes a question to the pages and tables it names, or to another retriever (KGP §4.1, Struct-EM in §5).

    Of a page come its node, then the texts and tables on it (one hop in the structure graph); of a table its Markdown.
    The asked nodes come first, in the order of the question. The document is the one that the question names by title
    or file name, else the only one, else every one that has such a page or table. A question for what no document has
    goes to the other retriever too, ``fallback="structure_not_found"``. That one never sees page nodes: they hold the
    same text again.

    Args:
        retriever: answers questions on content.
        router: has ``route(questions)``.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    records_steps: ClassVar[bool] = True

    def __init__(self, retriever: Any, router: Any):
        self.retriever, self.router = retriever, router
        self._outlines: dict[str, Outline] = {}

    @property
    def top_k(self) -> int | None:
        """Passages per question of the other retriever; a structural one gets as many, and all that it asks for."""
        return getattr(self.retriever, "top_k", None)

    @staticmethod
    def needs_graph(config: dict[str, Any]) -> bool:
        """Tell whether the other retriever is given a graph."""
        return needs_graph(config["retriever"])

    @staticmethod
    def calls(config: dict[str, Any]) -> int:
        """Return how many calls to a language model a question takes at most, for ``plan``."""
        from graphcontext.component import locate

        inner = getattr(locate(config["retriever"]["_target_"]), "calls", None)
        return ("llm" in config["router"]) + (inner(config["retriever"]) if inner else 0)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return each question's passages; ``steps`` holds the route of a structural one."""
        rankings: dict[int, Ranking] = {}
        kept, self._outlines = self._outlines, {}
        routes = dict(enumerate(self.router.route(questions)))
        missed: set[int] = set()
        for corpus, positions, asked in by_corpus(questions, corpora):
            outline = self._outlines[corpus.id] = kept.get(corpus.id) or Outline(corpus)
            for position, question in zip(positions, asked, strict=True):
                route = routes[position]
                if route.is_structural and outline.has_structure:
                    found = self._structural(question, route, outline)
                    if found is None:
                        missed.add(position)
                    else:
                        rankings[position] = found
        rest = [n for n in range(len(questions)) if n not in rankings]
        for n, ranking in zip(rest, self._content([questions[n] for n in rest], corpora, graphs), strict=True):
            reasons = [said for said in (routes[n].reason, ranking.reason) if said]
            fallback = NOT_FOUND if n in missed else ranking.fallback
            rankings[n] = replace(ranking, fallback=fallback, reason="; ".join(reasons) or None)
        return [rankings[n] for n in range(len(questions))]

    def _structural(self, question: Question, route: Route, outline: Outline) -> Ranking | None:
        """Return the ranking of a structural question, None where no document has what it asks for."""
        asked: list[int] = []
        beside: list[int] = []
        for section in _documents(question.text, outline):
            found, near = _nodes(route, section)
            asked += found
            beside += near
        if not asked:
            return None
        asked = list(dict.fromkeys(asked))
        beside = [index for index in dict.fromkeys(beside) if index not in asked]
        if self.top_k is not None:
            beside = beside[: max(0, self.top_k - len(asked))]
        ids = [outline.corpus.passages[index].id for index in (*asked, *beside)]
        hits = tuple(Scored(n, ASKED if at < len(asked) else BESIDE) for at, n in enumerate(ids))
        steps = [Step((), str(route), tuple(ids[: len(asked)]), _n_nodes(outline))]
        if beside:
            steps.append(Step((ids[0],), "on the page", tuple(ids[len(asked) :]), len(beside)))
        return Ranking(question.id, hits, reason=route.reason, steps=tuple(steps))

    def _content(
        self, questions: list[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        if not questions:
            return []
        named = {question.corpus_id for question in questions}
        views = {corpus_id: _without_pages(corpora[corpus_id]) for corpus_id in named}
        cut = dict(graphs)
        for corpus_id, (corpus, kept) in views.items():
            graph = graphs.get(corpora[corpus_id].id)
            if graph is not None and len(kept) < graph.n_nodes:
                cut[corpus.id] = _induced(graph, kept, corpus.id)
        shown = corpora | {corpus_id: corpus for corpus_id, (corpus, _) in views.items()}
        return self.retriever.retrieve(questions, shown, cut)


def _nodes(route: Route, section: Section) -> tuple[list[int], list[int]]:
    """Return the passage indices of a document that a route asks for, and of what stands on the asked pages."""
    last = max(section.pages, default=0)
    pages = [n if n > 0 else last + 1 + n for n in route.pages]
    pages = [n for n in pages if n in section.pages]
    tables: list[TableNode] = []
    for label in route.tables:
        numbered = section.numbered(label)
        on_page = [table for table in numbered if table.page in pages]
        tables += on_page if route.pages and on_page else numbered
    within = section.tables if not route.pages else [table for n in pages for table in section.tables_of(n)]
    for nth in route.nth_tables:
        at = nth - 1 if nth > 0 else len(within) + nth
        tables += within[at : at + 1] if at >= 0 else []
    if route.all_tables:
        tables += within
    if tables:
        return [index for table in tables for index in table.pieces], []
    if route.tables or route.nth_tables:
        return [], []
    texts = [index for n in pages for index in section.texts.get(n, ())]
    pieces = [index for n in pages for table in section.tables_of(n) for index in table.pieces]
    return [section.pages[n] for n in pages], texts + pieces


def _n_nodes(outline: Outline) -> int:
    return sum(len(section.pages) + len(section.tables) for section in outline.sections.values())


def _documents(text: str, outline: Outline) -> list[Section]:
    """Return the documents that a question names by title or file name, all where it names none.

    A whole title or file name decides, the longest where several occur; else the words of titles that not all
    documents share, each weighted by how few have it.
    """
    sections = [section for section in outline.sections.values() if section.pages or section.tables]
    asked = f" {' '.join(_words(text))} "
    whole: dict[str, int] = {}
    for section in sections:
        stem = re.sub(r"\.\w+$", "", section.name.rpartition("/")[2])
        names = (section.title, section.name, section.name.rpartition("/")[2], stem)
        whole[section.name] = max(len(n) for n in (_named(name, asked) for name in names))
    longest = max(whole.values(), default=0)
    if longest:
        return [section for section in sections if whole[section.name] == longest]
    titles = {s.name: set(_words(f"{s.title} {s.name.rpartition('/')[2].rpartition('.')[0]}")) for s in sections}
    spread = Counter(word for words in titles.values() for word in words)
    weight = {word: math.log(len(sections) / n) for word, n in spread.items() if len(word) > 2 or word.isdigit()}
    mine = set(asked.split())
    scores = {name: sum(weight.get(w, 0.0) for w in words & mine) for name, words in titles.items()}
    best = max(scores.values(), default=0.0)
    if best <= 0:
        return sections
    return [section for section in sections if scores[section.name] >= best - 1e-9]


def _named(name: str, asked: str) -> str:
    words = " ".join(_words(name))
    return words if words and f" {words} " in asked else ""


def _words(text: str) -> list[str]:
    """Return the lower-cased words and numbers of a text, possessives without their s.

    >>> _words("The Ferry-Manual's page_2")
    ['the', 'ferry', 'manual', 'page', '2']
    """
    return [w for w in re.findall(r"[^\W_]+", re.sub(r"['’]s\b", "", text.lower()))]


def _without_pages(corpus: Corpus) -> tuple[Corpus, np.ndarray]:
    """Return a corpus without page nodes, and the indices of the passages that stay."""
    kept = np.array([n for n, passage in enumerate(corpus.passages) if passage.kind != "page"], dtype=np.int64)
    if len(kept) == len(corpus.passages):
        return corpus, kept
    return Corpus(f"{corpus.id}-content", tuple(corpus.passages[n] for n in kept)), kept


def _induced(graph: Graph, kept: np.ndarray, corpus_id: str) -> Graph:
    """Return a graph on some of its nodes, with the edges between them."""
    from scipy.sparse import csr_array

    matrix = csr_array((graph.weights, graph.indices, graph.indptr), shape=(graph.n_nodes,) * 2)[kept][:, kept].tocsr()
    matrix.sort_indices()
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return replace(graph, corpus_id=corpus_id, indptr=indptr, indices=indices, weights=matrix.data)
