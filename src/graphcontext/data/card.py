"""The card of a question data set: its origin, what was read, what each filter took, how long texts are."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from graphcontext.data.filters import Filtered, Item
from graphcontext.data.plain_text import lengths

TOP_TAGS = 10
_MARKUP = re.compile(r"[\\|`*\[\]]")
READ = ("questions", "answers", "other posts", "answers without question")


def card_of(
    facts: dict[str, Any],
    counts: Counter[str],
    filtered: Filtered,
    pool: Sequence[Item],
    scored: Sequence[Item],
    leaked: Counter[str],
) -> dict[str, Any]:
    """Return the card as JSON types.

    Args:
        facts: name, site, license, path (its last part) and split of the data set.
        counts: posts read (``READ``), and under other names what was left out while reading.
        filtered: what the filters kept and took.
        pool: items that can be retrieved.
        scored: all scored candidates, before ``dataset.limit``.
        leaked: what the leak guard took out of the pool, per layer.
    """
    took = {reason: n for reason, n in counts.items() if reason not in READ}
    return {
        **facts,
        "dates": {"pool": _dates(pool), "scored": _dates(scored)},
        "read": {key: counts[key] for key in READ},
        "filters": {**took, **filtered.counts},
        "kept": len(filtered.items),
        "leak_guard": dict(leaked),
        "pool": len(pool),
        "scored_candidates": len(scored),
        "answers_in_pool": sum(len(item.answers) for item in pool),
        "words": {
            "pool questions": lengths([item.question for item in pool]),
            "pool accepted answers": lengths([item.answer for item in pool]),
            "scored questions": lengths([item.question for item in scored]),
            "scored accepted answers": lengths([item.answer for item in scored]),
        },
        "post_licenses": dict(sorted(Counter(item.license for item in (*pool, *scored)).items())),
        "tags": dict(_top(Counter(tag for item in (*pool, *scored) for tag in item.tags))),
    }


def card_markdown(card: dict[str, Any]) -> str:
    """Return a card as markdown: one table of facts and counts, in the card's order.

    Names, tags and licences come from a dump: they are shown as text, never as markup.
    """
    lines = [f"## {escaped(card['name'])}", "", "| | |", "|---|---|"]
    for key, value in card.items():
        if key == "name":
            continue
        label = key.replace("_", " ")
        if isinstance(value, dict):
            lines += [f"| {label}: {escaped(inner)} | {_shown(entry)} |" for inner, entry in value.items()]
        else:
            lines.append(f"| {label} | {_shown(value)} |")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return one line that markdown shows as ``text``, in a table too: no HTML, link, code or cell of its own.

    >>> escaped("c++ | <b> --> [x]")
    'c++ \\\\| &lt;b&gt; --&gt; \\\\[x\\\\]'
    """
    return _MARKUP.sub(r"\\\g<0>", html.escape(" ".join(text.split()), quote=False))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{escaped(key)} {_shown(entry)}" for key, entry in value.items())
    if isinstance(value, list):
        return " to ".join(escaped(str(entry)) for entry in value) or "unknown"
    text = f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
    return escaped(text)


def _dates(items: Sequence[Item]) -> list[str]:
    """Return first and last day, empty where no item has a date."""
    days = sorted(item.date[:10] for item in items if item.date)
    return [days[0], days[-1]] if days else []


def _top(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:TOP_TAGS]
