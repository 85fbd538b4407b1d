"""Entities by their surface form: named entities and capitalised noun phrases, by spaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.data.records import Corpus, Passage
from graphcontext.enhance.spacy_extractor import load_pipeline, phrase
from graphcontext.enhance.surface_form import normalise
from graphcontext.graph.by_text import ByText
from graphcontext.graph.entity_links import texts_of

NUMBERS = frozenset(("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME"))
_POSSESSIVE = ("'s", "’s")


class SpacyNERLinker:
    """Names entities as the text writes them; stand-in for WAT (KGP §2.2).

    The entities of a passage are spaCy's named entities but numbers and times, and the noun phrases whose head is a
    proper noun and which begin with a capital, each normalised (lower case, no determiner, no possessive). Two
    passages speak of one entity where they write it alike: "Scott Derrickson" and "Derrickson" are two. There is no
    ambiguity to weigh, so every prior is 1 and the graph is the same at any threshold below 1.

    Args:
        model: embedded name (``spacy_en``) or the folder of a spaCy pipeline with parser and entity recogniser.
        revision: null; a folder is named by its files.

    Raises:
        InputError: at the first text, a pipeline without a parser.
        MissingWeightsError: at the first text, the model is not on this machine.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str] = "spacy_ner"

    def __init__(self, model: str, revision: str | None = None) -> None:
        self.model, self.revision = model, revision
        self._by_text = ByText("linker_spacy_ner", self._facts, self._read)

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the pipeline's files."""
        return models.identity(config["model"], config.get("revision"))

    def bind(self, workspace: Any) -> None:
        """Keep what was found in the workspace's store from now on."""
        self._by_text.bind(workspace)

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Read the passages of all corpora, each text once."""
        self._by_text.of(texts_of(corpora))

    def link(self, passages: Sequence[Passage]) -> list[list[tuple[str, float]]]:
        """Return the entities of each passage, each once, in order of appearance, with prior 1."""
        found = self._by_text.of([p.match_text for p in passages])
        return [[(entity, 1.0) for entity in entities] for entities in found]

    def _facts(self) -> list[Any]:
        return [self.version, models.identity(self.model, self.revision)]

    def _read(self, texts: list[str]) -> list[list[str]]:
        pipeline = load_pipeline(self.model, self.revision)
        unused = [name for name in ("lemmatizer",) if name in pipeline.pipe_names]
        docs = pipeline.pipe(texts, disable=unused, batch_size=256)
        return [list(dict.fromkeys(surface_forms(doc))) for doc in docs]


def surface_forms(doc: Any) -> Iterator[str]:
    """Yield the normalised names in a parsed text that have a letter."""
    entities = [s for s in doc.ents if s.label_ not in NUMBERS]
    phrases = [s for s in doc.noun_chunks if s.root.pos_ == "PROPN" and s.root.ent_type_ not in NUMBERS]
    for span in sorted([*entities, *phrases], key=lambda s: (s.start, s.end)):
        written = phrase(span).strip()
        for ending in _POSSESSIVE:
            written = written.removesuffix(ending)
        if written[:1].isupper() and any(c.isalpha() for c in written) and normalise(written):
            yield normalise(written)
