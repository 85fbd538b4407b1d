"""No source of one-hop triples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.enhance.one_hop import EMPTY, Neighbours


class NoOneHop:
    """Knows no entity: ``enhancer=wikidata`` then adds τ_init (GraphContextGen §4.3) alone, and says so."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str] = "one-hop"

    def neighbours(self, names: Sequence[str]) -> dict[str, Neighbours]:
        """Return an empty answer for each name."""
        return dict.fromkeys(names, EMPTY)
