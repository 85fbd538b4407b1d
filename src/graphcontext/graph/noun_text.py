"""The nouns of a passage, stemmed: what the keyword graph and KNN-ST of KGP are built on (official code)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.data.records import Corpus, Passage
from graphcontext.enhance.spacy_extractor import load_pipeline
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph.by_text import ByText

TAGS = ("raw", "stemmed", "plain")
_NOUNS = frozenset(("NOUN", "PROPN"))
_TAGGING = frozenset(("tok2vec", "transformer", "tagger", "morphologizer", "attribute_ruler"))  # all that it needs


class NounText:
    """Reduces a text to its nouns: lower-case, without stop words and single characters, Porter-stemmed (KGP's code).

    ``tag`` says what the tagger reads. ``stemmed`` is the code's order: the text is cut at blanks, cleaned and stemmed,
    and what is then tagged as NOUN or PROPN stays. ``raw``, the default, tags the sentence as it was written and stems
    the nouns: a tagger learnt its words from whole sentences, and takes "univers" or "countri" for whatever comes to
    hand. On 20 padded HotpotQA questions, what KNN-ST joins to TF-IDF's five passages held all supports of 13 questions
    after ``raw`` and of 10 after ``stemmed``; what the keyword graph joins, of 19 after either, with fewer passages
    after ``raw``. ``plain`` tags likewise and keeps the nouns as they were written, for the retriever KNN.

    Args:
        model: embedded name (``spacy_en``) or the folder of a spaCy pipeline with a tagger.
        revision: null; a folder is named by its files.
        tag: ``raw``, ``stemmed`` or ``plain``.

    Raises:
        InputError: another ``tag``.
        MissingWeightsError: at the first text, the model is not on this machine.

    Differs from the paper:
        The code drops NLTK's stop words, a list that NLTK downloads; ours are spaCy's 326. Its tagger is
        ``en_core_web_lg``, ours the small model of the same family. ``tag=raw`` is ours.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, model: str, revision: str | None = None, tag: str = "raw") -> None:
        if tag not in TAGS:
            raise InputError(f"noun_text.tag={tag}; allowed: {', '.join(TAGS)}{did_you_mean(str(tag), TAGS)}")
        self.model, self.revision, self.tag = model, revision, tag
        self._by_text = ByText("noun_text", self._facts, self._reduce)

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the pipeline's files."""
        return models.identity(config["model"], config.get("revision"))

    def bind(self, workspace: Any) -> None:
        """Keep what was tagged in the workspace's store from now on."""
        self._by_text.bind(workspace)

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Tag the passages of all corpora, each text once."""
        self.nouns([p.match_text for corpus in corpora.values() for p in corpus.passages])

    def of(self, passage: Passage) -> str:
        """Return the nouns of a passage's ``match_text``."""
        return self.nouns([passage.match_text])[0]

    def nouns(self, texts: Sequence[str]) -> list[str]:
        """Return the nouns of each text, joined by blanks, by index."""
        return self._by_text.of(texts)

    def _facts(self) -> list[Any]:
        return [self.version, models.identity(self.model, self.revision), self.tag]

    def _reduce(self, texts: list[str]) -> list[str]:
        pipeline = load_pipeline(self.model, self.revision)
        unused = [name for name in pipeline.pipe_names if name not in _TAGGING]
        read = [stemmed(text.lower().split()) for text in texts] if self.tag == "stemmed" else texts
        found = []
        for doc in pipeline.pipe(read, disable=unused, batch_size=256):
            words = [token.text for token in doc if token.pos_ in _NOUNS]
            found.append(stemmed(word.lower() for word in words) if self.tag == "raw" else " ".join(words))
        return found


def stemmed(words: Any) -> str:
    """Return the stems of some lower-case words, without stop words and single characters, joined by blanks.

    >>> stemmed(["the", "capital", "cities", "of", "a", "country"])
    'capit citi countri'
    """
    return " ".join(stem(word) for word in words if len(word) > 1 and word not in stop_words())


@functools.cache
def stop_words() -> frozenset[str]:
    """Return spaCy's English stop words."""
    from spacy.lang.en.stop_words import STOP_WORDS

    return frozenset(STOP_WORDS)


@functools.lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return the Porter stem of a lower-case word, with NLTK's extensions, as the code calls it."""
    return _stemmer().stem(word)


@functools.cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()
