from graphcontext.data.records import Prediction


class Example:
    """Answers with the first words of the context; without context it gives no answer."""

    def __init__(self, n_words: int = 60):
        self.n_words = n_words

    def generate(self, questions, contexts):
        predictions = []
        for question, context in zip(questions, contexts):
            words = " ".join(unit.text for unit in context.units).split()[: self.n_words]
            answer = Prediction(question.id, question.text, " ".join(words), question.references, len(words))
            if context.status == "failed":
                answer = Prediction(question.id, question.text, "", question.references, 0, "failed", context.reason)
            elif not words:
                answer = Prediction(question.id, question.text, "", question.references, 0, "empty", "no context")
            predictions.append(answer)
        return predictions
