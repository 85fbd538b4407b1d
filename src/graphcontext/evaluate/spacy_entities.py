"""The entities that a text names, by spaCy."""

from __future__ import annotations

from typing import Any, ClassVar

from graphcontext import models
from graphcontext.enhance.spacy_extractor import load_pipeline, phrase, prose_lines
from graphcontext.enhance.surface_form import normalise


class SpacyEntities:
    """Finds named entities and noun phrases; stand-in for UniversalNER (GraphContextGen Fig 2A).

    Differs from the paper: UniversalNER is a language model asked for one type of entity at a time; ours are
    spaCy's entities of all types, and noun phrases, which name most of what technical texts speak of.

    Args:
        model: embedded name (``spacy_en``) or the folder of a spaCy pipeline with parser and entity recogniser.
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
        """Class and model with the first digits of its hash, such as ``SpacyEntities spacy_en@e94cbf6c2424``."""
        return f"{type(self).__name__} {models.signature(self.model, self.revision)}"

    def entities(self, text: str) -> list[str]:
        """Return the named entities and noun phrases of a text, normalised, each once, in order."""
        names: dict[str, None] = {}
        for doc in load_pipeline(self.model, self.revision).pipe(prose_lines(text)):
            spans = sorted([*doc.ents, *doc.noun_chunks], key=lambda s: (s.start, s.end))
            names |= dict.fromkeys(normalise(phrase(s)) for s in spans)
        return [name for name in names if name]
