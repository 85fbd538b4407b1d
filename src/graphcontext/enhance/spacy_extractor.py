"""Triples from a dependency parse, by spaCy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.data.records import Passage
from graphcontext.enhance.surface_form import MARKS, normalise
from graphcontext.enhance.triples import Extraction, Triple
from graphcontext.errors import InputError

_SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj"))
_OBJECTS = frozenset(("dobj", "obj", "attr", "oprd", "dative"))
_NOUNS = frozenset(("NOUN", "PROPN"))
_DROPPED_POS = frozenset(("DET", "PRON", "PUNCT", "SPACE", "PART"))
_CODE = re.compile(r"[|$={}<>\\;]|(?:^|\s)(?:-{1,2}\w|/\w|sudo\s|#)")
_LONGEST = 8  # words of a head or tail; longer ones are code or a parse gone wrong
_LOADED: dict[str, Any] = {}


class SpacyExtractor:
    """Reads triples off a dependency parse; stand-in for M ∪ REBEL (GraphContextGen §4.3).

    Triples, per sentence and in this order: subject, verb, object; subject, verb + preposition, its object;
    for an imperative ("Use ss to list sockets") its object takes the subject's place in what follows "to";
    noun, preposition, noun ("list of sockets"); noun, "is", apposition. Heads and tails are noun phrases
    without determiners; pronouns are left out.

    Differs from the paper: REBEL and an LLM name relations of a knowledge graph, ours are the words of the
    sentence.

    Args:
        model: embedded name (``spacy_en``) or the folder of a spaCy pipeline with tagger and parser.
        revision: null; a folder is named by its files.
        max_triples: per passage, the first ones.

    Raises:
        InputError: ``max_triples`` below 1; at the first call, a pipeline without a parser.
        MissingWeightsError: at the first call, the model is not on this machine.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str] = "spacy"
    repeatable: ClassVar[bool] = True

    def __init__(self, model: str, revision: str | None = None, max_triples: int = 16) -> None:
        if max_triples < 1:
            raise InputError(f"extractor.max_triples={max_triples}; allowed: 1 and more")
        self.model, self.revision, self.max_triples = model, revision, max_triples

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the pipeline's files."""
        return models.identity(config["model"], config.get("revision"))

    def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """Return the triples of each passage's ``context_text``, by index."""
        lines = [(line, i) for i, p in enumerate(passages) for line in prose_lines(p.context_text)]
        found: list[dict[Triple, None]] = [{} for _ in passages]  # a dict keeps each once, in order
        pipeline = load_pipeline(self.model, self.revision)
        for doc, i in pipeline.pipe(lines, as_tuples=True, batch_size=64):
            found[i] |= dict.fromkeys(t for s in doc.sents for t in sentence_triples(s))
        firsts = [tuple(triples)[: self.max_triples] for triples in found]
        return [Extraction(triples, "ok" if triples else "empty") for triples in firsts]


def load_pipeline(model: str, revision: str | None) -> Any:
    """Return the spaCy pipeline, from memory where this process has it.

    Raises:
        MissingWeightsError: it is not on this machine.
        InputError: it is no spaCy pipeline, or has no parser.
    """
    folder = str(models.resolve(model, revision))
    if folder not in _LOADED:
        import spacy

        try:
            pipeline = spacy.load(folder)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder} is no spaCy pipeline: {str(error).splitlines()[0]}") from error
        if "parser" not in pipeline.pipe_names:
            raise InputError(f"{folder} has no parser; it has {', '.join(pipeline.pipe_names)}")
        _LOADED[folder] = pipeline
    return _LOADED[folder]


def prose_lines(text: str) -> list[str]:
    """Return the lines of a text that are not code, of which a parser makes nonsense.

    >>> prose_lines("List sockets with ss:\\n\\nsudo ss -tlnp | grep :80\\n\\nIt shows the process.")
    ['List sockets with ss:', 'It shows the process.']
    """
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith(("    ", "\t"))]
    prose = [line for line in lines if line.endswith((".", "?", "!", ":")) or not _CODE.search(line)]
    return [line.strip() for line in prose if line.strip()]


