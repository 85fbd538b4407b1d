"""The context enhancer of GraphContextGen in full: triples of the context, joined by Wikidata's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking
from graphcontext.enhance.none import passages_context, ranked_passages
from graphcontext.enhance.one_hop import Neighbours
from graphcontext.enhance.surface_form import normalise
from graphcontext.enhance.triples import Knowledge, Triple, add_sentences, initial_knowledge, sentence
from graphcontext.errors import InputError, did_you_mean

MATCHES = ("entities", "text")


class Wikidata:
    r"""Enhances a context by its own triples and Wikidata's between its entities (GraphContextGen §4.3, Algorithm 1).

    .. math::

        \tau' &= \bigcup_{e \in Ent(C)} \text{one-hop}(e), \qquad
        \tau_f = \tau_{init} \cup \{(h, r, t) \in \tau' : h, t \in Ent(C)\} \\
        C_{enc} &= C \,\|\, S, \qquad S = \{\text{"h r t."} : (h, r, t) \in \tau_f\}

    Ent(C) holds the heads and tails of τ_init; names are compared without regard to case, blanks and the marks around
    them. The head of a one-hop triple is the entity that was asked for, so it is in C by construction. S is a set in
    the paper; ours shows Wikidata's triples first, entity by entity in the order in which C names them, then τ_init:
    that repeats what C says, and a token budget cuts what comes last.

    Counted in ``reason``: ``no wikidata entry`` (no entity of C is known there), ``no wikidata triple kept`` (some are,
    but none is joined to another), and what failed; a context goes on without what it lacks.

    Differs from the paper: τ_init as in :class:`graphcontext.enhance.triples.Triples`. The paper's text asks for tails
    "present in the context", its algorithm for tails in Ent(C): ``match`` chooses. Only statements of an entity are
    asked for, not those about it: under ``entities`` these are statements of the other entity.

    Args:
        extractor: as in :class:`graphcontext.enhance.triples.Triples`.
        one_hop: has ``name`` and ``neighbours(names) -> dict[str, Neighbours]`` with an answer for each name, spellings
            of one name included, that does not depend on the others.
        match: ``entities``: the tail is in Ent(C); ``text``: the tail stands in the text of C, as whole words.
        show_passages: whether C itself is shown; false gives OnlyContextGen (only S).

    Raises:
        InputError: another ``match``.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, extractor: Any, one_hop: Any, match: str = "entities", show_passages: bool = True) -> None:
        if match not in MATCHES:
            raise InputError(f"enhancer.match={match}{did_you_mean(str(match), MATCHES)}")
        self.extractor, self.one_hop = extractor, one_hop
        self.match, self.show_passages = match, show_passages

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: passages, sentences of Wikidata's triples, sentences of τ_init."""
        found = ranked_passages(questions, rankings, corpora)
        initial = initial_knowledge(found, self.extractor)
        asked = [entities(knowledge) for knowledge in initial]
        answers = self.one_hop.neighbours(sorted({name for names in asked for name in names.values()}))
        contexts = []
        for ranking, passages, knowledge, names in zip(rankings, found, initial, asked, strict=True):
            text = joined_text(passages) if self.match == "text" else None
            joined = join(knowledge, names, answers, text, self.one_hop.name)
            contexts.append(add_sentences(passages_context(ranking, passages), joined, self.show_passages))
        return contexts


def entities(knowledge: Knowledge) -> dict[str, str]:
    """Return Ent(C): normalised name → the name as first written, of heads and tails in their order."""
    found: dict[str, str] = {}
    for (head, _, tail), _ in knowledge.triples:
        for name in (head, tail):
            found.setdefault(normalise(name), name)
    found.pop("", None)
    return found


def join(
    knowledge: Knowledge, names: dict[str, str], answers: dict[str, Neighbours], text: str | None, source: str
) -> Knowledge:
    """Return τ_f = τ_init ∪ filtered τ' (Algorithm 1, lines 3 to 8).

    Args:
        knowledge: τ_init.
        names: Ent(C) (:func:`entities`).
        answers: name as written → its one-hop triples.
        text: C as :func:`joined_text`, None to look for tails in Ent(C).
        source: the one-hop source's name.
    """
    if not names:
        return knowledge
    mine = {key: answers[written] for key, written in names.items()}
    kept = [t for key, found in mine.items() for t in found.triples if _is_present(key, t, names, text)]
    failures = [found.reason or "unknown" for found in mine.values() if found.status == "failed"]
    reasons = list(knowledge.reasons)
    if failures:
        kinds = ", ".join(sorted({reason.partition(":")[0] for reason in failures}))
        reasons.append(f"{source} failed for {len(failures)} of {len(mine)} entities: {kinds}")
    if not any(found.triples for found in mine.values()):
        reasons.append(f"no {source} entry")
    elif not kept:
        reasons.append(f"no {source} triple kept")
    own = {sentence(triple) for triple, _ in knowledge.triples}
    new = [(t, source) for t in dict.fromkeys(kept) if sentence(t) not in own]
    triples = (*new, *knowledge.triples)
    return replace(knowledge, triples=triples, reasons=tuple(reasons), retry=knowledge.retry or bool(failures))


def _is_present(head: str, triple: Triple, names: dict[str, str], text: str | None) -> bool:
    tail = normalise(triple[2])
    if not tail or tail == head:
        return False
    if text is None:
        return tail in names
    return tail in text and re.search(rf"(?<!\w){re.escape(tail)}(?!\w)", text) is not None


def joined_text(passages: Sequence[Passage]) -> str:
    """Return C in lower case with single blanks."""
    return " ".join(" ".join(p.context_text.lower().split()) for p in passages)
