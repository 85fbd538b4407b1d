"""The facts that a text states, as FactSumm finds them: named entities, then TACRED's relations between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import ClassVar

from graphcontext.data.sentences import sentences
from graphcontext.enhance.triples import Triple
from graphcontext.evaluate import entity_tagger, relation_classifier
from graphcontext.evaluate.entity_tagger import Entity, EntityTagger
from graphcontext.evaluate.relation_classifier import RelationClassifier

NONE = "no_relation"
_FACTS: dict[tuple[str, str], tuple[Triple, ...]] = {}  # (models, text) → facts: metrics and rows share them


class LukeTacred:
    """Reads facts as the package factsumm 0.1.5 does, which GraphContextGen scores with (§5, Table 3).

    Per sentence: named entities by a tagger, then the relation of each ordered pair of them by LUKE. Dropped are
    pairs without a relation or with equal texts, a ``per:`` relation of a subject that is no PERSON, any other
    relation of a PERSON, and a ``members`` relation whose object is no PERSON. A process reads each distinct text
    once, until the models are freed.

    Differs from the package: sentences are cut by spaCy's rule-based sentencizer (pysbd there); a sentence that a
    model can't read whole is halved at the blank nearest to its middle until it fits (an error there); an
    entity's kind is that of the mention itself (there, of the last mention of the sentence spelled so); pairs
    are batched.

    Args:
        tagger: has ``entities(sentences)``, ``fits`` and ``signature``.
        classifier: has ``extract(pairs)``, ``fits`` and ``signature``.

    Raises:
        MissingWeightsError: at the first call, a model is not on this machine.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, tagger: EntityTagger, classifier: RelationClassifier) -> None:
        self.tagger, self.classifier = tagger, classifier

    @property
    def signature(self) -> str:
        """Class and both models with the first digits of what names their weights."""
        return f"{type(self).__name__} {self.tagger.signature} {self.classifier.signature}"

    def facts(self, texts: Sequence[str]) -> list[tuple[Triple, ...]]:
        """Return the facts of each text, each once, in order."""
        models = self.signature
        missing = list(dict.fromkeys(text for text in texts if (models, text) not in _FACTS))
        _FACTS.update({(models, text): facts for text, facts in zip(missing, self._read(missing), strict=True)})
        return [_FACTS[models, text] for text in texts]

    def _read(self, texts: list[str]) -> list[tuple[Triple, ...]]:
        lines = [(n, piece) for n, text in enumerate(texts) for s in sentences(text) for piece in pieces(s, self._fits)]
        mentions = self.tagger.entities([line for _, line in lines])
        pairs = [
            (n, (line, subject, object_))
            for (n, line), found in zip(lines, mentions, strict=True)
            for subject, object_ in permutations(found, 2)
        ]
        relations = self.classifier.extract([pair for _, pair in pairs]) if pairs else []
        facts: list[dict[Triple, None]] = [{} for _ in texts]
        for (n, (line, subject, object_)), relation in zip(pairs, relations, strict=True):
            head, tail = line[subject.start : subject.end], line[object_.start : object_.end]
            if head != tail and is_plausible(subject, relation, object_):
                facts[n][head, relation, tail] = None
        return [tuple(found) for found in facts]

    def _fits(self, sentence: str) -> bool:
        return self.tagger.fits(sentence) and self.classifier.fits(sentence)


def is_plausible(subject: Entity, relation: str, object_: Entity) -> bool:
    """Tell whether a relation goes with the kinds of its mentions.

    >>> is_plausible(Entity(0, 3, "PERSON"), "org:founded", Entity(4, 8, "DATE"))
    False
    """
    if relation == NONE or (subject.kind == "PERSON") != relation.startswith("per:"):
        return False
    return object_.kind == "PERSON" or "members" not in relation


def pieces(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Return a sentence, or what it falls into when it's halved until each piece fits.

    >>> pieces("one two three four", lambda piece: len(piece) < 10)
    ['one two', 'three', 'four']
    """
    if len(sentence) < 2 or fits(sentence):
        return [sentence]
    blanks = [i for i, character in enumerate(sentence) if character.isspace()]
    middle = min(blanks, key=lambda i: abs(i - len(sentence) // 2), default=len(sentence) // 2)
    halves = (sentence[:middle].strip(), sentence[middle:].strip())
    return [piece for half in halves if half for piece in pieces(half, fits)]


def release() -> None:
    """Free both models, and forget the facts that this process keeps for the next metric and row."""
    _FACTS.clear()
    entity_tagger.release()
    relation_classifier.release()
