"""The entities of a Wikidata JSON dump, one at a time: label, aliases and statements whose value is an entity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from graphcontext.data.packed import DAMAGE
from graphcontext.enhance.one_hop import id_number
from graphcontext.errors import InputError


@dataclass(frozen=True)
class Entity:
    """What an index keeps of one entity, or of a property: number, label, aliases, (property, tail) pairs."""

    number: int
    is_property: bool
    label: str | None
    aliases: tuple[str, ...] = ()
    statements: tuple[tuple[int, int], ...] = ()


def read_dump(lines: Iterable[bytes], where: str, language: str) -> Iterator[Entity]:
    """Yield the items and properties of a dump: a JSON list with one entity a line, or JSON lines.

    Args:
        lines: of the dump, unpacked.
        where: its name, for messages.
        language: of label and aliases.

    Raises:
        InputError: a damaged or cut line or archive, with the line's number.
    """
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            text = line.strip().rstrip(b",")
            if text in (b"", b"[", b"]"):
                continue
            found = json.loads(text)
            if found.get("type") in ("item", "property"):
                yield _entity(found, f"{where}, line {number}", language)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no entity in the JSON of a Wikidata dump ({type(error).__name__}: {error})"
        raise InputError(f"{where}, line {number}: {what}") from error
    except DAMAGE as error:
        raise InputError(f"{where} is cut or damaged after line {number}: {error}") from error


def _entity(found: dict[str, Any], where: str, language: str) -> Entity:
    labels, aliases = found.get("labels") or {}, found.get("aliases") or {}  # an empty one is written []
    return Entity(
        number=id_number(found["id"], where),
        is_property=found["type"] == "property",
        label=labels[language]["value"] if language in labels else None,
        aliases=tuple(alias["value"] for alias in aliases.get(language, ())) if aliases else (),
        statements=tuple(dict.fromkeys(_statements(found.get("claims") or {}, where))),
    )


def _statements(claims: dict[str, list[dict[str, Any]]], where: str) -> Iterator[tuple[int, int]]:
    """Yield (property, tail) of the best-ranked statements: the preferred ones, else the normal ones."""
    for property_id, several in claims.items():
        ranks = {claim.get("rank", "normal") for claim in several}
        best = "preferred" if "preferred" in ranks else "normal"
        for claim in several:
            value = claim["mainsnak"].get("datavalue") or {}
            is_item = value.get("type") == "wikibase-entityid" and value["value"].get("entity-type") == "item"
            if claim.get("rank", "normal") == best and is_item:
                tail = value["value"].get("id") or f"Q{value['value']['numeric-id']}"  # old dumps have the number alone
                yield id_number(property_id, where), id_number(tail, where)
