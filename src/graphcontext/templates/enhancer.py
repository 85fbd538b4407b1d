from graphcontext.enhance.none import passages_context, ranked_passages


class Example:
    """Shows the passages worst first, so that the best one stands next to the question."""

    def enhance(self, questions, rankings, corpora):
        found = ranked_passages(questions, rankings, corpora)
        return [passages_context(ranking, passages[::-1]) for ranking, passages in zip(rankings, found)]
