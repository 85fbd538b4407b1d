"""The agent that chooses by chance (KGP §5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.files import digest
from graphcontext.retrieve.agents.state import Evidence, State


class RandomAgent:
    """Gives each neighbour a random score (KGP §5.2: the random agent that its text names beside the others).

    Each path of each question has a random stream of its own, from the run's seed, ``sample_index``, the question's
    id and the path: neither other questions nor batches change what is drawn.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    repeatable: ClassVar[bool] = True

    def __init__(self) -> None:
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        """Use the run's seeds."""
        self.workspace = workspace

    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        """Return that it draws random numbers."""
        return True

    def evidence(self, states: Sequence[State]) -> list[Evidence]:
        """Return nothing to look for; it is not read."""
        return [Evidence("") for _ in states]

    def scores(
        self, states: Sequence[State], evidences: Sequence[Evidence], candidates: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Return a number in [0, 1) for each candidate of each state."""
        seeds = (self.workspace.seed, self.workspace.sample_index) if self.workspace else (0, 0)
        return [_stream([*seeds, state.id]).random(len(some)) for state, some in zip(states, candidates, strict=True)]


def _stream(parts: list[Any]) -> np.random.Generator:
    return np.random.default_rng(int(digest(parts)[:16], 16))
