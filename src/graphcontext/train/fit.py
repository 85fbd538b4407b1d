"""``train``: pairs, examples, optimiser steps, and a folder with the adapter."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.component import instantiate
from graphcontext.errors import InputError
from graphcontext.files import digest
from graphcontext.lease import Lease
from graphcontext.runs import free_models
from graphcontext.stage import Stages, damaged
from graphcontext.store import Artefact, Store, Workspace
from graphcontext.train import key as keys
from graphcontext.train.base import Base
from graphcontext.train.batches import Deal
from graphcontext.train.checkpoint import Position
from graphcontext.train.checkpoint import read as read_checkpoint
from graphcontext.train.cost import refuse
from graphcontext.train.data_module import PairsData
from graphcontext.train.encoder_base import EncoderBase
from graphcontext.train.pairs import made_from, read_pairs, read_texts
from graphcontext.train.ranks import DONE, TRAIN, Ranks
from graphcontext.train.report import Bar, Wandb, check_wandb
from graphcontext.train.result import write_result
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.spawn import Others
from graphcontext.train.steps import Seats, Steps, check_base
from graphcontext.train.stop import StopSignal, at_once
from graphcontext.train.strategy import Calm, device_of, launched, lightning_trainer, precision_of
from graphcontext.train.together import build
from graphcontext.train.trained import STAGE
from graphcontext.train.training import Training
from graphcontext.train.world import check_world, process, rank


@dataclass(frozen=True)
class Trained:
    """What came of a training.

    Args:
        path: the folder of the adapter (or of the model, with ``adapter=full``).
        facts: as in its manifest; empty where it was stopped.
        stopped_by: signal that stopped it, 0 where it is finished.
        said: lines for the user.
    """

    path: Path
    facts: dict[str, Any]
    stopped_by: int = 0
    said: tuple[str, ...] = ()

    @property
    def is_first_rank(self) -> bool:
        """Whether this process is the one of several that speaks."""
        return rank() == 0

    def lines(self) -> list[str]:
        """Return what a user reads of it."""
        if self.stopped_by:
            again = "the same command goes on from there"
            return [f"{signal.Signals(self.stopped_by).name}: {', '.join(self.said)}; {again}"]
        held = self.facts.get("held_out_loss") or {}
        n = self.facts["examples"]["validation"]["pairs"]
        found = "".join(f", {name} {value:.4f}" for name, value in held.items() if value is not None)
        unit = "an example" if self.facts.get("what") == "encoder" else "a token"
        shown = [*self.said, f"held-out loss over {n} examples{found} (nats {unit})" if found else "no held-out pairs"]
        if ranked := self.facts.get("held_out_mrr"):
            shown.append("held-out MRR, base {base:.4f}, kept {kept:.4f}".format(**ranked))
        if None not in (held.get("base"), held.get("best")) and held["best"] >= held["base"]:
            shown.append("the held-out loss never fell below the base model's")
        return shown


def train(config: dict[str, Any], root: Path | str = ".", quiet: bool = False, name: str = "") -> Trained:
    """Train what a config says, or go on where it was stopped; what is finished is not trained again.

    Args:
        config: resolved, composed with ``primary="train"``.
        root: the working folder, which gets ``store/``.
        quiet: no progress.
        name: of the experiment.

    Raises:
        InputError: wrong input, nothing to train on, too little memory, a loss that is no number, or the ranks of a
            launcher find that another process trains the same.
        RunError: the disk is full, a checkpoint is damaged, or the ranks do not meet.
    """
    settings, adapter = build(config)
    check_world(settings)
    node = keys.base(config)
    models.resolve(node["model"], node.get("revision"))
    store = Store(Path(root) / "store")
    artefact = store.artefact(STAGE, keys.training_key(config))
    try:
        own = settings.world > 1 and not process().launcher
        with at_once(), launched(), Ranks(Others(config, root, name, settings.world) if own else None) as ranks:
            if not ranks.is_first:
                return _train(ranks, config, settings, adapter, artefact, store, True, name)
            if ranks.are_several:  # their machines are not to stand idle
                Lease(artefact.path.with_name(f"{artefact.key}.lock")).refuse_live()
            with artefact.lock():
                return _train(ranks, config, settings, adapter, artefact, store, quiet, name)
    except StopSignal as told:  # while pairs were made, or the result was written
        if rank() > 0:
            raise SystemExit(128 + told.number) from told
        return Trained(artefact.path, {}, told.number, ("stopped",))


def _train(
    ranks: Ranks,
    config: dict[str, Any],
    settings: TrainerSettings,
    adapter: Any,
    artefact: Artefact,
    store: Store,
    quiet: bool,
    name: str,
) -> Trained:
    base = base_of(config, settings, adapter) if artefact.finished is None else None  # faults before hours of pairs
    ranks.gather("up")
    if not ranks.is_first and ranks.hear() == DONE:
        return finished(artefact)
    sides_read = ("train",) if settings.data == "text" else ("train", "validation")
    stages = {side: Stages(Workspace(store, quiet=quiet), makes=ranks.is_first) for side in sides_read}
    if settings.data != "text":
        read = {side: read_pairs(config, side, seen.workspace, seen) for side, seen in stages.items()}
    else:
        read = dict(zip(("train", "validation"), read_texts(config, stages["train"].workspace, stages["train"])))
    free_models()
    inputs = made_from(stages)
    if ranks.is_first:
        is_done = artefact.is_current(inputs) and damaged(artefact) is None
        ranks.tell(DONE if is_done else TRAIN)
        if is_done:
            return finished(artefact)
    base = base or base_of(config, settings, adapter)
    sides = {side: base.encode(found, settings) for side, found in read.items()}
    if not sides["train"].examples:
        raise InputError(f"nothing to train on: {sides['train'].described('train')}")
    refuse(config, base.counts(sides))
    said = [found.described(side) for side, found in sides.items()]
    if ranks.is_first:
        artefact.begin(inputs)
    ranks.begin(digest(inputs))
    facts = fit(Training(config, settings, base, sides, artefact.path, name), quiet, said, ranks.trained)
    if facts.get("stopped_by"):
        return Trained(artefact.path, {}, facts["stopped_by"], (facts["said"],))
    if ranks.is_first:
        artefact.finish(facts, inputs)
    return Trained(artefact.path, facts, 0, tuple(said) if quiet else ())  # said before, where progress is shown


def base_of(config: dict[str, Any], settings: TrainerSettings, adapter: Any) -> Any:
    """Return the model that a training starts from: one that writes, or an encoder.

    Raises:
        InputError: it cannot be trained in this way, or not here.
    """
    if adapter.kind != "none" and rank() == 0:
        check_wandb(settings.wandb)
    if settings.data == "bi_encoder":
        return EncoderBase(keys.base(config), adapter, settings, instantiate(config["bi_encoder"], "bi_encoder"))
    return Base(keys.base(config), adapter, settings)


def finished(artefact: Artefact) -> Trained:
    """Return a training that is done."""
    done = artefact.finished
    facts = {} if done is None else done["facts"]
    return Trained(artefact.path, facts, 0, ("trained before",))


def fit(training: Training, quiet: bool, said: list[str], trained: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Run the optimiser steps that are left and write the result; returns the facts of the manifest.

    Args:
        training: what is to be trained.
        quiet: no progress.
        said: lines on its examples, for the user.
        trained: called when the last step is done, or the one at which it stops.
    """
    settings, base, course, sides = training.settings, training.base, training.course, training.sides
    seats = Seats(training.folder)
    found = read_checkpoint(seats.last)
    position = found[1] if found is not None else Position()
    del found  # its tensors are read again where they are put back
    quiet = quiet or rank() > 0
    if not quiet:
        for line in [*said, *_how(training, position)]:
            print(line, file=sys.stderr)
    module = base.module(settings, course, sides, training.config["seed"], position.step)
    data = PairsData(sides["train"], sides["validation"], course, settings, base.collate)
    data.start = position.step
    if base.kind == "none":
        module.network = base.load()
        with closing(Bar(0, 0, quiet)) as bar:
            look = partial(bar.validate, 0)
            loss, n = module.to(device_of(settings)).held_out_loss(data.held_out_loader(), look)
        position.base = loss if n else None
        check_base(position.base)
        position.rows = [{"step": 0, "epoch": 0.0, "held_out_loss": position.base, **module.measured, "seconds": 0.0}]
    elif position.step < course.total and not is_stopped_early(settings, position):
        mode = settings.wandb if rank() == 0 else "disabled"
        key = training.folder.name
        with (
            closing(Wandb(mode, key, training.folder / "wandb", training.name, recipe(training.config))) as curve,
            closing(Bar(course.total, position.step, quiet)) as bar,
        ):
            position.begin(
                ranks=settings.world,
                micro_batch_size=settings.micro_batch_size,
                strategy=settings.strategy,
                precision=precision_of(settings)[0],
                gradient_checkpointing=settings.gradient_checkpointing,
            )
            steps = Steps(seats, position, data.held_out_loader, bar, curve, settings.profile)
            with steps.wish, Calm(), launched():
                steps.run(lightning_trainer(settings, course, data.deal, steps, training.folder), module, data)
        trained()
        if steps.stopped_by:
            return {"stopped_by": steps.stopped_by, "said": f"stopped at step {position.step} of {course.total}"}
    return write_result(training, module, position)


