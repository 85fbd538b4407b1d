"""The context enhancer of GraphContextGen: triples of the context, as sentences after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking, Status, Unit, content_id
from graphcontext.enhance.none import passages_context, ranked_passages

Triple = tuple[str, str, str]  # head, relation, tail


@dataclass(frozen=True)
class Extraction:
    """The triples of one passage; ``empty``: it names none, ``failed``: the extractor could not say."""

    triples: tuple[Triple, ...] = ()
    status: Status = "ok"
    reason: str | None = None


class Triples:
    r"""Enhances a context by sentences made of its triples (GraphContextGen §4.3, Algorithm 1).

    .. math:: C_{enc} = C \,\|\, S, \qquad S = \{\text{"h r t."} : (h, r, t) \in \tau_{init}(C)\}

    A context without any triple, or whose extraction failed, goes on as it is; ``reason`` says so
    (``no triples``; ``extraction failed for 1 of 2 passages: parse``), so that it can be counted.

    Differs from the paper: it extracts from the whole C, ours from each passage, so that a passage which
    several questions share is extracted once; a triple never spans two passages. The paper joins an LLM and
    REBEL, ours takes one extractor. Wikidata's one-hop triples are another enhancer.

    Args:
        extractor: has ``extract(passages) -> list[Extraction]``, ``name``, and ``repeatable``: whether a failed
            extraction would fail again, so that the next run need not try.
        show_passages: whether C itself is shown; false gives OnlyContextGen (only S).
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, extractor: Any, show_passages: bool = True) -> None:
        self.extractor, self.show_passages = extractor, show_passages

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: its passages best first, then one unit per distinct sentence."""
        found = ranked_passages(questions, rankings, corpora)
        distinct: dict[str, Passage] = {p.id: p for passages in found for p in passages}
        extractions = dict(zip(distinct, self.extractor.extract(list(distinct.values())), strict=True))
        return [
            self._context(ranking, passages, [extractions[p.id] for p in passages])
            for ranking, passages in zip(rankings, found, strict=True)
        ]

    def _context(
        self, ranking: Ranking, passages: Sequence[Passage], extractions: Sequence[Extraction]
    ) -> Context:
        plain = passages_context(ranking, passages)
        if plain.status == "failed" or not passages:
            return plain
        sentences = dict.fromkeys(sentence(t) for e in extractions for t in e.triples)
        facts = tuple(Unit(content_id("triple", s), s, self.extractor.name) for s in sentences)
        reasons = [plain.reason] if plain.reason else []
        failures = Counter(e.reason or "unknown" for e in extractions if e.status == "failed")
        if failures:
            kinds = ", ".join(sorted({kind.partition(":")[0] for kind in failures}))
            n_failed = sum(failures.values())
            reasons.append(f"extraction failed for {n_failed} of {len(passages)} passages: {kinds}")
        if not facts:
            reasons.append("no triples")
        units = (*plain.units, *facts) if self.show_passages else facts
        retry = True if failures and not self.extractor.repeatable else None
        return replace(plain, units=units, reason="; ".join(reasons) or None, retry=retry)


def sentence(triple: Triple) -> str:
    """Return head, relation and tail in sequence as a sentence (Algorithm 1 of the paper).

    >>> sentence(("ss", "lists", "open sockets"))
    'ss lists open sockets.'
    """
    return " ".join(part.strip() for part in triple).rstrip(".") + "."
