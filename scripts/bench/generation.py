"""Answers of a local model: one question at a time (the papers' way) beside batches, and whether the texts are equal.

python scripts/bench/generation.py --batch 8

The shipped sample's questions through ``llm=smollm2`` as a run asks them, without context. Wall time and CPU time;
one call first, untimed, so that loading the weights counts for neither.
"""

import argparse
import time

import clock

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Context


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--max-new-tokens", type=int, default=96)
    parser.add_argument("overrides", nargs="*", help="such as llm.repetition_penalty=1.0")
    options = parser.parse_args()
    overrides = [f"generator.max_new_tokens={options.max_new_tokens}", *options.overrides]
    config = compose(["experiment=gcg/zero_shot", *overrides]).config
    dataset = instantiate(config["dataset"], "dataset")
    questions = dataset.select(dataset.load().questions)[: options.questions]
    nothing = [Context(question.id, ()) for question in questions]
    generator = instantiate(config["generator"], "generator")
    generator.generate(questions[:1], nothing[:1])
    rows, texts, base = [], {}, 0.0
    for size in (1, options.batch):
        generator.llm.batch_size = size
        wall, cpu = time.perf_counter(), time.process_time()
        predictions = generator.generate(questions, nothing)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        texts[size] = [prediction.prediction for prediction in predictions]
        n_tokens = sum(prediction.n_tokens for prediction in predictions)
        base = base or cpu
        rows.append((size, f"{wall:.1f}", f"{cpu:.1f}", f"{n_tokens / cpu:.1f}", f"{base / cpu:.2f}"))
    equal = sum(a == b for a, b in zip(*texts.values(), strict=True))
    print(f"{len(questions)} answers of up to {options.max_new_tokens} tokens by {generator.llm.model}, one thread\n")
    clock.table("batch | wall seconds | CPU seconds | tokens per CPU second | ratio", rows)
    if equal < len(questions):
        differing = [q.id for q, a, b in zip(questions, *texts.values(), strict=True) if a != b]
        raise SystemExit(f"other texts in batches: {len(differing)} of {len(questions)}: {' '.join(differing)}")
    print(f"Equal texts: {equal} of {len(questions)}\n")


if __name__ == "__main__":
    main()
