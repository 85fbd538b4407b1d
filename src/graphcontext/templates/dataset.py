from graphcontext.data import splits
from graphcontext.data.loaded import Loaded
from graphcontext.data.plain_text import lengths
from graphcontext.data.records import Corpus, Passage, Question, content_id

PAIRS = [  # your reader instead; files in JSONL need none: dataset=jsonl
    ("How do I list open ports?", "Run ss -tlnp; it names the process of each port."),
    ("How do I find large files?", "Run du -ah and sort its output by size."),
    ("How do I see which process holds a port?", "Run ss -tlnp and look at the last column."),
    ("How do I free disk space?", "Find large files with du, then remove what you do not need."),
]


class Example:
    """Four answered questions: the first two can be retrieved, the last two are asked."""

    selection = frozenset({"limit", "seed"})  # which questions are scored: not part of what is read

    def __init__(self, name: str, limit: int | None, seed: int):
        self.name, self.limit, self.seed = name, limit, seed

    def select(self, questions):
        return splits.select(questions, self.limit, self.seed)

    def load(self):
        pool, asked = PAIRS[:2], PAIRS[2:]
        corpus = Corpus.of([Passage(content_id(q, a), q, q, f"{q}\n{a}") for q, a in pool])
        questions = tuple(Question(content_id(q), q, corpus.id, (a,), title=q) for q, a in asked)
        words = {  # of plan's estimates
            "scored questions": lengths([q for q, _ in asked]),
            "pool accepted answers": lengths([a for _, a in pool]),
        }
        counts = {"kept": len(PAIRS), "pool": len(pool), "scored_candidates": len(asked), "answers_in_pool": len(pool)}
        return Loaded(questions, {corpus.id: corpus}, {"name": self.name, **counts, "words": words})
