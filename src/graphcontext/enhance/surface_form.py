"""Surface forms: how a text writes an entity, and when two of them name the same one."""

from __future__ import annotations

MARKS = " \t\n.,;:!?\"'`()[]{}<>“”‘’-*"  # may stand around a name and are no part of it


def normalise(text: str) -> str:
    """Return lower-case text with single spaces and without marks around it.

    >>> normalise('  "The  Apache Server" ')
    'the apache server'
    """
    return " ".join(text.lower().split()).strip(MARKS)
