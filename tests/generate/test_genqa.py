"""GenQA: candidates, the input they make, and what a model writes of it."""

from __future__ import annotations

import pytest

from graphcontext import api, prepare
from graphcontext.config import compose
from graphcontext.data.records import Answer, Context, Corpus, Passage, Question, Unit
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.generate import seq2seq_model
from graphcontext.generate.genqa import GenQA
from graphcontext.generate.seq2seq_model import Output, Seq2SeqModel
from tests.tiny_models import save_tiny_bart, save_tiny_t5

CORPUS = Corpus.of(
    (
        Passage("p1", "", "ports", "", answers=(Answer("use lsof", 9), Answer("use ss", 3, True))),
        Passage("p2", "", "files", "", answers=(Answer("lsof lists files", 1), Answer("list files", 2))),
        Passage("p3", "", "again", "", answers=(Answer("use ss", 1),)),
        Passage("p4", "", "text", "the answer is here"),
        Passage("p5", "", "empty", "", answers=(Answer(" ", 1),)),
    )
)
QUESTION = Question("q", "how do i list open ports", CORPUS.id, ("gold",))


@pytest.fixture(autouse=True)
def _free():
    yield
    seq2seq_model.free()


@pytest.fixture
def t5(tmp_path):
    return str(save_tiny_t5(tmp_path / "t5"))


@pytest.fixture
def seen(monkeypatch) -> list[str]:
    """Let the model write "use ss"; the list names what it reads."""
    texts: list[str] = []

    def write(self, inputs, decoding, batch_size):
        texts.extend(inputs)
        return [Output("use ss", "stop", 2) for _ in inputs]

    monkeypatch.setattr(Seq2SeqModel, "write", write)
    return texts


def context(*sources: str, **more) -> Context:
    return Context("q", tuple(Unit(s, s, s) for s in sources), **more)


def generate(generator: GenQA, *contexts: Context):
    return generator.generate([QUESTION] * len(contexts), contexts, {CORPUS.id: CORPUS})


def test_the_input_is_the_question_and_one_answer_of_each_thread(t5, seen):
    generate(GenQA(t5), context("p2", "p1", "triple", "p3", "p4"))
    # of p2 the one with most votes, of p1 the accepted one, which p3 repeats; p4 has no answers
    assert seen == ["how do i list open ports\nlist files\nuse ss\nthe answer is here"]


def test_the_best_candidates_are_kept(t5, seen):
    generate(GenQA(t5, n_candidates=1), context("p1", "p2"))
    assert seen == ["how do i list open ports\nuse ss"]


def test_answers_by_index_and_what_has_no_candidates(t5, seen):
    failed = context("p1", status="failed", reason="NaN")
    first, second, third, fourth = generate(GenQA(t5), context(), failed, context("p1"), context("p5"))
    assert (first.status, first.reason) == ("empty", "no answer in the retrieved threads")
    assert (second.status, second.reason) == ("failed", "context: NaN")
    assert (third.prediction, third.status, third.n_tokens, third.finish) == ("use ss", "ok", 2, "stop")
    assert third.references == ("gold",)
    assert (fourth.status, len(seen)) == ("empty", 1)


@pytest.mark.parametrize("save", [save_tiny_t5, save_tiny_bart])
def test_a_model_writes_and_a_cut_input_says_so(tmp_path, save):
    folder = str(save(tmp_path / "model"))
    every = [context("p1", "p2"), context("p4"), context("p2")]
    found = generate(GenQA(folder, max_source_length=60, max_target_length=5, beams=2), *every)
    assert [p.reason for p in found] == [None] * 3
    assert all(p.finish in ("stop", "length") and p.n_tokens <= 5 for p in found)
    alone = [generate(GenQA(folder, max_source_length=60, max_target_length=5, beams=2), c)[0] for c in every]
    assert alone == found
    (cut,) = generate(GenQA(folder, max_source_length=8, max_target_length=5), context("p1"))
    assert cut.reason == "input cut at 8 tokens"


def test_without_weights_it_says_that_none_are_public(t5):
    with pytest.raises(MissingWeightsError, match=r"GenQA has no public ones; name yours: generator\.model=FOLDER"):
        generate(GenQA(), context("p1"))
    config = compose(["experiment=gcg/genqa"]).config
    assert "GenQA has no public ones" in prepare.missing_models(config)
    with pytest.raises(MissingWeightsError, match=r"train them, and name their folder \(generator\.model=FOLDER\)"):
        prepare.check_ready(config)
    own = compose(["experiment=gcg/genqa", f"generator.model={t5}"]).config
    assert [m for m in prepare.missing_models(own) if m != "minilm"] == []
    assert (t5, None) in prepare.needed_models(own)


def test_the_weights_are_in_the_key(t5, tmp_path):
    other = str(save_tiny_t5(tmp_path / "other", seed=1))
    assert GenQA.identity({"model": t5})["weights"] != GenQA.identity({"model": other})["weights"]
    assert GenQA.identity({"model": None}) == {}


def test_wrong_values_are_named():
    for wrong, message in [
        ({"n_candidates": 0}, r"generator\.n_candidates=0"),
        ({"beams": 0}, "beams=0"),
        ({"max_source_length": 1}, "max_source_length=1"),
        ({"dtype": "int8"}, r"generator\.dtype=int8"),
    ]:
        with pytest.raises(InputError, match=message):
            GenQA("x", **wrong)


def test_a_run_counts_the_inputs_that_were_cut(t5, tmp_path):
    words = ["retriever=tfidf", "metric=[rouge1]", "dataset.limit=3", "generator.max_source_length=20"]
    given = [f"generator.model={t5}", "generator.max_target_length=4", *words]
    run = api.run("experiment=gcg/genqa", *given, root=tmp_path)
    answered = run.metrics["n"] - run.metrics["n_empty"]
    assert f"input cut at 20 tokens: {answered} of 3 questions" in run.summary()
    assert answered > 0 and run.metrics["n_failed"] == 0
