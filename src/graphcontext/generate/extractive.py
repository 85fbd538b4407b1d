"""What AnswerBot, GenQA and TechSumBot share: answers of retrieved threads, word statistics of a pool, similarity."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphcontext.data.records import Answer, Context, Corpus, Passage, Prediction, Question
from graphcontext.generate.llm import failed

_WORD = re.compile(r"\w[\w+#./-]*[\w+#]|\w")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(`])")
_STOP_WORDS = """
a an the and or but if then of in on at to for from by with as is are was were be been being do does did
have has had can could will would should may might must i you he she it we they me my your his her its our
their this that these those there here what which who how when where why not no so than too very just also
into out up down over about am any some all
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
NO_ANSWER = "no answer in the retrieved threads"


def words(text: str) -> list[str]:
    """Return the lower-case content words of a text.

    >>> words("How do I list C++ and systemd-resolved ports?")
    ['list', 'c++', 'systemd-resolved', 'ports']
    """
    return [w for w in _WORD.findall(text.lower()) if w not in STOP_WORDS]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text: what empty lines separate."""
    return [p.strip() for p in re.split(r"\n\s*\n", text) if p.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line ends a sentence.

    >>> sentences("Run ss -tlnp. It lists sockets, e.g. those of ssh.\\nDone")
    ['Run ss -tlnp.', 'It lists sockets, e.g. those of ssh.', 'Done']
    """
    return [s.strip() for line in text.splitlines() for s in _SENTENCE_END.split(line) if s.strip()]


@dataclass(frozen=True)
class Pool:
    """Document frequencies of a corpus; a document is a passage's question with all its answers."""

    passages: tuple[Passage, ...]

    @cached_property
    def by_id(self) -> dict[str, Passage]:
        return {p.id: p for p in self.passages}

    @cached_property
    def frequencies(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for p in self.passages:
            counts.update(set(words(" ".join([p.match_text, *(a.text for a in p.answers)]))))
        return counts

    def idf(self, word: str) -> float:
        """Return ln((1 + N) / (1 + df)) ≥ 0."""
        return math.log((1 + len(self.passages)) / (1 + self.frequencies[word]))

    def similarity(self, texts: Sequence[str]) -> np.ndarray:
        """Return the cosines (n, n) of the texts' TF-IDF vectors; a text without words is 0 to all others."""
        bags = [Counter(words(text)) for text in texts]
        vocabulary = {word: j for j, word in enumerate(sorted(set().union(*bags)))}
        vectors = np.zeros((len(texts), len(vocabulary)))
        for i, bag in enumerate(bags):
            for word, count in bag.items():
                vectors[i, vocabulary[word]] = count * self.idf(word)
        return cosines(vectors)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Return the cosines (n, n) of row vectors (n, dim); a zero row is 0 to all."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros(vectors.shape), where=norms > 0)
    return unit @ unit.T


class Pools:
    """The pools of the corpora met so far, one each."""

    def __init__(self) -> None:
        self._known: dict[str, Pool] = {}

    def of_each(self, questions: Sequence[Question], corpora: dict[str, Corpus]) -> list[Pool]:
        """Return the pool that each question is answered from."""
        return [self.of(corpora[question.corpus_id]) for question in questions]

    def of(self, corpus: Corpus) -> Pool:
        """Return the pool of a corpus, made once."""
        if corpus.id not in self._known:
            self._known[corpus.id] = Pool(corpus.passages)
        return self._known[corpus.id]


def threads(context: Context, pool: Pool) -> list[tuple[Answer, ...]]:
    """Return the answers of each thread that a context shows, in its order.

    Units that are no passage (triple sentences) are passed over. A passage without answers gives its text.
    """
    sources = dict.fromkeys(unit.source for unit in context.units)
    passages = [pool.by_id[source] for source in sources if source in pool.by_id]
    return [passage.answers or (Answer(passage.context_text),) for passage in passages]


def thread_answers(context: Context, pool: Pool) -> list[Answer]:
    """Return the answers of the threads that a context shows, in its order, best votes first in a thread."""
    return [a for own in threads(context, pool) for a in sorted(own, key=lambda a: (-a.votes, not a.accepted))]


def best_answers(context: Context, pool: Pool) -> list[Answer]:
    """Return one answer of each thread that a context shows, in its order: the accepted one, else by votes."""
    return [min(own, key=lambda a: (not a.accepted, -a.votes)) for own in threads(context, pool)]


def summaries(
    questions: Sequence[Question],
    contexts: Sequence[Context],
    pools: Sequence[Pool],
    choose: Callable[[Question, Context, Pool], Sequence[str]],
    separator: str,
) -> list[Prediction]:
    """Return one prediction per question made of the texts that ``choose`` takes from its retrieved threads.

    A question whose context failed is a failed prediction; one for which nothing is chosen is an empty one.
    """
    return [
        failed(question, f"context: {context.reason}")
        if context.status == "failed"
        else extract(question, choose(question, context, pool), separator)
        for question, context, pool in zip(questions, contexts, pools, strict=True)
    ]


def similarities(query: str, texts: Sequence[str], pool: Pool, encoder: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the similarity of each text to the query (n,) and of the texts to one another (n, n).

    Cosines of the encoder's vectors, or of TF-IDF vectors over the pool where ``encoder`` is None.
    """
    if encoder is None:
        every = pool.similarity([query, *texts])
    else:
        asked = np.asarray(encoder.encode([query], kind="query"), dtype=np.float64)
        every = cosines(np.concatenate([asked, np.asarray(encoder.encode(list(texts)), dtype=np.float64)]))
    return every[0, 1:], every[1:, 1:]


def extract(question: Question, chosen: Sequence[str], separator: str) -> Prediction:
    """Return the prediction made of chosen texts; ``empty`` where there is none."""
    text = separator.join(chosen)
    status = "ok" if text else "empty"
    reason = None if text else NO_ANSWER
    n_words = len(text.split())
    return Prediction(question.id, question.text, text, question.references, n_words, status, reason)
