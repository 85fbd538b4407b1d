"""What must stand under a run's numbers: its graph, fall-backs, cuts, faults, and where answers were lost."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from graphcontext.component import has_answers
from graphcontext.data.multihop_card import BEYOND, SHORT
from graphcontext.evaluate.decomposition import LABELS

FEW = 10  # fewer equal grades may be chance
GRAPH_FACTS = {"threshold": "", "n_edges": "edges", "n_nodes": "nodes", "mean_degree": "mean degree"}
GRAPH_WORDS = ("threshold_rule", "linker")
ADAPTER_FACTS = ("kind", "examples", "kept_step", "of_steps", "held_out_loss", "what", "held_out_mrr")


def describe(known: dict[str, Any], n: int) -> list[str]:
    """Return lines on what stands under a run's numbers: the graph's threshold and edges, fall-backs, cuts."""
    lines = []
    graphs = list(known.get("graphs", {}).values())
    if graphs:
        labels = GRAPH_FACTS | ({"density": ""} if len(graphs) > 1 else {})
        shown = [f"{label or key}={_short(_mean(graphs, key))}" for key, label in labels.items() if key in graphs[0]]
        words = [str(graphs[0][key]) for key in GRAPH_WORDS if key in graphs[0]]
        several = f", mean of {len(graphs)}" if len(graphs) > 1 else ""
        lines.append(f"graph{several}: {'  '.join(shown)}" + (f"  ({', '.join(words)})" if words else ""))
    if known.get("padding"):
        lines.append(f"corpora padded with documents of other questions: {known['padding']}")
    for name, trained in known.get("adapters", {}).items():
        lines.append(f"{trained.get('what', 'adapter')} {name}: {_trained(trained)}")
    fallbacks = {"cosine": 0} if graphs and "threshold_rule" in graphs[0] else {}  # PageRank's
    for kind, count in sorted({**fallbacks, **known["fallbacks"]}.items()):
        lines.append(f"fall-back to {kind}: {count} of {n} questions ({count / max(n, 1):.0%})")
    if known.get("mean_ranked"):
        lines.append(f"passages ranked: {known['mean_ranked']:.1f} a question")
    if known["n_units_cut"]:
        lines.append(f"context units cut to fit the budget: {known['n_units_cut']}")
    if known.get("not_scored"):
        lines.append(f"not scored, since generator=none gives no answers: {', '.join(known['not_scored'])}")
    if known.get("n_without_supports"):
        count = f"{known['n_without_supports']} of {n} questions"
        lines.append(f"without gold passages, so 0 in retrieval metrics: {count}")
    if known.get("n_gold_unknown"):
        count = f"{known['n_gold_unknown']} of {n} questions"
        lines.append(f"with a gold passage that is not in the corpus, so never found: {count}")
    if known.get("n_without_references"):
        count = f"{known['n_without_references']} of {n} questions"
        mend = "generator=none scores retrieval alone"
        lines.append(f"without gold answers, so 0 in metrics of answers: {count} ({mend})")
    for column, of in known.get("of_none", {}).items():
        lines.append(f"{column}: of {of}, of which there are none here")
    for name, grade in known.get("one_grade", {}).items():
        lines.append(f"{name}: the grader gave all {grade['n']} answers {grade['grade']:g}; it may not tell them apart")
    if "lost" in known:
        lines.append("questions: " + ", ".join(f"{label} {count}" for label, count in known["lost"].items()))
        lines.append(f"gold passages: {known['gold_passages']} of {known['n_passages']} a question")
    for reason, count in sorted(known.get("reasons", {}).items()):
        lines.append(f"{reason}: {count} of {n} questions")
    return lines


def _trained(known: dict[str, Any]) -> str:
    """Return how an adapter came about, in one line."""
    examples, held = known["examples"]["train"], known["held_out_loss"]
    left = sum(examples["skipped"].values())
    odd = [f"{n} {what}" for n, what in ((examples["cut"], "cut"), (left, "left out")) if n]
    said = f"{known['kind']}, {examples['pairs']} training examples" + (f" ({', '.join(odd)})" if odd else "")
    said += f", weights of step {known['kept_step']} of {known['of_steps']}"
    if held["best"] is not None:
        n = known["examples"]["validation"]["pairs"]
        said += f", held-out loss (n={n}) {held['base']:.3f} before, {held['best']:.3f} after"
    if known.get("held_out_mrr"):
        said += ", MRR {base:.3f} before, {kept:.3f} after".format(**known["held_out_mrr"])
    return said


def _mean(graphs: list[dict[str, Any]], key: str) -> Any:
    """Return the mean of a fact over graphs; of a single one the fact itself."""
    return graphs[0][key] if len(graphs) == 1 else sum(graph[key] for graph in graphs) / len(graphs)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _kinds(reason: str | None) -> list[str]:
    """Return the kinds of a record's reasons, without how many passages: ``extraction failed: parse``."""
    return [re.sub(r" for \d+ of \d+ (passages|entities)", "", part) for part in (reason or "").split("; ") if part]


