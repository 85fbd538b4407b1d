import re

from graphcontext.enhance.triples import Extraction


class Example:
    """Finds triples of the form "X is a Y" in each passage."""

    name = "example"  # the source that is shown beside a triple
    repeatable = True  # a failed extraction would fail again: the next run need not try

    def extract(self, passages):
        found = []
        for passage in passages:
            pairs = re.findall(r"([\w-]+) is an? ([\w-]+)", passage.context_text)
            triples = tuple(dict.fromkeys((head, "is a", tail) for head, tail in pairs))
            found.append(Extraction(triples, "ok" if triples else "empty"))
        return found
