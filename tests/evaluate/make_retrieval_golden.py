"""Write retrieval_golden.json with trec_eval, by pytrec-eval-terrier 0.5.11.

python tests/evaluate/make_retrieval_golden.py
"""

import json
import random
from pathlib import Path

import pytrec_eval

CUTS = (1, 2, 5, 10, 30)
MEASURES = {"recall": "recall", "precision": "P", "ndcg": "ndcg_cut"}

if __name__ == "__main__":
    rng = random.Random(0)
    passages = [f"p{i}" for i in range(40)]
    rows = []
    sizes = ((0, 1), (1, 1), (3, 2), (8, 3), (30, 1), (40, 12), (12, 40))
    for grades, (n_ranked, n_gold) in [((1,), size) for size in sizes] + [((1, 2, 3), size) for size in sizes]:
        ranked, gold = rng.sample(passages, n_ranked), sorted(rng.sample(passages, n_gold))
        judged = {"q": {passage: grades[i % len(grades)] for i, passage in enumerate(gold)}}
        names = {f"{theirs}.{','.join(map(str, CUTS))}" for theirs in MEASURES.values()} | {"recip_rank"}
        run = {"q": {p: float(-i) for i, p in enumerate(ranked)} or {"absent": 0.0}}
        found = pytrec_eval.RelevanceEvaluator(judged, names).evaluate(run)["q"]
        values = {f"{ours}@{k}": found[f"{theirs}_{k}"] for ours, theirs in MEASURES.items() for k in CUTS}
        rows.append({"ranked": ranked, "gold": judged["q"], "values": values | {"mrr": found["recip_rank"]}})
    path = Path(__file__).with_name("retrieval_golden.json")
    path.write_text(json.dumps(rows, indent=1) + "\n")
