"""What sources of one-hop triples share: names, ids, which of several entities a name means, the order of triples."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from graphcontext.data.location import data_path
from graphcontext.data.records import Status
from graphcontext.enhance.triples import Triple
from graphcontext.errors import InputError, MissingDataError, MissingSourceError

INSTANCE_OF = 31
NO_TOPICS = frozenset((4167410, 4167836, 11266439))  # Wikimedia disambiguation page, category, template
WAYS_OUT = "one_hop.path=FILE, or one_hop=none"

_ID = re.compile(r"[A-Z]([1-9]\d*)")


@dataclass(frozen=True)
class Neighbours:
    """The one-hop triples of the entity that a name means, the entity as their head.

    Args:
        triples: in the order of property and tail number; the head is written as the label or alias that matched.
        status: ``empty``: no entity with triples has this name; ``failed``: the source could not say.
        reason: of a failure.
    """

    triples: tuple[Triple, ...] = ()
    status: Status = "ok"
    reason: str | None = None


EMPTY = Neighbours(status="empty")


@dataclass(frozen=True)
class Statement:
    """One triple with its numbers: property P31 is 31, entity Q42 (or X42 of a file of our own) is 42."""

    head: int
    property: int
    relation: str
    tail: int
    tail_label: str

    @property
    def order(self) -> tuple[int, int]:
        return self.property, self.tail


def id_number(text: str, where: str) -> int:
    """Return the number of an id such as ``Q42``, ``P31`` or ``X7``.

    Raises:
        InputError: it is no such id.
    """
    found = _ID.fullmatch(text)
    if found is None:
        raise InputError(f"{where}: the id {text[:40]!r} is no letter and number such as Q42 or P31")
    return int(found[1])


def meant(candidates: Iterable[tuple[int, int, str]]) -> tuple[int, str] | None:
    """Return (entity, name as written) that a name means: a label before an alias, then the lowest number.

    The paper does not say. Wikidata numbers its items as they are made: those made first are the well-known ones.

    Args:
        candidates: (0 for a label and 1 for an alias, entity, name as written) of entities that have triples.

    >>> meant([(1, 5, "kernel"), (0, 99, "Kernel"), (0, 140, "kernel")])
    (99, 'Kernel')
    """
    best = min(candidates, default=None)
    return None if best is None else (best[1], best[2])


def neighbours_of(written: str, statements: Iterable[Statement]) -> Neighbours:
    """Return an entity's triples by property and tail number, each once."""
    ordered = sorted(set(statements), key=lambda s: (*s.order, s.relation, s.tail_label))
    triples = dict.fromkeys((written, s.relation, s.tail_label) for s in ordered)
    return Neighbours(tuple(triples)) if triples else EMPTY


def source_path(name: str, path: str | None) -> Path:
    """Return the file or folder of one-hop triples (:func:`graphcontext.data.location.data_path`).

    Raises:
        MissingSourceError: nothing lies there; the message names the ways out.
    """
    try:
        return data_path(name, path, key="one_hop.path")
    except MissingDataError as error:
        looked = str(error) if path is not None else str(error).partition("; ")[2]
        raise MissingSourceError(f"no data: {name} one-hop triples ({WAYS_OUT}); {looked}") from error
