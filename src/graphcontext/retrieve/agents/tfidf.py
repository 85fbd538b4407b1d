"""The agent without a model: it looks for the question itself (KGP Table 2, "TF-IDF")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.errors import InputError
from graphcontext.retrieve.agents.state import Evidence, State


class TfidfAgent:
    """Names the question as next evidence at every step, so that neighbours are ranked by it (KGP Table 2, "TF-IDF").

    With a ``schedule`` the traversal goes hop by hop, as the released code does without a language model: the first
    number of seeds, then so many of the unvisited neighbours of the last hop's passages as the schedule says, until
    the budget is used or nothing is left. Without one it takes the same steps as with any other agent.

    Differs from the released code: its helper lets visited passages use up a hop's places, here they do not.

    Args:
        schedule: passages of each hop, each ≥ 1, the last number again and again; null: none.

    Raises:
        InputError: an empty schedule, or a number below 1.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    repeatable: ClassVar[bool] = True

    def __init__(self, schedule: Sequence[int] | None = None) -> None:
        if schedule is not None and (not schedule or any(not isinstance(n, int) or n < 1 for n in schedule)):
            allowed = "a list of whole numbers of at least 1, or null"
            raise InputError(f"agent.schedule={list(schedule)}; allowed: {allowed}")
        self._sizes = None if schedule is None else tuple(schedule)

    @property
    def schedule(self) -> tuple[int, ...] | None:
        """The passages of each hop, None for the steps of other agents."""
        return self._sizes

    def evidence(self, states: Sequence[State]) -> list[Evidence]:
        """Return each state's question."""
        return [Evidence(state.question.text) for state in states]
