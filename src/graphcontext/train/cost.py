"""``plan`` for trainings: parameters, tokens, steps, memory by part and hours; what cannot fit, and what would.

Hours are floating-point operations over a speed: on a CPU a measured one where the llm's YAML has it
(``plan.tokens_per_second.cpu.train``), on a GPU its data sheet's at an assumed part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError
from graphcontext.train.gpus import GPUS, free_gpu_gib
from graphcontext.train.outline import ASSUMED_GPU, Counts, Plan, plan_of
from graphcontext.train.shape import Adapter, UnknownShape, parameters, trainable
from graphcontext.train.speed import hours, steps

NEAR = 0.9  # of what is free may be planned: estimates are that near at best


@dataclass(frozen=True)
class TrainingCost:
    """What one training would take; ``parts`` of one process in GiB, ``tokens`` over all epochs.

    ``free`` is what there is for ``processes`` of them on ``device``, None where that is not known.
    """

    label: str
    model: str
    kind: str
    parameters: int
    trainable: int
    counts: Counts
    steps: int
    tokens: int
    parts: dict[str, float]
    processes: int
    hours: float
    device: str
    free: float | None
    mend: str = ""
    ranks: int = 1
    assumed: tuple[str, ...] = ()

    @property
    def needed(self) -> float:
        """GiB on one device."""
        return sum(self.parts.values()) * self.processes

    @property
    def fits(self) -> bool:
        return self.free is None or self.needed <= self.free


def training_cost(
    label: str, config: Mapping[str, Any], root: Path | str = ".", counts: Counts | None = None
) -> TrainingCost:
    """Estimate one training.

    Args:
        label: its name.
        config: resolved, composed with ``primary="train"``.
        root: the working folder, which holds ``store/``.
        counts: of its examples; from the data set's card, or assumed, if not given.
    """
    from graphcontext.train.counts import counts_of

    plan = plan_of(config, counts or counts_of(config, root))
    n = 0 if plan.adapter.kind == "none" else steps(plan.trainer, plan.counts.pairs)
    spent, stands_on = hours(plan, n)
    device, free = plan.free()
    assumed = [stands_on, plan.counts.known]
    if plan.on_gpu and plan.gpu is None and free_gpu_gib() is None:
        assumed.append(f"no GPU here: planned for {ASSUMED_GPU} (trainer.gpu=NAME: {', '.join(GPUS)})")
    tokens = n * min(plan.trainer["batch_size"], plan.counts.pairs) * (plan.counts.prompt + plan.counts.answer)
    found = TrainingCost(
        label=label,
        model=str(plan.node.get("model")),
        kind=plan.adapter.kind,
        parameters=parameters(plan.shape),
        trainable=trainable(plan.shape, plan.adapter),
        counts=plan.counts,
        steps=n,
        tokens=round(tokens),
        parts=plan.parts(),
        processes=plan.place().per_machine,
        hours=spent,
        device=device,
        free=free,
        ranks=plan.place().ranks,
        assumed=tuple(line for line in assumed if line),
    )
    return found if found.fits else replace(found, mend=would_fit(plan))


def would_fit(plan: Plan, most: int = 4) -> str:
    """Return the changes that would make a training fit, the smallest first; "" where none does."""
    found: list[str] = []
    for several in (False, True):
        for words, changed in _changes(plan, several):
            _, free = changed.free()
            if free is not None and changed.needed() <= NEAR * free:
                found.append(words)
        if found:
            break
    larger = [n for n, g in GPUS.items() if replace(plan, gpu=n).needed() <= NEAR * g.memory]
    found = found[:most] + [f"a GPU of {GPUS[n].memory:g} GiB ({n})" for n in larger[:1]]
    return ", or ".join(found)


def _changes(plan: Plan, several: bool) -> Iterator[tuple[str, Plan]]:
    """Yield (what to type, the plan with it): single changes, or several at once."""
    trainer, adapter, counts = plan.trainer, plan.adapter, plan.counts
    lighter: list[tuple[str, dict[str, Any]]] = []
    if plan.micro > 1:
        lighter.append(("trainer.micro_batch_size=1", {"micro_batch_size": 1}))
    if not trainer["gradient_checkpointing"] and adapter.kind != "none":
        lighter.append(("trainer.gradient_checkpointing=true", {"gradient_checkpointing": True}))
    if several:
        lighter = [(" ".join(w for w, _ in lighter), {k: v for _, c in lighter for k, v in c.items()})]
    for words, change in lighter:
        yield words, replace(plan, trainer={**trainer, **change})
    prefix = f"{lighter[0][0]} " if several and lighter[0][0] else ""
    base = replace(plan, trainer={**trainer, **lighter[0][1]}) if several else plan
    short = max(8, counts.longest // 2)
    cut = replace(counts, longest=short, learnt=min(counts.learnt, short))
    yield f"{prefix}trainer.max_tokens={short}", replace(base, counts=cut)
    if trainer["data"] == "bi_encoder":  # trained whole, and by one process
        return
    ranks = Adapter("lora", adapter.rank or 16, adapter.dropout, adapter.targets)
    if adapter.kind == "full":
        yield f"{prefix}adapter=lora", replace(base, adapter=ranks)
    if adapter.kind in ("full", "lora") and not plan.shape.encoder_layers and trainer["strategy"] != "fsdp":
        yield f"{prefix}adapter=qlora", replace(base, adapter=replace(ranks, kind="qlora"))
    if plan.on_gpu and adapter.kind in ("full", "lora"):
        for devices in (2, 4, 8):
            more = {**base.trainer, "strategy": "fsdp", "devices": devices}
            wider = replace(base, trainer=more)
            if devices > trainer["devices"] or trainer["strategy"] != "fsdp":
                yield f"{prefix}trainer=fsdp trainer.devices={devices}", wider
                if wider.needed() <= NEAR * (wider.free()[1] or 0):
                    return


def refuse(config: Mapping[str, Any], counts: Counts) -> None:
    """Refuse a training that cannot fit here, before its weights are loaded.

    What a model of an unknown architecture takes is not known: it is not refused.

    Args:
        config: resolved, composed with ``primary="train"``.
        counts: of its examples.

    Raises:
        InputError: what it needs by part, what there is, and what would fit.
    """
    here = {**config, "trainer": {**config["trainer"], "gpu": None}}
    try:
        found = training_cost("training", here, counts=counts)
    except UnknownShape:
        return
    if not found.fits:
        raise InputError(too_large(found))


def too_large(cost: TrainingCost) -> str:
    """Return in one line what a training needs, what there is, and what would fit."""
    shown = [f"{part} {gib:.1f}" for part, gib in sorted(cost.parts.items(), key=lambda p: -p[1]) if gib >= 0.05]
    several = f"{cost.processes} processes of " if cost.processes > 1 else ""
    where = "this machine" if cost.device == "cpu" else cost.device
    mend = cost.mend or "nothing that plan knows of"
    needs = f"{cost.kind} on {cost.model} needs {cost.needed:.1f} GiB ({several}{', '.join(shown)})"
    return f"{needs}; {cost.free or 0:.1f} GiB are free on {where}; would fit: {mend}"


def text(costs: list[TrainingCost]) -> str:
    """Render trainings as a table each."""
    return "\n\n".join(_block(cost) for cost in costs)


def _block(cost: TrainingCost) -> str:
    counts, several = cost.counts, f"{cost.ranks} × " if cost.ranks > 1 else ""
    share = cost.trainable / cost.parameters if cost.parameters else 0.0
    parts = ", ".join(f"{part} {gib:.2f}" for part, gib in cost.parts.items() if gib >= 0.005)
    each = f" on each of {cost.processes} processes" if cost.processes > 1 else ""
    free = "unknown" if cost.free is None else f"{cost.free:.1f} GiB free"
    lengths = f"mean {counts.prompt + counts.answer:.0f} tokens, longest {counts.longest}"
    assumed = " (assumed, not counted)" if counts.known else ""
    each = " a process" if cost.ranks > 1 and not each else each
    lines = [
        ("training", f"{cost.label}: {cost.kind} on {cost.model}"),
        ("parameters", f"{cost.parameters:,}, trained {cost.trainable:,} ({share:.2%})"),
        ("examples", f"{counts.pairs:,} and {counts.held_out:,} held out; {lengths}{assumed}"),
        ("steps", f"{cost.steps:,}, {cost.tokens:,} tokens"),
        ("memory", f"{cost.needed:.1f} GiB, {free}"),
        ("", f"{parts}{each}"),
        ("hours", f"{cost.hours:.2f} on {several if cost.device != 'cpu' else ''}{cost.device}"),
    ]
    lines += [("", line) for line in cost.assumed]
    if not cost.fits:
        lines.append(("does not fit", f"would fit: {cost.mend or 'nothing that plan knows of'}"))
    return "\n".join(f"{name:14}{value}".rstrip() for name, value in lines)
