"""Where a traversal stands, and what an agent says there."""

from __future__ import annotations

from dataclasses import dataclass

from graphcontext.data.records import Corpus, Passage, Question, Status


@dataclass(frozen=True, eq=False)
class State:
    """A reasoning path of one question.

    Args:
        question: what is asked.
        corpus: the passages that it is answered from.
        path: indices of the passages on the path, seed first; at least one.
    """

    question: Question
    corpus: Corpus
    path: tuple[int, ...]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages on the path."""
        return tuple(self.corpus.passages[i] for i in self.path)

    @property
    def id(self) -> str:
        """The question's id and those of the passages, joined by slashes: what a call to a model is for."""
        return call_id(self.question.id, tuple(p.id for p in self.passages))


def call_id(question: str, path: tuple[str, ...]) -> str:
    """Return what the agent's call for a path of a question is named in ``calls.jsonl``.

    >>> call_id("q1", ("p3", "p5"))
    'q1/p3/p5'
    """
    return "/".join((question, *path))


@dataclass(frozen=True)
class Evidence:
    """The next evidence an agent looks for; ``failed`` and ``empty`` ones end the path and say why in ``reason``."""

    text: str
    status: Status = "ok"
    reason: str | None = None
