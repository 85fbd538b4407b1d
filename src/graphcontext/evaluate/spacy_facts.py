"""The facts that a text states, by spaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.enhance.spacy_extractor import load_pipeline, patterns, prose_lines
from graphcontext.enhance.triples import Triple

_FACTS: dict[tuple[str, str], tuple[Triple, ...]] = {}  # (pipeline, text) → facts: metrics and rows share them


class SpacyFacts:
    """Reads facts off a dependency parse; stand-in for the NER and relation models of FactSumm (GraphContextGen §5).

    The facts of a text are the triples of its prose lines, as the extractor ``spacy`` finds them, but of the lemmas
    of the two nouns alone, so that "the old servers" and "a server" are one subject. A process parses each
    distinct text once, until the models are freed.

    Differs from the paper: FactSumm's relations are TACRED's 41, ours the words of the sentence, so facts of two
    answers seldom coincide: for 0 to 8 % of the questions of the sample and of one real dump.

    Args:
        model: embedded name (``spacy_en``) or the folder of a spaCy pipeline with tagger and parser.
        revision: null; a folder is named by its files.

    Raises:
        InputError: at the first call, a pipeline without a parser.
        MissingWeightsError: at the first call, the model is not on this machine.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, model: str, revision: str | None = None) -> None:
        self.model, self.revision = model, revision

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the pipeline's files."""
        return models.identity(config["model"], config.get("revision"))

    @property
    def signature(self) -> str:
        """Class and model with the first digits of its hash, such as ``SpacyFacts spacy_en@e94cbf6c2424``."""
        return f"{type(self).__name__} {models.signature(self.model, self.revision)}"

    def facts(self, texts: Sequence[str]) -> list[tuple[Triple, ...]]:
        """Return the facts of each text, each once, in order."""
        folder = str(models.resolve(self.model, self.revision)) if texts else ""
        missing = list(dict.fromkeys(text for text in texts if (folder, text) not in _FACTS))
        lines = [(line, text) for text in missing for line in prose_lines(text)]
        found: dict[str, dict[Triple, None]] = {text: {} for text in missing}
        for doc, text in load_pipeline(self.model, self.revision).pipe(lines, as_tuples=True) if lines else ():
            for sentence in doc.sents:
                found[text] |= dict.fromkeys(sentence_facts(sentence))
        _FACTS.update({(folder, text): tuple(facts) for text, facts in found.items()})
        return [_FACTS[folder, text] for text in texts]


def sentence_facts(sentence: Any) -> Iterator[Triple]:
    """Yield (lemma, relation, lemma) of one parsed sentence; pronouns and what has no letter name nothing."""
    for head, relation, tail in patterns(sentence):
        subject, object_ = ((token.lemma_ or token.text).lower() for token in (head, tail))
        named = all(t.pos_ != "PRON" and any(c.isalpha() for c in t.text) for t in (head, tail))
        if named and subject != object_:
            yield subject, relation, object_


def release() -> None:
    """Forget the facts that this process keeps for the next metric and row."""
    _FACTS.clear()
