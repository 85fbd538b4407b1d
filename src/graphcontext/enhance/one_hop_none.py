"""No source of one-hop triples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.enhance.one_hop import EMPTY, Neighbours, distinct_names


class NoOneHop:
    """Knows no entity: ``enhancer=wikidata`` then adds τ_init (GraphContextGen §4.3) alone, and says so."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str] = "one-hop"

    def neighbours(self, names: Sequence[str]) -> dict[str, Neighbours]:
        """Return an empty answer for each name, in the order of ``names``, blank ones left out."""
        return dict.fromkeys(distinct_names(names).values(), EMPTY)
