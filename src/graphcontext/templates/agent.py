from graphcontext.retrieve.agents.state import Evidence


class Example:
    """Looks for the question together with the first words of the last passage."""

    repeatable = True  # a failed step would fail again: the next run need not try

    def __init__(self, n_words):
        self.n_words = n_words

    def evidence(self, states):
        found = []
        for state in states:
            words = state.passages[-1].match_text.split()[: self.n_words]
            found.append(Evidence(" ".join([state.question.text, *words])))
        return found
