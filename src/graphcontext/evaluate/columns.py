"""Further columns of a metric: values beside its own that a table can name, over fewer items or at another cut-off."""

from __future__ import annotations

from collections.abc import Iterable

ENDINGS = ("_answered", "_asked")


def option_of(column: str, options: Iterable[str]) -> str | None:
    """Return the metric that gives a column: an option of the group ``metric``, None where there is none.

    >>> [option_of(name, ["em", "recall@k", "sf_em"]) for name in ("em", "em_answered", "recall@5", "sf_em@5", "em@x")]
    ['em', 'em', 'recall@k', 'sf_em', None]
    """
    known = set(options)
    head, _, cut = column.partition("@")
    names = [column, *([f"{head}@k", head] if cut.isdigit() else [])]
    names += [column.removesuffix(ending) for ending in ENDINGS if column.endswith(ending)]
    return next((name for name in names if name in known), None)
