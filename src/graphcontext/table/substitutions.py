"""What of a cell differs from the paper's row: the choices that stand in for its own, and their footnotes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphcontext.component import active_metrics, components, fingerprint, locate, needs_graph
from graphcontext.config import Composed
from graphcontext.evaluate.columns import option_of

# groups whose options are models, data sets and extractors: another one than the paper's stands in for it
STANDING_IN = (
    *("dataset", "encoder", "llm", "linker", "extractor", "one_hop", "bertscore", "entity_extractor", "fact_extractor"),
    "enhancer",  # of those, kgp's pairs alone have a stand-in
)


def relevant(config: dict[str, Any], group: str, metric: str | None = None) -> bool:
    """Tell whether a choice enters a run of this config (an AnswerBot row has no LLM), or one metric of it.

    An extractor of facts matters to the metrics that take it and to no other, a retriever to all.

    Args:
        config: resolved.
        group: ``dataset``, ``encoder``, ``llm@roles.answer`` …
        metric: only for the cells of this metric.
    """
    if group == "dataset":
        return True
    node = chosen(config, group)
    parts = list(_metrics(config, metric).values())
    if group == "bertscore":  # values of a metric, not a component of it
        return bool(node) and any(node.items() <= part.items() for part in parts)
    parts += [config[k] for k in ("retriever", "enhancer", "generator")]
    if needs_graph(config["retriever"]):
        parts.append(config["graph"])
    return "_target_" in node and any(used == node for used in components(parts))


def chosen(config: dict[str, Any], group: str) -> dict[str, Any]:
    """Return the config node that a choice fills, empty where there is none."""
    node: Any = config
    for key in group.partition("@")[2].split(".") if "@" in group else [group]:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def stand_ins(used: Composed, paper: Composed, metric: str | None = None) -> dict[str, tuple[str, str]]:
    """Return group → (the paper row's option, ours) for each relevant data set, model or extractor that differs.

    Where the option is the paper's and its ``model`` is not (``llm.model=…``), the models are named.
    """
    found = {}
    for group, option in used.choices.items():
        if group.partition("@")[0] not in STANDING_IN:
            continue
        theirs, ours = paper.choices.get(group), option
        if theirs == ours and group != "dataset":
            theirs, ours = (chosen(c.config, group).get("model") for c in (paper, used))
        if theirs is not None and theirs != ours and relevant(used.config, group, metric):
            found[group] = (str(theirs), str(ours))
    return found


def altered(used: Composed, declared: Composed, metric: str | None = None, scored: bool = False) -> bool:
    """Tell whether a value that can change the row's result differs from what is declared (``retriever.top_k=9``).

    Args:
        used: the row's config.
        declared: the same row as its YAMLs declare it.
        metric: only of this metric; None looks at all.
        scored: count the choice of scored questions (``dataset.limit``) too.
    """
    ours, theirs = (_results(c.config, metric, scored) for c in (used, declared))
    return ours != theirs


def _results(config: dict[str, Any], metric: str | None, scored: bool) -> list[Any]:
    """Return all of a config that can change a cell, data set files left out; other files need not be here."""
    stages = ["retriever", "enhancer", "packing", "generator"]
    if needs_graph(config["retriever"]):
        stages.append("graph")
    cls = locate(config["dataset"]["_target_"])
    left_out = getattr(cls, "execution", frozenset()) | (
        frozenset() if scored else getattr(cls, "selection", frozenset())
    )
    dataset = {k: v for k, v in config["dataset"].items() if k not in left_out}
    metrics = _metrics(config, metric)
    return [dataset, *(fingerprint(node, absent=True) for node in (metrics, *(config[stage] for stage in stages)))]


def _metrics(config: dict[str, Any], metric: str | None) -> dict[str, Any]:
    """Return a config's metrics, of a given one or of a further column of it (``acc_answered``) that one alone."""
    option = metric and option_of(metric, config["metric"])
    return {name: node for name, node in active_metrics(config).items() if metric is None or name == option}


def substitutions(cells: Iterable[tuple[str, dict[str, tuple[str, str]]]]) -> list[str]:
    """Return one sentence per substitution but the data set's, with its rows where they are not all rows.

    Roles that are filled alike are one substitution: ``llm: smollm2 stands in for llama2_13b``.

    Args:
        cells: (row, its stand-ins).
    """
    rows: list[str] = []
    seen: dict[tuple[str, str, str], list[str]] = {}
    for row, found in cells:
        rows.append(row)
        for group, (theirs, ours) in found.items():
            kind = group.partition("@")[0]
            if kind != "dataset":
                seen.setdefault((kind, theirs, ours), []).append(row)
    notes = []
    for (kind, theirs, ours), where in sorted(seen.items()):
        only = "" if set(where) == set(rows) else f" (rows: {', '.join(dict.fromkeys(where))})"
        notes.append(f"{kind}: {ours} stands in for {theirs}{only}")
    return notes
