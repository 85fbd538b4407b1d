class Example:
    """The share of the gold answer's words that the answer holds, of several gold answers the best."""

    signature = "example|words"  # what gives the same number again: model, version, settings

    def score(self, questions, predictions, rankings, contexts):
        return [{"example": self._share(question, answer)} for question, answer in zip(questions, predictions)]

    def _share(self, question, answer):
        said = set(answer.prediction.lower().split())
        gold = [set(reference.lower().split()) for reference in question.references]
        return max((len(words & said) / len(words) for words in gold if words), default=0.0)
