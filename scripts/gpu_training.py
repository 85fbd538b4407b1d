"""Tokens per second and peak memory of trainings on this machine's GPU, beside what ``plan`` says.

scripts/gpu_training.sh

SmolLM2 and a Llama of 1.1 billion random weights (TinyLlama's shape) with LoRA and QLoRA, in bfloat16 where the GPU has
it, on random tokens, all of which are learnt, in the loop of ``graphcontext train``. Speed and memory alone: nothing
is learnt from random tokens, and these adapters are thrown away. Each cell is a process of its own.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.files import write_atomic
from graphcontext.models import has_gpu

ROOT = Path(__file__).resolve().parents[1]
GIB = 2**30
WARM = 5  # steps before the clock starts
RANDOM = {  # name → sizes of a Llama with random weights
    "llama-1.1b-random": {
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 22,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "vocab_size": 32000,
    },
    "tiny-random": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
    },
}
KINDS = ("lora", "qlora")
BATCH = ("steps", "tokens", "micro", "passes")


def save_random(name: str, folder: Path) -> Path:
    """Save a Llama with random weights, and a tokenizer of one word, which no token of this script comes from."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(**RANDOM[name], max_position_embeddings=4096)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"?": 0, "</s>": 1}, unk_token="?"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?", eos_token="</s>").save_pretrained(folder)
    return folder