def sentence_triples(sentence: Any) -> Iterator[Triple]:
    """Yield the triples of one parsed sentence that have a usable head, relation and tail."""
    for head, relation, tail in patterns(sentence):
        triple = (_noun_phrase(head), " ".join(relation.split()), _noun_phrase(tail))
        if all(_is_usable(part) for part in triple) and normalise(triple[0]) != normalise(triple[2]):
            yield triple


def patterns(sentence: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield (head token, relation, tail token) of one parsed sentence, in the order of the class' docstring."""
    for token in sentence:
        if token.pos_ in ("VERB", "AUX"):
            for subject in _subjects(token):
                for relation, tail in _complements(token):
                    yield subject, relation, tail
    for token in sentence:
        if token.pos_ in _NOUNS:
            for preposition in (c for c in token.children if c.dep_ == "prep"):
                for tail in _with_conjuncts(preposition, "pobj"):
                    yield token, preposition.lower_, tail
            for tail in _with_conjuncts(token, "appos"):
                yield token, "is", tail


def _subjects(verb: Any) -> list[Any]:
    """Return who or what does it; "use X to V" and "the X V-ing" make X the subject of V."""
    own = [t for dep in _SUBJECTS for t in _with_conjuncts(verb, dep)]
    if own:
        return own
    if verb.dep_ == "conj" and verb.head.pos_ == "VERB":
        return _subjects(verb.head)
    if verb.dep_ in ("xcomp", "advcl") and verb.head.pos_ == "VERB":
        return _subjects(verb.head) or [t for dep in ("dobj", "obj") for t in _with_conjuncts(verb.head, dep)]
    if verb.dep_ in ("acl", "relcl") and verb.head.pos_ in _NOUNS:
        return [verb.head]
    return []


def _complements(verb: Any) -> Iterator[tuple[str, Any]]:
    """Yield (relation, tail) for each object of a verb and of its prepositions."""
    relation = _relation(verb)
    for dep in sorted(_OBJECTS):
        for tail in _with_conjuncts(verb, dep):
            yield relation, tail
    for child in verb.children:
        if child.dep_ in ("prep", "agent"):
            for tail in _with_conjuncts(child, "pobj"):
                yield f"{relation} {child.lower_}", tail


def _relation(verb: Any) -> str:
    """Return the verb as written with its negation, passive auxiliary and particle."""
    kept = [c for c in verb.children if c.dep_ in ("neg", "auxpass", "prt")]
    return " ".join(t.lower_ for t in sorted([*kept, verb], key=lambda t: t.i))


def _with_conjuncts(token: Any, dep: str) -> list[Any]:
    firsts = [c for c in token.children if c.dep_ == dep and c.pos_ != "PRON"]
    return [t for first in firsts for t in (first, *first.conjuncts)]


def _noun_phrase(token: Any) -> str:
    """Return a noun with its adjectives, compounds and numbers, as written."""
    parts = ("compound", "amod", "nummod", "nmod", "poss", "quantmod", "neg", "case")
    kept = [token]
    for t in kept:
        kept += [c for c in t.children if c.dep_ in parts and c.pos_ != "PRON"]
    positions = [t.i for t in kept]
    return " ".join(phrase(token.doc[min(positions) : max(positions) + 1]).split()).strip(MARKS)


def phrase(span: Any) -> str:
    """Return a span's text without leading determiners, pronouns and punctuation."""
    tokens = list(span)
    while tokens and tokens[0].pos_ in _DROPPED_POS:
        tokens.pop(0)
    return "".join(t.text_with_ws for t in tokens)


def _is_usable(text: str) -> bool:
    words = text.split()
    return 0 < len(words) <= _LONGEST and re.search(r"[^\W\d_]", text) is not None
