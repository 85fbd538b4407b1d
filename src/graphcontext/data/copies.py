"""Which passages of a user's own data are a question of the scored side, or of one that is scored later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graphcontext.data import splits
from graphcontext.data.leaks import normalise
from graphcontext.data.questions import Cut
from graphcontext.data.records import Passage


@dataclass(frozen=True)
class Copies:
    """The ids of passages that are one of some questions: those with an answer, and those without."""

    answered: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


def find_copies(passages: Sequence[Passage], made: Cut, side: str) -> dict[str, Copies]:
    """Return the passages that are a scored question and none of its gold passages, else those that are a later one.

    Title and text are compared as one and the text alone; of a passage with an answer the title alone too. Gold
    passages of later questions are copies as any other: they hand out what is asked later.

    Args:
        passages: of the corpus.
        made: the questions of all sides.
        side: the scored one.

    Returns:
        ``scored``, and where a side is scored later its name (``validation or test``) → copies.
    """
    gold: dict[str, set[str]] = {}
    for question in made.by_side[side]:
        gold.setdefault(normalise(question.text), set()).update(question.supports)
    later = [question for name in splits.later(side) for question in made.by_side[name]]
    hidden = {normalise(question.text) for question in later}
    longest = max(len(question.text) for question in (*made.by_side[side], *later)) + 100
    of_scored, of_later = Copies(), Copies()
    for passage in passages:
        texts = [passage.match_text, passage.match_text[len(passage.title) :]]
        if passage.answers:
            texts.append(passage.title)
        elif len(texts[1]) > longest:  # saves the work where a corpus is large
            continue
        plain = {normalise(text) for text in texts} - {""}
        if any(passage.id not in gold.get(text, {passage.id}) for text in plain):
            found = of_scored
        elif not hidden.isdisjoint(plain):
            found = of_later
        else:
            continue
        (found.answered if passage.answers else found.others).add(passage.id)
    named = " or ".join(splits.later(side))
    return {"scored": of_scored} | ({named: of_later} if named else {})


def counted(copies: dict[str, Copies], done: str) -> dict[str, int]:
    """Return the card's counts of :func:`find_copies`; ``done`` says what became of passages with answers."""
    answered = {f"answered passages equal to a {name} question, {done}": len(c.answered) for name, c in copies.items()}
    others = {f"passages without answer equal to a {name} question, kept": len(c.others) for name, c in copies.items()}
    return answered | others
