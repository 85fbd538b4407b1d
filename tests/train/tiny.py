"""A tiny training: twelve questions with passages of one's own, tiny models, the command in a process of its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from graphcontext.config import compose
from graphcontext.errors import InputError
from graphcontext.train import world
from graphcontext.train.adapter import LoRA
from tests.tiny_models import save_tiny_llama

SRC = Path(__file__).parents[2] / "src"
THINGS = ("ports", "disks", "logs", "users", "timers", "mails", "fonts", "shares", "keys", "jobs", "links", "mounts")
HELD_OUT = ("groups", "sockets", "kernels", "swaps", "images")
SCORED = ("cores", "threads")
NOUNS = (*THINGS, *HELD_OUT, *SCORED)


class OnlyTheFirst(LoRA):
    """An adapter that other processes refuse."""

    def __init__(self, rank: int, alpha: int, dropout: float, targets: list[str] | None) -> None:
        super().__init__(rank, alpha, dropout, targets)
        if world.rank() > 0:
            raise InputError("no adapter here")


def question(i: int, noun: str) -> str:
    """A question on a noun, of another length for each number."""
    return f"how do i list {noun} " + "on the server " * (i % 4)


def answer(i: int, noun: str) -> str:
    return f"use the tool for {noun} " + "then read it " * (i % 3)


def save_data(folder: Path) -> Path:
    """Write a data set with official sides: 12 training, 5 validation and 2 test questions."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = {noun: "train" for noun in THINGS} | {noun: "validation" for noun in HELD_OUT}
    questions, passages = [], []
    for i, noun in enumerate(NOUNS):
        row = {"id": f"q{i}", "question": question(i, noun), "answers": [answer(i, noun)]}
        questions.append(row | {"split": sides.get(noun, "test")})
        passages.append({"id": f"p{i}", "title": noun, "text": f"the tool for {noun} is here"})
    for name, rows in (("questions", questions), ("corpus", passages)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def texts() -> list[str]:
    """What the tokenizer knows."""
    said = [f"{question(3, noun)} {answer(2, noun)} the tool for {noun} is here" for noun in NOUNS]
    return [*said, "user assistant system Answer : . ?"]


def save_llama(folder: Path, **changes: Any) -> Path:
    return save_tiny_llama(folder, texts=texts(), **changes)


def words(data: Path, model: Path, *more: str) -> list[str]:
    """The words of ``graphcontext train`` for the tiny training: three steps an epoch, dropout, shuffled, bucketed."""
    return [
        "experiment=gcg/sft",
        "dataset=jsonl",
        f"dataset.path={data}",
        "llm=smollm2",
        f"llm.model={model}",
        "trainer=cpu",
        "trainer.wandb=disabled",
        "trainer.batch_size=4",
        "trainer.max_tokens=64",
        "trainer.learning_rate=0.01",
        "adapter.rank=4",
        *more,
    ]


def composed(*overrides: str) -> dict[str, Any]:
    return compose(list(overrides), (), None, primary="train").config


def folder_of(store: Path) -> Path:
    """Return the only training of a working folder."""
    (found,) = [p for p in (store / "store" / "adapter").iterdir() if p.is_dir()]
    return found


def metrics(folder: Path) -> list[dict[str, str]]:
    """Return the lines of metrics.csv without their seconds."""
    with (folder / "metrics.csv").open(newline="") as stream:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")
