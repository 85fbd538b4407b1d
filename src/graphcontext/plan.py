"""``plan``: runs, LLM calls, tokens, memory, disk and hours of a table or run, before spending any.

Sizes come from the data where it was read before, else from the assumptions in the data set's YAML. Speeds
come from the model's YAML (``plan.tokens_per_second``), and are named as measured or assumed there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphcontext.component import active_metrics, components, locate
from graphcontext.config import Composed
from graphcontext.errors import InputError
from graphcontext.keys import corpus_key, keys
from graphcontext.models import has_gpu, is_available
from graphcontext.prepare import missing_adapters, needed_models, unsound, untrained
from graphcontext.train.cost import TrainingCost, training_cost
from graphcontext.train.trained import TrainedAdapter

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "4bit": 0.55, "8bit": 1.05}
TOKENS_PER_WORD = 1.6  # English forum text with code, by a BPE tokenizer
PROMPT_TOKENS = 60  # instructions around question and context


@dataclass(frozen=True)
class Size:
    """How much a data set holds.

    Args:
        n_pool: passages.
        n_questions: scored ones.
        tokens_per_question, tokens_per_answer: means; of a corpus without answers the second is a passage's.
        known: False where its YAML's assumptions stand in for counts.
        n_train: questions that train or are held out, as the YAML assumes where the pool is none of questions.
    """

    n_pool: int
    n_questions: int
    tokens_per_question: float
    tokens_per_answer: float
    known: bool
    n_train: int | None = None


@dataclass(frozen=True)
class Cost:
    """What one run would take.

    Args:
        label: row and data set.
        key: runs with one key are computed once.
        n_questions, calls, prompt_tokens, new_tokens: counts over the whole run.
        vram_gib: of the largest model with its cache at the configured batch size; 0 without a model.
        disk_gib: of embeddings, and of models that are still to be fetched.
        hours: of LLM calls on ``device``.
        missing: models that are not on this machine.
        untrained: adapters that are to be trained first.
        assumed: sizes are assumptions, not counts.
    """

    label: str
    key: str
    n_questions: int
    calls: int
    prompt_tokens: int
    new_tokens: int
    vram_gib: float
    disk_gib: float
    hours: float
    device: str
    missing: tuple[str, ...]
    assumed: bool
    untrained: tuple[str, ...] = ()


def size(config: dict[str, Any], root: Path | str = ".") -> Size:
    """Return a data set's size: counts from the store where it was read, else its assumptions."""
    dataset = config["dataset"]
    limit = dataset.get("limit")
    read = card(config, Path(root))
    assumed = dataset.get("plan") or {}
    if read is not None:
        words = read["words"]
        found = Size(
            read["pool"],
            read["scored_candidates"],
            words["scored questions"]["mean"] * TOKENS_PER_WORD,
            _words_per_answer(words) * TOKENS_PER_WORD,
            True,
            assumed.get("n_train"),
        )
    else:
        if not assumed:
            raise InputError(f"data set {dataset.get('name')}: not read yet, and its YAML assumes no sizes (plan:)")
        found = Size(**assumed, known=False)
    n = found.n_questions if limit is None else min(limit, found.n_questions)
    return replace(found, n_questions=n)


def _words_per_answer(words: dict[str, Any]) -> float:
    """Return what a passage holds beside a question: of a pool its answer, of a corpus what makes up its length."""
    if "pool passages" in words:
        return max(words["pool passages"]["mean"] - words["scored questions"]["mean"], 0.0)
    return words["pool accepted answers"]["mean"]


