"""Per-item work that goes on where a kill stopped it and records what fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphcontext.data.records import from_json, to_json
from graphcontext.errors import GraphContextError, RunError, fault
from graphcontext.files import append_lines, jsonl, read_lines, write_atomic

_log = logging.getLogger(__name__)


def run_items(
    path: Path,
    items: Sequence[Any],
    compute: Callable[[list[Any]], list[Any]],
    cls: type,
    chunk: int = 64,
    advance: Callable[[int], None] = lambda n: None,
) -> list[Any]:
    """Compute one record per item, resumably, and write them to ``path`` in the order of ``items``.

    The items are cut into fixed chunks. A chunk with a missing or failed record is computed whole, so that
    it has the bytes of an undisturbed run, and only its missing lines are appended to ``<path>.part``.

    Args:
        path: the finished JSONL file.
        items: things with an ``id``.
        compute: a list of items → a list of ``cls``, by index.
        cls: class of the records, which have ``id``, ``status`` and ``reason``.
        chunk: items per call of ``compute``.
        advance: told how many items are done.
    """
    part = path.with_name(path.name + ".part")
    known = {row["id"]: row for row in [*read_lines(path), *read_lines(part)] if not is_open(row)}
    records: list[Any] = []
    for start in range(0, len(items), chunk):
        batch = list(items[start : start + chunk])
        missing = [item.id for item in batch if item.id not in known]
        if missing:
            computed = _compute(compute, batch, cls)
            fresh = {r.id: to_json(r) for r in computed if r.id in set(missing)}
            append_lines(part, list(fresh.values()))
            known.update(fresh)
        records += [from_json(cls, known[item.id]) for item in batch]
        advance(len(batch))
    write_atomic(path, jsonl(records))
    part.unlink(missing_ok=True)
    return records


def is_open(row: dict[str, Any]) -> bool:
    """Tell whether an item is to be computed again: it failed, or something of it may succeed another time."""
    return row.get("status") == "failed" or bool(row.get("retry"))


def _compute(compute: Callable[[list[Any]], list[Any]], batch: list[Any], cls: type) -> list[Any]:
    """Compute a chunk; where that raises, item by item, so that one bad item is recorded and not the run lost."""
    try:
        return _checked(compute(batch), batch, f"{cls.__name__.lower()} stage")
    except GraphContextError:
        raise
    except Exception as error:  # noqa: BLE001 - any component's fault becomes a counted failure below
        if len(batch) == 1:
            return [_failed(cls, batch[0], error)]
        _say_one_by_one(f"{cls.__name__.lower()} stage", len(batch), error)
    records: list[Any] = []
    for item in batch:
        records += _compute(compute, [item], cls)
    return records


def score_items(
    name: str, score: Callable[..., list[dict[str, float]]], items: list[tuple[Any, Any, Any, Any]]
) -> list[dict[str, Any]]:
    """Score all items at once; where that raises, one by one, so that a bad item is counted and not the run lost.

    Args:
        name: of the metric; each of its rows holds this key.
        score: a metric's ``score(questions, predictions, rankings, contexts)``.
        items: (question, prediction, ranking, context) of each.

    Returns:
        One line per item: id, status, its values; 0 for each value of a prediction that failed, whatever the metric
        gave it, but none in a further column that leaves it out; None as the value of one that raised or that the
        metric could not score, with the reason.
    """
    try:
        rows = score(*map(list, zip(*items))) if items else []
    except GraphContextError:
        raise
    except Exception as error:  # noqa: BLE001 - any metric's fault becomes a counted failure
        if len(items) == 1:
            reason = fault(error)
            return [{"id": items[0][0].id, "status": "failed", "reason": reason, name: None}]
        _say_one_by_one(f"metric {name}", len(items), error)
        return [line for item in items for line in score_items(name, score, [item])]
    if len(rows) != len(items) or any(name not in row for row in rows):
        raise RunError(f"metric {name} gave {len(rows)} scores for {len(items)} questions; one {name} each is needed")
    kept = [_zeros(name, row) if p.status == "failed" else row for (_, p, _, _), row in zip(items, rows)]
    return [
        {"id": q.id, "status": "failed" if row[name] is None else p.status, **row}
        for (q, p, _, _), row in zip(items, kept)
    ]


def _zeros(name: str, row: dict[str, float | None]) -> dict[str, float | None]:
    """Return 0 for each value of a failed prediction, None for a further column that the metric leaves it out of."""
    return {key: None if value is None and key != name else 0.0 for key, value in row.items() if key != "reason"}


def _say_one_by_one(what: str, n: int, error: Exception) -> None:
    """Say that a batch raised: what only a batch meets would go unseen, since each of its items may pass."""
    _log.warning("%s: a batch of %d raised (%s); computed one by one", what, n, fault(error))


def _checked(records: list[Any], batch: list[Any], what: str) -> list[Any]:
    ids, wanted = [r.id for r in records], [item.id for item in batch]
    if ids != wanted:
        raise RunError(f"{what}: {len(ids)} records for {len(wanted)} items, or in another order")
    return records


def _failed(cls: type, item: Any, error: Exception) -> Any:
    reason = fault(error)
    empty = {
        "Ranking": {"passages": ()},
        "Context": {"units": ()},
        "Prediction": {"question": getattr(item, "text", ""), "prediction": "", "references": item.references}
        if hasattr(item, "references")
        else {},
    }[cls.__name__]
    return cls(id=item.id, status="failed", reason=reason, **empty)