def config_of(model: str, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the config of one training."""
    trainer = {
        "batch_size": options.micro * options.passes,
        "micro_batch_size": options.micro,
        "max_tokens": options.tokens,
        "wandb": "disabled",
        "validations": 1,
    }
    where = "trainer=cpu" if options.cpu_smoke else "trainer=gpu"
    words = [where, f"adapter={kind}", "llm=smollm2", f"llm.model='{model}'", "llm.dtype=auto"]
    return compose([*words, *(f"trainer.{key}={value}" for key, value in trainer.items())], primary="train").config


def cell(model: str, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train in this process; returns speed, memory and the plan."""
    import torch

    from graphcontext.train import key as keys
    from graphcontext.train.base import Base
    from graphcontext.train.batches import Course
    from graphcontext.train.checkpoint import Position
    from graphcontext.train.data_module import PairsData
    from graphcontext.train.examples import Example, Examples
    from graphcontext.train.outline import Counts, plan_of
    from graphcontext.train.report import Bar, Wandb
    from graphcontext.train.steps import Seats, Steps
    from graphcontext.train.strategy import Calm, lightning_trainer, precision_of

    class Stamped(Steps):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            super().on_train_start(trainer, module)
            self.ends = [time.perf_counter()]

        def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
            super().on_train_batch_end(trainer, module, *rest)
            if module.passes == 0:
                if module.device.type == "cuda":
                    torch.cuda.synchronize()
                self.ends.append(time.perf_counter())

    config = config_of(model, kind, options)
    settings, adapter = instantiate(config["trainer"], "trainer"), instantiate(config["adapter"], "adapter")
    base = Base(keys.base(config), adapter, settings)
    size, total = settings.batch_size, WARM + options.steps + 1  # the last step writes a checkpoint, and is not timed
    draw, vocabulary = random.Random(0), base.model.tokenizer.vocab_size
    if Path(model).name in RANDOM:
        vocabulary = RANDOM[Path(model).name]["vocab_size"]
    examples = []
    for n in range(size * total):
        ids = tuple(draw.randrange(2, vocabulary) for _ in range(options.tokens))
        examples.append(Example(str(n), ids, ids))
    course = Course((options.tokens,) * len(examples), size, total, config["seed"], settings.bucket)
    plan = plan_of(config, Counts(len(examples), 0, 0.0, options.tokens, options.tokens, options.tokens)).parts()
    with tempfile.TemporaryDirectory() as name, Calm():
        sides = {"train": Examples(examples), "validation": Examples()}
        module = base.module(settings, course, sides, config["seed"], 0)
        data = PairsData(sides["train"], sides["validation"], course, settings, base.collate)
        bar, curve = Bar(total, 0, True), Wandb("disabled", "", Path(name), "", {})
        position = Position()
        steps = Stamped(Seats(Path(name)), position, data.held_out_loader, bar, curve)
        lightning_trainer(settings, course, data.deal, steps, Path(name)).fit(module, datamodule=data)
    seconds = [b - a for a, b in zip(steps.ends[WARM:-2], steps.ends[WARM + 1 : -1], strict=True)]
    if options.cpu_smoke:
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20
    else:
        peak = torch.cuda.max_memory_reserved() / GIB
        del plan["process"]  # the CUDA context, which PyTorch's allocator does not see
    return {
        "status": "run",
        "parameters": sum(p.numel() for p in base.model.weights.parameters() if not p.requires_grad),
        "trained": sum(p.numel() for p in module.trained()),
        "precision": precision_of(settings)[0],
        "tokens_per_second": size * options.tokens / statistics.median(seconds),
        "ms_per_step": 1000 * statistics.median(seconds),
        "peak_gib": peak,
        "planned_gib": sum(plan.values()),
        "planned_parts_gib": plan,
        "loss": [position.rows[1]["loss"], position.rows[-1]["loss"]],
    }


def run(model: str, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return a cell, computed in a process of its own."""
    shape = [f"--{name}={getattr(options, name)}" for name in BATCH]
    command = [sys.executable, __file__, "--cell", model, kind, *shape, *(["--cpu-smoke"] if options.cpu_smoke else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"status": "failed", "reason": lines[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def page(found: dict[str, Any]) -> str:
    """Return the results as markdown."""
    shape = found["batch"]
    lines = [
        f"<!-- Generated by: {found['generated_by']} -->",
        "# Training on a GPU: speed and memory",
        "",
        f"Machine: {found['device']}; torch {found['torch']}.",
        f"Steps of {shape['passes']} × {shape['micro']} sequences of {shape['tokens']} random tokens, all learnt; "
        f"median of {shape['steps']} steps after {WARM}.",
        "Random tokens, and of `-random` models random weights: a measurement of speed and memory, never of quality.",
        "Memory is the peak of what PyTorch's allocator holds; the plan beside it leaves the CUDA context out too.",
        "",
        "| model | adapter | precision | tokens/s | ms a step | peak GiB | planned GiB | measured / planned |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found["cells"]:
        name = f"| {row['model']} | {row['adapter']} |"
        if row["status"] != "run":
            said = f"{row['status']} ({row['reason']})"
            lines.append(f"{name} {' | '.join([said] * 6)} |")
            continue
        ratio = row["peak_gib"] / row["planned_gib"]
        speed = f"{row['tokens_per_second']:,.0f} | {row['ms_per_step']:.1f}"
        memory = f"{row['peak_gib']:.2f} | {row['planned_gib']:.2f} | {ratio:.2f}"
        lines.append(f"{name} {row['precision']} | {speed} | {memory} |")
    return "\n".join(lines) + "\n"


def was_measured(path: Path) -> bool:
    """Tell whether results are there that a GPU gave."""
    return path.is_file() and any(row["status"] == "run" for row in json.loads(path.read_text("utf-8"))["cells"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20, help="timed ones")
    parser.add_argument("--tokens", type=int, default=1024, help="of a sequence")
    parser.add_argument("--micro", type=int, default=4, help="sequences of a forward pass")
    parser.add_argument("--passes", type=int, default=2, help="forward passes of a step")
    parser.add_argument("--cpu-smoke", action="store_true", help="a tiny model on the CPU; prints, writes nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder for gpu_training.md and .json")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)  # of a process that measures: prints JSON
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(cell(*options.cell, options)))
        return 0
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch

    gpu = has_gpu() and not options.cpu_smoke
    device = torch.cuda.get_device_name() if gpu else "the CPU" if options.cpu_smoke else "no GPU here"
    cells = []
    with tempfile.TemporaryDirectory() as name:
        for model in ("tiny-random",) if options.cpu_smoke else ("smollm2", "llama-1.1b-random"):
            path = model
            if model in RANDOM and (gpu or options.cpu_smoke):
                path = str(save_random(model, Path(name) / model))
            for kind in KINDS:
                row = {"status": "not run", "reason": "no GPU here"}
                if gpu or options.cpu_smoke:
                    row = run(path, kind, options)
                cells.append({"model": model, "adapter": kind, **row})
    batch = {name: getattr(options, name) for name in BATCH}
    given = [f"--{name} {value}" for name, value in batch.items() if value != parser.get_default(name)]
    by = " ".join(["scripts/gpu_training.sh", *given])
    found = {"generated_by": by, "device": device, "torch": torch.__version__, "batch": batch, "cells": cells}
    print(page(found), end="")
    if not options.cpu_smoke and not gpu and was_measured(options.out / "gpu_training.json"):
        print(f"kept: {options.out / 'gpu_training.md'} was measured on a GPU", file=sys.stderr)
    elif not options.cpu_smoke:
        options.out.mkdir(parents=True, exist_ok=True)
        write_atomic(options.out / "gpu_training.md", page(found))
        write_atomic(options.out / "gpu_training.json", json.dumps(found, indent=1) + "\n")
    return 1 if any(row["status"] == "failed" for row in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
