"""Calls of a traversal's agent: one seed of one question at a time beside all of all questions in batches.

python scripts/bench/agent_calls.py --questions 8 --batch 8

The shipped sample's questions without a graph, by ``llm=smollm2`` with the prompt of ``agent=chat``. Wall and CPU time;
one call first, untimed, so that loading the weights counts for neither. With a server of its own batching, or an API,
the ratio is that of its parallel requests.
"""

import argparse
import time

import clock

from graphcontext.component import instantiate
from graphcontext.config import compose


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("overrides", nargs="*", help="such as dataset=multihop_sample")
    options = parser.parse_args()
    retriever = ["retriever=traversal", "agent=chat", "retriever.use_graph=false", f"retriever.n_seeds={options.seeds}"]
    config = compose([*retriever, *options.overrides]).config
    dataset = instantiate(config["dataset"], "dataset")
    loaded = dataset.load()
    questions = list(dataset.select(loaded.questions))[: options.questions]
    traversal = instantiate(config["retriever"], "retriever")
    llm = traversal.agent.llm
    traversal.retrieve(questions[:1], loaded.corpora, {})
    rows, found, base = [], [], 0.0
    for name, size in (("one at a time", 1), ("all questions", options.batch)):
        llm.batch_size = size
        wall, cpu = time.perf_counter(), time.process_time()
        groups = [[q] for q in questions] if size == 1 else [questions]
        rankings = [r for group in groups for r in traversal.retrieve(group, loaded.corpora, {})]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found.append([step.evidence for r in rankings for step in r.steps or ()])
        base = base or cpu
        rows.append((name, size, f"{wall:.1f}", f"{cpu:.1f}", f"{base / cpu:.2f}"))
    n_calls = sum(len(r.steps or ()) - 1 for r in rankings)
    equal = sum(a == b for a, b in zip(*found, strict=True))
    print(f"{n_calls} calls for {len(questions)} questions by {llm.model}, one thread\n")
    clock.table("way | batch | wall seconds | CPU seconds | ratio", rows)
    print(f"Equal evidence: {equal} of {len(found[0])}\n")


if __name__ == "__main__":
    main()
