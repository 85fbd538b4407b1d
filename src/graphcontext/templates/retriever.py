from graphcontext.data.records import Ranking, Scored


class Example:
    """Ranks the longest passages first, whatever the question."""

    def __init__(self, top_k: int = 2):
        self.top_k = top_k

    def retrieve(self, questions, corpora, graphs):
        rankings = []
        for question in questions:
            passages = sorted(corpora[question.corpus_id].passages, key=lambda p: (-len(p.match_text), p.id))
            best = tuple(Scored(p.id, float(len(p.match_text))) for p in passages[: self.top_k])
            rankings.append(Ranking(question.id, best))
        return rankings
