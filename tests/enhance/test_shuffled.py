"""The control of other passages' triples: as many, never the own, drawn by seed and question alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.enhance.shuffled import Shuffled
from graphcontext.enhance.triples import Extraction
from graphcontext.store import Store, Workspace

CORPUS = Corpus("c", tuple(Passage(f"p{i}", "", "", f"text {i}") for i in range(9)))


class Extractor:
    """Passage p3 says "p3 has a.", "p3 has b." and what every passage says: "all have z."."""

    name = "stub"

    def __init__(self, repeatable: bool = True, **faults: Extraction):
        self.repeatable, self.faults, self.asked = repeatable, faults, []

    def extract(self, passages):
        self.asked += [p.id for p in passages]
        return [self.faults.get(p.id, said(p.id)) for p in passages]


def said(name: str) -> Extraction:
    return Extraction(((name, "has", "a"), (name, "has", "b"), ("all", "have", "z")))


def enhance(extractor, *ranked: str, seed: int = 0, sample_index: int = 0, names: str = "qrstu", **options):
    questions = [Question(name, "?", "c") for name, _ in zip(names, ranked)]
    rankings = [Ranking(q.id, tuple(Scored(p, 1.0) for p in ids.split())) for q, ids in zip(questions, ranked)]
    control = Shuffled(extractor, **options)
    control.bind(Workspace(Store("store"), seed=seed, sample_index=sample_index))
    return control.enhance(questions, rankings, {"c": CORPUS})


def facts(context):
    return [u.text for u in context.units if u.source == "shuffled"]


def test_as_many_sentences_of_passages_that_were_not_ranked() -> None:
    # own: p0 has a, p0 has b, all have z → 3; the first drawn passage gives two (z is its own too), the second one
    (context,) = enhance(Extractor(), "p0")
    assert [u.text for u in context.units][:1] == ["text 0"] and len(facts(context)) == 3
    heads = [fact.split()[0] for fact in facts(context)]
    assert heads[0] == heads[1] != heads[2] and "p0" not in heads and "all" not in heads
    assert (context.status, context.reason, context.retry) == ("ok", None, None)


def test_seed_sample_and_question_decide_and_nothing_else() -> None:
    (one,) = enhance(Extractor(), "p0")
    assert one == enhance(Extractor(), "p0", "p1 p2")[0]  # whatever is asked beside it: chunks change nothing
    assert one == enhance(Extractor(), "p1 p2", "p0", names="rq")[1]
    draws = [enhance(Extractor(), "p0", **more)[0] for more in ({"seed": 1}, {"sample_index": 1}, {"names": "r"})]
    assert len({tuple(facts(c)) for c in [one, *draws]}) == 4
    assert Shuffled.draws({})


def test_fewer_than_its_own_is_counted() -> None:
    (context,) = enhance(Extractor(), "p0", most_passages=1)  # two new sentences for three
    assert (len(facts(context)), context.reason) == (2, "fewer triples than its own")
    (whole,) = enhance(Extractor(), " ".join(f"p{i}" for i in range(9)))  # all are ranked: none is left
    assert (facts(whole), whole.reason) == ([], "fewer triples than its own")


def test_t15_a_context_without_triples_gets_none() -> None:
    extractor = Extractor(p0=Extraction(status="empty"))
    one, none = enhance(extractor, "p0", "")
    assert (facts(one), one.reason, extractor.asked) == ([], "no triples", ["p0"])
    assert (none.units, none.reason) == ((), None)


def test_a_fault_that_may_pass_is_tried_again() -> None:
    failed = {f"p{i}": Extraction(status="failed", reason="HTTP 500") for i in range(1, 9)}
    (context,) = enhance(Extractor(repeatable=False, **failed), "p0")
    assert (facts(context), context.retry) == ([], True)


@given(st.lists(st.lists(st.integers(0, 8), max_size=4, unique=True), max_size=4), st.integers(0, 3))
def test_never_more_than_its_own_and_none_of_them(ranked: list[list[int]], seed: int) -> None:
    words = [" ".join(f"p{i}" for i in ids) for ids in ranked]
    for ids, context in zip(ranked, enhance(Extractor(), *words, seed=seed)):
        own = 2 * len(ids) + 1 if ids else 0
        heads = {fact.split()[0] for fact in facts(context)}
        assert len(facts(context)) <= own and not heads & {"all", *(f"p{i}" for i in ids)}