def _count(said: list[Any]) -> dict[str, int]:
    """Return of how many questions each kind of reason was said: a later stage may say what an earlier one did."""
    pairs = dict.fromkeys((record.id, kind) for record in said for kind in _kinds(record.reason))
    return dict(Counter(kind for _, kind in pairs))


def lost(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many questions are answered, and where the others were lost, if that was scored (``answered``)."""
    if not rows or "answered" not in rows[0]:
        return {}
    counts = {"answered": sum(row["answered"] == 1 for row in rows)}
    counts |= {label: sum(row.get(f"lost_{kind}") == 1 for row in rows) for kind, label in LABELS.items()}
    n_failed = len(rows) - sum(counts.values())
    gold = sum(row.get("gold_passages", 0) for row in rows) / len(rows)
    return {"lost": counts | ({"failed": n_failed} if n_failed else {}), "gold_passages": round(gold, 2)}


def _one_grade(job: Any) -> dict[str, dict[str, float]]:
    """Return the metrics whose grader gave every answer the same grade, where it graded a few."""
    found = {}
    for name, rows in job.scores.items():
        answered = [r for r, p in zip(rows, job.predictions) if p.status == "ok" and p.references]
        grades = [row[name] for row in answered if row[name] is not None]
        if getattr(job.pipeline.parts["metric"][name], "asks", False) and len(grades) >= FEW and len(set(grades)) == 1:
            found[name] = {"grade": grades[0], "n": len(grades)}
    return found


def _of_none(job: Any) -> dict[str, str]:
    """Return the columns that metrics give of some questions alone, where there is none of these: column → which."""
    given = ((name, getattr(job.pipeline.parts["metric"][name], "columns", {})) for name in job.scores)
    pairs = ((name, column, of) for name, columns in given for column, of in columns.items())
    return {column: of for name, column, of in pairs if all(row.get(column) is None for row in job.scores[name])}


def _padding(card: dict[str, Any]) -> str | None:
    """Return what corpora are padded to, and how many came out otherwise; None for none."""
    wish = card.get("corpora", {}).get("padded to", "not padded")
    if wish == "not padded":
        return None
    odd = [f"{n} {what}" for what, n in card.get("counts", {}).items() if n and what.startswith((SHORT, BEYOND))]
    return f"{wish} ({'; '.join(odd)})" if odd else wish


def facts(job: Any) -> dict[str, Any]:
    """Return what must stand under a number: pool size, graph, fall-backs, cut units, extraction faults."""
    n_tokens = sum(c.n_tokens for c in job.contexts)
    said = [*job.contexts, *(r for r in job.rankings if r.status != "failed")]
    said += [p for p in job.predictions if p.status == "ok"]
    found: dict[str, Any] = {
        "n_passages": sum(len(c.passages) for c in job.data.corpora.values()),
        "fallbacks": dict(Counter(r.fallback for r in job.rankings if r.fallback)),
        "not_scored": sorted(set(job.pipeline.config["metric"]) - set(job.scores)),
        "n_units_cut": sum(c.n_cut for c in job.contexts) if has_answers(job.pipeline.config) else 0,  # else unread
        "n_retry": sum(bool(c.retry) for c in job.contexts),
        "reasons": _count(said),
        "mean_context_tokens": round(n_tokens / max(1, len(job.contexts)), 1),
    }
    if padding := _padding(job.data.card):
        found["padding"] = padding
    metrics = [job.pipeline.parts["metric"][name] for name in job.scores]
    has_supports = any(getattr(metric, "needs_supports", False) for metric in metrics)
    top_k = getattr(job.pipeline.parts["retriever"], "top_k", None)
    n_ranked = round(sum(len(r.passages) for r in job.rankings) / max(1, len(job.rankings)), 2)
    if top_k is None or (has_supports and n_ranked != top_k):  # a visited set; walks that meet, pairs that share
        found["mean_ranked"] = n_ranked
    if has_supports:
        found["n_without_supports"] = sum(not q.supports for q in job.data.questions)
        known = {corpus_id: {p.id for p in corpus.passages} for corpus_id, corpus in job.data.corpora.items()}
        found["n_gold_unknown"] = sum(not known[q.corpus_id].issuperset(q.supports) for q in job.data.questions)
    if any(getattr(metric, "needs_answers", True) for metric in metrics):
        found["n_without_references"] = sum(not q.references for q in job.data.questions)
    if of_none := _of_none(job):
        found["of_none"] = of_none
    if same := _one_grade(job):
        found["one_grade"] = same
    seen = job.pipeline.stages.seen
    if "graph" in seen:
        found["graphs"] = seen["graph"].facts["graphs"]
    adapters = {name.split(":")[1]: s.facts for name, s in seen.items() if name.startswith("adapter:")}
    if adapters:
        found["adapters"] = {
            name: {key: known[key] for key in ADAPTER_FACTS if key in known} for name, known in adapters.items()
        }
    return found
