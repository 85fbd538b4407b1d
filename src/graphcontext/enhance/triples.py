"""The context enhancer of GraphContextGen: triples of the context, as sentences after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking, Status, Unit, content_id
from graphcontext.enhance.none import passages_context, ranked_passages
from graphcontext.errors import InputError, did_you_mean

Triple = tuple[str, str, str]  # head, relation, tail
PLACES = ("end", "passage")


@dataclass(frozen=True)
class Extraction:
    """The triples of one passage; ``empty``: it names none, ``failed``: the extractor could not say.

    ``lost`` says what failed of an extraction that is not failed as a whole (``llm parse``).
    """

    triples: tuple[Triple, ...] = ()
    status: Status = "ok"
    reason: str | None = None
    lost: str | None = None


@dataclass(frozen=True)
class Knowledge:
    """The triples that are added to one context.

    Args:
        triples: each with its source (an extractor's name, ``wikidata``), in the order they are shown in.
        reasons: what is missing, counted under a table.
        retry: something of it failed that may succeed another time.
        owner: triple → the first passage that has it; those from elsewhere have none.
    """

    triples: tuple[tuple[Triple, str], ...] = ()
    reasons: tuple[str, ...] = ()
    retry: bool = False
    owner: Mapping[Triple, str] = field(default_factory=dict)


class Triples:
    r"""Enhances a context by sentences made of its triples (GraphContextGen §4.3, Algorithm 1).

    .. math:: C_{enc} = C \,\|\, S, \qquad S = \{\text{"h r t."} : (h, r, t) \in \tau_{init}(C)\}

    A context without any triple, or whose extraction failed, goes on as it is; ``reason`` says so
    (``no triples``; ``extraction failed for 1 of 2 passages: parse``), so that it can be counted.

    Differs from the paper: it extracts from the whole C, ours from each passage, so that a passage which
    several questions share is extracted once; a triple never spans two passages. The paper joins an LLM and
    REBEL: the extractor ``llm_rebel`` does. Wikidata's one-hop triples are another enhancer (``wikidata``).

    Args:
        extractor: has ``extract(passages) -> list[Extraction]``, ``name``, and ``repeatable``: whether a failed
            extraction would fail again, so that the next run need not try.
        show_passages: whether C itself is shown; false gives OnlyContextGen (only S).
        place: ``end``, S after C as in the paper; or ``passage``, each passage's own sentences behind it, so that a
            budget that C alone fills up cuts both alike.

    Raises:
        InputError: another ``place``.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    neutral: ClassVar[dict[str, Any]] = {"place": "end"}

    def __init__(self, extractor: Any, show_passages: bool = True, place: str = "end") -> None:
        if place not in PLACES:
            raise InputError(f"enhancer.place={place}{did_you_mean(str(place), PLACES)}")
        self.extractor, self.show_passages, self.place = extractor, show_passages, place

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: its passages best first, then one unit per distinct sentence."""
        found = ranked_passages(questions, rankings, corpora)
        known = initial_knowledge(found, self.extractor)
        return [
            add_sentences(passages_context(ranking, passages), knowledge, self.show_passages, self.place)
            for ranking, passages, knowledge in zip(rankings, found, known, strict=True)
        ]


def initial_knowledge(found: Sequence[Sequence[Passage]], extractor: Any) -> list[Knowledge]:
    """Return τ_init of each list of passages, by index; a passage that several lists share is extracted once."""
    distinct: dict[str, Passage] = {p.id: p for passages in found for p in passages}
    extractions = dict(zip(distinct, extractor.extract(list(distinct.values())), strict=True))
    known = []
    for passages in found:
        owner = {triple: p.id for p in reversed(passages) for triple in extractions[p.id].triples}
        known.append(replace(_joined([extractions[p.id] for p in passages], extractor), owner=owner))
    return known


def _joined(extractions: Sequence[Extraction], extractor: Any) -> Knowledge:
    triples = dict.fromkeys(t for e in extractions for t in e.triples)
    failures = Counter(e.reason or "unknown" for e in extractions if e.status == "failed")
    reasons = []
    if failures:
        kinds = ", ".join(sorted({kind.partition(":")[0] for kind in failures}))
        reasons.append(f"extraction failed for {sum(failures.values())} of {len(extractions)} passages: {kinds}")
    lost = [e.lost for e in extractions if e.lost]
    if lost:
        kinds = ", ".join(sorted(set(lost)))
        reasons.append(f"extraction failed in part for {len(lost)} of {len(extractions)} passages: {kinds}")
    if not triples:
        reasons.append("no triples")
    pairs = tuple((triple, extractor.name) for triple in triples)
    return Knowledge(pairs, tuple(reasons), bool(failures or lost) and not extractor.repeatable)


def add_sentences(plain: Context, knowledge: Knowledge, show_passages: bool = True, place: str = "end") -> Context:
    """Return C ‖ S: the context's units and one per distinct sentence; without passages it stays as it is."""
    if plain.status == "failed" or not plain.units:
        return plain
    first: dict[str, tuple[Triple, str]] = {}
    for triple, source in knowledge.triples:
        first.setdefault(sentence(triple), (triple, source))
    facts = tuple(Unit(content_id("triple", s), s, source, triple) for s, (triple, source) in first.items())
    units = (*plain.units, *facts) if show_passages else facts
    if place == "passage":
        rank = {unit.source: i for i, unit in enumerate(plain.units)}
        last = len(rank)
        units = tuple(sorted(units, key=lambda u: rank.get(_owner(u, knowledge), last)))  # stable: a passage first
    reasons = [plain.reason] if plain.reason else []
    return replace(
        plain,
        units=units,
        reason="; ".join([*reasons, *knowledge.reasons]) or None,
        retry=True if knowledge.retry else None,
    )


def _owner(unit: Unit, knowledge: Knowledge) -> str | None:
    return unit.source if unit.triple is None else knowledge.owner.get(unit.triple)


def sentence(triple: Triple) -> str:
    """Return head, relation and tail in sequence as a sentence (Algorithm 1 of the paper).

    >>> sentence(("ss", "lists", "open sockets"))
    'ss lists open sockets.'
    """
    return " ".join(part.strip() for part in triple).rstrip(".") + "."
