import re


class Example:
    """Reads facts of the form "X is a Y" off each text, in small letters."""

    def facts(self, texts):
        found = [re.findall(r"([\w-]+) is an? ([\w-]+)", text.lower()) for text in texts]
        return [tuple(dict.fromkeys((head, "is a", tail) for head, tail in pairs)) for pairs in found]
