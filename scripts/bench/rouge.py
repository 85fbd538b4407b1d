"""ROUGE-1, -2 and -L of pairs of texts: rouge-score (the papers' way) beside ours, and whether each number is equal.

python scripts/bench/rouge.py --pairs 300
"""

import argparse
import itertools

import clock
from rouge_score.rouge_scorer import RougeScorer
from texts import docstrings

from graphcontext.data.records import Prediction, Question
from graphcontext.evaluate import overlap
from graphcontext.evaluate.overlap import VARIANTS, Rouge

WORDS = 160


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=300)
    options = parser.parse_args()
    long = (text for text in docstrings() if len(text.split()) >= WORDS)
    texts = [" ".join(text.split()[:WORDS]) for text in itertools.islice(long, options.pairs + 1)]
    pairs = list(itertools.pairwise(texts))
    questions = [Question(str(n), "", "c", references=(gold,)) for n, (_, gold) in enumerate(pairs)]
    predictions = [Prediction(str(n), "", text, (gold,)) for n, (text, gold) in enumerate(pairs)]
    rows = []
    for stemmer in (False, True):
        peer = RougeScorer(list(VARIANTS), use_stemmer=stemmer)
        paper, expected = clock.cpu(lambda peer=peer: [peer.score(gold, text) for text, gold in pairs])

        def ours(stemmer: bool = stemmer) -> list[list[dict[str, float]]]:
            overlap._all_variants.cache_clear()
            return [Rouge(variant, stemmer).score(questions, predictions, [], []) for variant in VARIANTS]

        seconds, found = clock.cpu(ours)
        differences = [
            abs(row[name + end] - getattr(e[name], field))
            for name, scores in zip(VARIANTS, found, strict=True)
            for row, e in zip(scores, expected, strict=True)
            for end, field in (("", "fmeasure"), ("_p", "precision"), ("_r", "recall"))
        ]
        stems = "Porter stems" if stemmer else "no stems"
        rows += [
            (stems, "rouge-score", f"{1000 * paper / len(pairs):.2f}", 1, ""),
            (stems, "ours", f"{1000 * seconds / len(pairs):.3f}", f"{paper / seconds:.0f}", f"{max(differences):.1e}"),
        ]
    print(f"ROUGE-1, -2 and -L of {len(pairs)} pairs of {WORDS} words\n")
    clock.table("words | way | ms a pair | ratio | largest difference in F, P, R", rows)


if __name__ == "__main__":
    main()