def is_stopped_early(settings: TrainerSettings, position: Position) -> bool:
    """Tell whether patience ended a training."""
    return settings.patience is not None and position.worse >= settings.patience


def recipe(config: dict[str, Any]) -> dict[str, Any]:
    """Return what of a config says how it is trained."""
    return {
        "adapter": config["adapter"],
        "trainer": config["trainer"],
        "base": keys.base_facts(config),
        "dataset": config["dataset"].get("name"),
        "seed": config["seed"],
    }


def _how(training: Training, position: Position) -> list[str]:
    """Say what is about to be done."""
    settings, base, course = training.settings, training.base, training.course
    precision, why = precision_of(settings)
    deal = Deal(settings.world, settings.micro_batch_size).within(course.batch_size)
    shape = f"{settings.world} × {deal.passes(course.batch_size)} × {deal.micro}"
    lines = [
        f"{base.kind} on {base.name} in {precision}{f' ({why})' if why else ''}: {course.total} steps of "
        f"{course.batch_size} (ranks × passes × micro-batch: {shape})"
    ]
    warm = settings.warm_up(course.total)
    if warm >= course.total > 1:
        lines.append(f"the warm-up has {warm} steps: the learning rate does not reach its peak in {course.total}")
    if position.step:
        lines.append(f"going on after step {position.step}")
    return lines
