"""The vocabulary between stages: frozen dataclasses, ids that are content hashes, JSON in and out.

``Corpus → Graph → Ranking → Context → Prediction → Score``. A stage takes and returns these and nothing else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Status = Literal["ok", "empty", "failed"]


def content_id(*parts: str) -> str:
    """Return the first 16 hex digits of the SHA-256 of ``parts``: equal content, equal id."""
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """Where a text comes from, kept for attribution (CC BY-SA asks for author and link).

    ``document`` names the file or article a passage was cut from where it is one of several, ``page`` the page of
    it, from 1.
    """

    link: str = ""
    author: str = ""
    license: str = ""
    date: str = ""  # ISO 8601
    document: str | None = None
    page: int | None = None


@dataclass(frozen=True)
class Answer:
    """One answer of a thread in a question pool; ``votes`` is the site's score (any integer)."""

    text: str
    votes: int = 0
    accepted: bool = False
    author: str = ""


@dataclass(frozen=True)
class Passage:
    """One retrievable unit: retrieved on ``match_text``, shown to the model as ``context_text``.

    For a question pool ``match_text`` is the question (title, newline, body) and ``context_text`` the
    question with its accepted answer; ``answers`` holds every answer of the thread. Two passages with
    one title are two passages: ``id`` is a hash of the content, or the user's own, never the title. ``kind`` tells
    the nodes of a document's structure apart: a ``page`` has no text of its own, a ``table`` is Markdown; None is text.
    """

    id: str
    title: str
    match_text: str
    context_text: str
    source: Source = Source()
    answers: tuple[Answer, ...] = ()
    kind: Literal["page", "table"] | None = None


@dataclass(frozen=True)
class Corpus:
    """The passages one or more questions are answered from. ``id`` hashes the passages' content."""

    id: str
    passages: tuple[Passage, ...]

    @staticmethod
    def of(passages: list[Passage] | tuple[Passage, ...]) -> Corpus:
        """Build a corpus whose id covers everything a stage can read of its passages."""
        digest = hashlib.sha256(b"[")
        for n, passage in enumerate(passages):  # as content_id, without holding all lines at once
            line = json.dumps(to_json(passage), sort_keys=True, ensure_ascii=False)
            digest.update(((", " if n else "") + json.dumps(line, ensure_ascii=False)).encode())
        digest.update(b"]")
        return Corpus(digest.hexdigest()[:16], tuple(passages))


@dataclass(frozen=True)
class Question:
    """One question to answer from the corpus named by ``corpus_id``.

    ``text`` is what is asked (for a forum: title, newline, body), ``references`` the gold answers,
    ``supports`` the ids of gold passages where the data set has them, ``grades`` how relevant each of them is
    (whole numbers from 1), None where all are 1.
    """

    id: str
    text: str
    corpus_id: str
    references: tuple[str, ...] = ()
    title: str = ""
    supports: tuple[str, ...] = ()
    source: Source = Source()
    grades: tuple[int, ...] | None = None

    @property
    def gold(self) -> dict[str, int]:
        """Return gold passage → grade, in the order of ``supports``."""
        return dict(zip(self.supports, self.grades or (1,) * len(self.supports), strict=True))


@dataclass(frozen=True, eq=False)
class Graph:
    """A passage graph in CSR form, one node per passage of the corpus, in the corpus' order.

    Args:
        corpus_id: the corpus whose passages are the nodes.
        indptr: row pointers, shape (n_nodes + 1,), int64.
        indices: neighbour of each edge slot, shape (n_edge_slots,), int32; an undirected edge fills two.
        weights: edge weights > 0, shape (n_edge_slots,), float32.
        facts: what the builder reports (threshold, edges, density, components …), JSON types only.
    """

    corpus_id: str
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    directed: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def n_nodes(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True)
class Scored:
    """A passage id with its retrieval score (higher is better)."""

    id: str
    score: float


@dataclass(frozen=True)
class Step:
    """One step of a traversal: from the last passage of ``path``, what was looked for and where it led.

    Args:
        path: ids of the passages on the reasoning path so far, seed first; empty where the seeds are chosen.
        evidence: the text that candidates were ranked by: the question, or what an agent wrote as next evidence.
        chosen: ids of the passages that were taken, best first; empty where the path ends.
        n_candidates: how many passages there were to choose from.
        reason: why the path ends, or what failed, None where neither.
    """

    path: tuple[str, ...]
    evidence: str
    chosen: tuple[str, ...]
    n_candidates: int
    reason: str | None = None


@dataclass(frozen=True)
class Ranking:
    """The passages retrieved for one question, best first.

    ``fallback`` names the fall-back that was taken for this question (``cosine`` where PageRank had no
    seed), None where there was none. ``steps`` are those of a traversal, in the order they were taken. ``retry`` is
    True where a part of it failed that may succeed another time (a server's fault): it is made again by the next run.
    """

    id: str
    passages: tuple[Scored, ...]
    status: Status = "ok"
    reason: str | None = None
    fallback: str | None = None
    steps: tuple[Step, ...] | None = None
    retry: bool | None = None


@dataclass(frozen=True)
class Unit:
    """One piece of context that is shown whole or cut whole; ``source`` is a passage id or a component's name.

    ``triple`` is the (head, relation, tail) that the text is the sentence of, None for other texts.
    """

    id: str
    text: str
    source: str
    triple: tuple[str, str, str] | None = None


@dataclass(frozen=True)
class Context:
    """What the model is shown for one question. ``n_cut`` counts the units that did not fit the budget.

    ``retry`` is True where something of it failed that may succeed another time (a server's fault during
    extraction): the context is used as it is, and made again by the next run.
    """

    id: str
    units: tuple[Unit, ...]
    n_tokens: int = 0
    n_cut: int = 0
    status: Status = "ok"
    reason: str | None = None
    retry: bool | None = None


@dataclass(frozen=True)
class Prediction:
    """One generated answer. ``n_tokens`` counts generated tokens; ``finish`` is ``stop``, ``length`` or None."""

    id: str
    question: str
    prediction: str
    references: tuple[str, ...]
    n_tokens: int = 0
    status: Status = "ok"
    reason: str | None = None
    finish: str | None = None


_ENTRIES = {"passages": Scored, "units": Unit, "answers": Answer, "steps": Step}
_LATER = {"source": ("document", "page"), "units": ("triple",), "steps": ("reason",)}  # entries' optional fields


def to_json(record: Any) -> dict[str, Any]:
    """Return a record as a dict of JSON types; ``reason`` and other empty optional fields are left out."""
    found = {k: v for k, v in dataclasses.asdict(record).items() if v is not None}
    for name, optional in _LATER.items():
        entries = found.get(name, ())
        for entry in [entries] if isinstance(entries, dict) else entries:
            for key in optional:
                if entry[key] is None:
                    del entry[key]
    return found


def from_json(cls: type, row: dict[str, Any]) -> Any:
    """Rebuild a record of class ``cls`` (Passage, Question, Ranking, Context or Prediction) from :func:`to_json`."""
    values: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        if f.name not in row:
            continue
        value = row[f.name]
        if f.name in _ENTRIES:
            value = tuple(_ENTRIES[f.name](**{k: _frozen(v) for k, v in entry.items()}) for entry in value)
        elif isinstance(value, list):
            value = _frozen(value)
        elif f.name == "source" and isinstance(value, dict):
            value = Source(**value)
        values[f.name] = value
    return cls(**values)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