def card(config: dict[str, Any], root: Path) -> dict[str, Any] | None:
    """Return the card of a config's data set, None where it was not read yet."""
    try:
        path = root / "store" / "corpus" / corpus_key(config) / "card.json"
    except InputError:
        return None  # the data is not on this machine
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def cost(label: str, config: dict[str, Any], root: Path | str = ".") -> Cost:
    """Estimate one run.

    Raises:
        InputError: an adapter or encoder that is here cannot be taken.
    """
    for reason in unsound(config, root):
        raise InputError(reason)
    known = size(config, root)
    prompt, new, calls = 0.0, 0.0, 0
    hours, vram = 0.0, 0.0
    device = "cpu"
    for node, n, prompt_tokens, new_tokens in _llm_work(config, known):
        calls += n
        prompt += n * prompt_tokens
        new += n * new_tokens
        device, speed = _speed(node)
        hours += n * (prompt_tokens / speed["prefill"] + new_tokens / speed["decode"]) / 3600
        vram = max(vram, memory_gib(node, prompt_tokens + new_tokens))
    missing = tuple(m for m, revision in needed_models(config) if not is_available(m, revision))
    disk = known.n_pool * 4 * config["encoder"].get("dimension", 1024) / 2**30
    disk += sum(weights_gib(n) for n in components(config["roles"]["answer"]) if str(n.get("model")) in missing)
    return Cost(
        label=label,
        key=_key(config),
        n_questions=known.n_questions,
        calls=calls,
        prompt_tokens=round(prompt),
        new_tokens=round(new),
        vram_gib=vram,
        disk_gib=disk,
        hours=hours,
        device=device,
        missing=missing,
        assumed=not known.known,
        untrained=(*missing_adapters(config), *(a.experiment for a in untrained(config, root))),
    )


def training_costs(runs: list[tuple[str, Composed]], root: Path | str = ".") -> list[TrainingCost]:
    """Estimate each training that some of these runs wait for, once."""
    found = {tuple(a.words): a for _, composed in runs for a in untrained(composed.config, root)}
    costs = []
    for words, adapter in found.items():
        on_gpu = has_gpu() or "scale=paper" in words
        config = TrainedAdapter(
            adapter.experiment, (*adapter.overrides, *(["trainer=gpu"] if on_gpu else [])), adapter.config_dir
        ).compose()
        costs.append(training_cost(f"{adapter.experiment} on {config['dataset'].get('name')}", config, root))
    return costs


def _key(config: dict[str, Any]) -> str:
    try:
        return keys(config).run
    except InputError:  # the data is not here: rows of one config are still one run
        return json.dumps({k: v for k, v in config.items() if k != "roles"}, sort_keys=True)


def _llm_work(config: dict[str, Any], known: Size) -> Iterator[tuple[dict[str, Any], int, float, float]]:
    """Yield (llm node, calls, prompt tokens and new tokens a call) of each stage that asks an LLM."""
    shown = context_tokens(config, known)
    for stage in ("retriever", "enhancer", "generator"):
        for holder in components(config[stage]):
            node = holder.get("llm")
            if not isinstance(node, dict):
                continue
            new = holder.get("max_new_tokens") or 0
            if stage == "generator":
                yield node, known.n_questions, PROMPT_TOKENS + known.tokens_per_question + shown, new
            elif stage == "retriever":  # an agent's calls, each with the question and a passage, or more
                cls = locate(config[stage]["_target_"])
                n = known.n_questions * getattr(cls, "calls", lambda node: 1)(config[stage])
                passages = getattr(cls, "passages_per_call", lambda node: 1)(config[stage])
                passages *= known.tokens_per_question + known.tokens_per_answer
                yield node, n, PROMPT_TOKENS + known.tokens_per_question + passages, new
            else:  # extraction: once per retrieved passage
                n = min(known.n_pool, known.n_questions * config["retriever"].get("top_k", 0))
                yield node, n, PROMPT_TOKENS + known.tokens_per_question + known.tokens_per_answer, new
    for holder in components(list(active_metrics(config).values())):
        node = holder.get("llm")
        if isinstance(node, dict):  # a grader reads its prompt, the question, the gold and the given answer
            own = sum(len(str(holder.get("prompt", {}).get(text, "")).split()) for text in ("system", "user"))
            asked = own * TOKENS_PER_WORD + known.tokens_per_question + 2 * known.tokens_per_answer
            yield node, known.n_questions, asked, holder.get("max_new_tokens") or 0


def context_tokens(config: dict[str, Any], known: Size) -> float:
    """Return the tokens of a packed context."""
    per_passage = known.tokens_per_question + known.tokens_per_answer
    wanted = config["retriever"].get("top_k", 0) * per_passage
    budget = config["packing"].get("max_tokens")
    return wanted if budget is None else min(wanted, budget)


