"""Calls of a traversal's agent: one seed of one question at a time beside all of all questions in batches.

python scripts/bench/agent_calls.py --questions 8 --batch 32

The shipped sample's questions without a graph, by ``llm=smollm2`` with the prompt of ``agent=causal``. Wall and CPU
time; one call first, untimed, so that loading the weights counts for neither. What a batch saves is in writing the
answer, not in reading the prompt: long prompts (``agent=chat``) gain less on a CPU, a GPU gains in both.
"""

import argparse
import time

import clock

from graphcontext.component import instantiate
from graphcontext.config import compose


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--one-questions", type=int, default=2, help="of the way one at a time")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--agent", default="causal")
    parser.add_argument("overrides", nargs="*", help="such as dataset=hotpotqa scale=small")
    options = parser.parse_args()
    retriever = ["retriever=traversal", "retriever.use_graph=false", f"retriever.n_seeds={options.seeds}"]
    config = compose(["dataset=multihop_sample", *retriever, f"agent={options.agent}", *options.overrides]).config
    dataset = instantiate(config["dataset"], "dataset")
    loaded = dataset.load()
    questions = list(dataset.select(loaded.questions))[: options.questions]
    traversal = instantiate(config["retriever"], "retriever")
    llm = traversal.agent.llm
    traversal.retrieve(questions[:1], loaded.corpora, {})
    rows, found, base = [], [], 0.0
    single = [[question] for question in questions[: options.one_questions]]
    for name, size, groups in (("one at a time", 1, single), ("all questions", options.batch, [questions])):
        llm.batch_size = size
        wall, cpu = time.perf_counter(), time.process_time()
        rankings = [r for group in groups for r in traversal.retrieve(group, loaded.corpora, {})]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found.append([step.evidence for r in rankings for step in (r.steps or ())[1:]])
        n_calls = len(found[-1])
        wall, cpu = wall / n_calls, cpu / n_calls
        base = base or cpu
        rows.append((name, size, n_calls, f"{wall:.1f}", f"{cpu:.2f}", f"{base / cpu:.2f}"))
    equal = sum(a == b for a, b in zip(*found))
    print(f"Calls of an agent by {llm.model}, prompts of agent={options.agent}, one thread\n")
    clock.table("way | batch | calls | wall seconds a call | CPU seconds a call | ratio", rows)
    print(f"Equal evidence: {equal} of {len(found[0])}\n")


if __name__ == "__main__":
    main()