def _speed(node: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """Return (device, tokens per second) for this machine, else for what the model's YAML knows."""
    speeds = (node.get("plan") or {}).get("tokens_per_second") or {}
    for device in ["gpu", "cpu"] if has_gpu() else ["cpu", "gpu"]:
        if device in speeds:
            return device, speeds[device]
    return "api", speeds.get("api") or {"prefill": 5000.0, "decode": 60.0}


def weights_gib(node: dict[str, Any]) -> float:
    """Return the size of a model's weights in memory, GiB; 0 where its YAML names no parameters."""
    kind = node.get("quantization", "none")
    dtype = node.get("dtype", "auto")
    each = BYTES.get(kind) or BYTES.get(dtype) or BYTES["bfloat16" if has_gpu() else "float32"]
    return (node.get("parameters") or 0) * each / 2**30


def memory_gib(node: dict[str, Any], tokens: float) -> float:
    """Return weights plus key-value cache (2 · layers · kv_heads · head_dim · 2 bytes a token) at the batch size."""
    plan = node.get("plan") or {}
    per_token = 2 * plan.get("layers", 0) * plan.get("kv_heads", 0) * plan.get("head_dim", 0) * 2
    return weights_gib(node) + per_token * tokens * node.get("batch_size", 1) / 2**30


def estimate(runs: list[tuple[str, Composed]], root: Path | str = ".") -> list[Cost]:
    """Estimate each run (:func:`graphcontext.table.expand.configs`)."""
    return [cost(label, composed.config, root) for label, composed in runs]


def text(costs: list[Cost]) -> str:
    """Render costs as a table with totals over distinct runs."""
    if not costs:
        return "nothing to run"
    head = f"{'run':44}{'n':>7}{'calls':>9}{'prompt tok':>12}{'new tok':>11}{'VRAM GiB':>10}{'hours':>9}  on"
    lines = [head]
    for c in costs:
        counts = f"{c.n_questions:7}{c.calls:9}{c.prompt_tokens:12,}{c.new_tokens:11,}"
        lines.append(f"{c.label[:43]:44}{counts}{c.vram_gib:10.1f}{c.hours:9.2f}  {c.device if c.calls else '-'}")
    distinct = list({c.key: c for c in costs}.values())
    calls, tokens = sum(c.calls for c in distinct), sum(c.prompt_tokens + c.new_tokens for c in distinct)
    vram, disk = max(c.vram_gib for c in distinct), max(c.disk_gib for c in distinct)
    lines.append(
        f"total: {len(distinct)} runs, {calls:,} calls, {tokens:,} tokens, {vram:.1f} GiB VRAM, "
        f"{disk:.1f} GiB disk, {sum(c.hours for c in distinct):.2f} hours"
    )
    if any(c.assumed for c in costs):
        lines.append("sizes: assumed in the data sets' YAML (not read on this machine yet)")
    missing = sorted({m for c in costs for m in c.missing})
    if missing:
        lines.append(f"not on this machine: {', '.join(missing)}")
    for adapter in sorted({a for c in costs for a in c.untrained}):
        n = sum(adapter in c.untrained for c in costs)
        lines.append(f"to be trained first: adapter {adapter}, for {n} of these runs")
    return "\n".join(lines)


def budgeted_limits(runs: list[tuple[str, dict[str, Any]]], root: Path | str = ".") -> list[int | None]:
    """Return per run the number of questions that ``budget.hours`` allows, None where it needs no cut.

    All LLM rows of one data set get one size, so that they stay paired; rows without an LLM stay whole.

    Args:
        runs: (data set, config).
        root: the working folder.
    """
    hours = runs[0][1]["budget"]["hours"] if runs else None
    costs = [cost(name, config, root) for name, config in runs]
    total = sum({c.key: c.hours for c in costs}.values())
    if hours is None or total <= hours:
        return [None] * len(runs)
    share = hours / total
    return [None if c.calls == 0 else int(c.n_questions * share) for c in costs]
