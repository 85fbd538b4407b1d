"""The contrastive loss by hand, and whole trainings of a tiny BERT: same bits after a kill, same loss in parts."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal

import numpy as np
import pytest
import torch

from graphcontext import api
from graphcontext.component import components, fingerprint
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.keys import keys
from graphcontext.retrieve import encoder_model
from graphcontext.retrieve.encoder import SentenceEncoder
from graphcontext.train.bi_encoder import Asked, BiEncoder
from graphcontext.train.contrast import Contrast, contest, scores, texts_of
from graphcontext.train.encoder_base import EncoderBase
from graphcontext.train.together import build
from graphcontext.train.trained import TARGET
from tests.tiny_models import save_tiny_bert
from tests.train import tiny

A, B, C, N = (1, 5), (2, 6), (3, 7), (4, 8)  # passages, as token ids
SHORT = (
    *("trainer=cpu", "trainer.wandb=disabled", "trainer.pairs=8", "trainer.held_out=3", "trainer.batch_size=4"),
    *("trainer.epochs=2.0", "trainer.learning_rate=0.003"),
)


def example(name, targets, golds, queries=None):
    queries = tuple((ord(name), n) for n in range(len(targets))) if queries is None else queries
    return Contrast(name, queries, tuple(targets), tuple(golds), (), 0)


class TestLoss:
    def test_by_hand(self):
        # s = 2; dot products of q0 with a, b, c: 1 0 1; of q1: 0 1 1, of which c is gold for its question
        queries, candidates = torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[1.0, 0], [0, 1], [1, 1]])
        found = scores(queries, candidates, 2.0, [(1, 2)])
        loss = torch.nn.functional.cross_entropy(found, torch.tensor([0, 1]), reduction="sum")
        e = math.exp(2)
        assert loss.item() == pytest.approx(-math.log(e / (e + 1 + e)) - math.log(e / (1 + e)), abs=1e-6)

    def test_what_is_gold_for_a_question_is_no_negative_of_it_whoever_brought_it(self):
        # B is another gold passage of "a", the target of "b", and drawn for "c", for which it is not gold
        found = contest([example("a", [A], [A, B]), example("b", [B], [B]), example("c", [C], [C])], [B, N])
        assert found.candidates == (A, B, C, N) and found.targets == (0, 1, 2)
        assert found.barred == ((0, 1),)

    def test_mdr_both_hops_meet_all_passages_but_the_other_gold_one(self):
        found = contest([example("a", [A, B], [A, B])], [N])
        assert found.candidates == (A, B, N) and found.targets == (0, 1)
        assert found.barred == ((0, 1), (1, 0))

    def test_the_order_of_a_batch_changes_nothing(self):
        examples = [example("a", [A], [A, B]), example("b", [B], [B]), example("c", [C], [C])]
        drawn = [N, A, B]
        first = contest(examples, drawn)
        for seed in range(5):
            random.Random(seed).shuffle(examples)
            random.Random(seed).shuffle(drawn)
            again = contest(examples, drawn)
            assert again == first and texts_of([again]) == texts_of([first])


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    corpora = api.compose("dataset=multihop_sample", "generator=none", "retriever=none", "metric=[]").config
    from graphcontext.component import instantiate

    loaded = instantiate(corpora["dataset"]).load("train")
    texts = sorted({p.match_text for corpus in loaded.corpora.values() for p in corpus.passages})
    return save_tiny_bert(tmp_path_factory.mktemp("models") / "bert", texts)


def words(bert, kind="mdr", *more):
    return [f"experiment=kgp/train_{kind}", f"encoder.model={bert}", *SHORT, *more]


def read(folder, pattern):
    return [path.read_text() for path in folder.glob(pattern)]


def refused(*said, match):
    with pytest.raises(InputError, match=match) as caught:
        api.train(*said)
    assert "\n" not in str(caught.value)


def test_what_is_cut_is_told_with_the_prefix_that_took_the_room(bert):
    config = tiny.composed(*words(bert, "dpr"))
    settings, adapter = build(config)
    asked = Asked("q/1", ("who came here and when did they go",), ("a",), ("a",), ("b",))
    for prefix, cut in (("", 0), ("question ", 1)):
        loss = BiEncoder(1, negatives=1, scale=20.0, question_tokens=64, passage_tokens=64, joiner="\n")
        base = EncoderBase({**config["encoder"], "query_prefix": prefix}, adapter, settings, loss)
        loss.question_tokens = n = len(base.tokenizer(asked.queries[0])["input_ids"])
        made = base.encode([asked], settings)
        assert (made.cut, len(made.examples[0].queries[0])) == (cut, n)


def test_a_training_without_a_second_candidate_is_refused(bert):
    refused(
        *words(bert, "dpr", "bi_encoder.negatives=0", "trainer.batch_size=1"),
        match="^bi_encoder.negatives=0 with trainer.batch_size=1: ",
    )


class TestTraining:
    @pytest.fixture(scope="class")
    def done(self, bert, tmp_path_factory):
        return api.train(*words(bert, "mdr", "trainer.epochs=10.0"), root=tmp_path_factory.mktemp("done"))

    def test_the_loss_falls_and_held_out_loss_and_mrr_stand_beside_it(self, done):
        losses = [float(row["loss"]) for row in tiny.metrics(done.path)[1:]]
        assert len(losses) == 20 and sum(losses[-4:]) < 0.8 * sum(losses[:4])
        ranked = done.facts["held_out_mrr"]
        assert done.facts["held_out_loss"]["base"] > 0 and 0 < ranked["base"] <= 1 and 0 < ranked["kept"] <= 1
        assert {row["held_out_mrr"] for row in tiny.metrics(done.path)} > {""}
        assert any("held-out MRR" in line for line in done.lines())

    def test_the_folder_is_an_encoder_whose_held_out_loss_and_mrr_are_those_measured(self, done, bert):
        """By numpy, with the vectors that a run would compute: two hops, each over the question's own corpus."""
        from graphcontext.component import instantiate

        config = api.compose("dataset=multihop_sample", "split=validation", "dataset.limit=3", "metric=[]").config
        dataset = instantiate(config["dataset"])
        loaded = dataset.load("validation")
        encoder = SentenceEncoder(str(bert), weights=str(done.path))
        total, ranks = 0.0, []
        questions = dataset.select(loaded.questions)
        for question in questions:
            texts = {p.id: p.match_text for p in loaded.corpora[question.corpus_id].passages}
            golds = [texts[support] for support in question.supports]
            others = [text for text in dict.fromkeys(texts.values()) if text not in golds]
            for hop in range(2):
                query = encoder.encode(["\n".join([question.text, *golds[:hop]])], kind="query")[0]
                found = 20 * encoder.encode([golds[hop], *others]) @ query
                total += float(np.log(np.exp(found - found.max()).sum()) + found.max() - found[0])
                ranks.append(int((found >= found[0] - 1e-4).sum()))
        assert total / len(questions) == pytest.approx(done.facts["held_out_loss"]["best"], abs=1e-3)
        assert np.mean([1 / rank for rank in ranks]) == pytest.approx(done.facts["held_out_mrr"]["kept"], abs=0.05)

    def test_its_layout_is_that_of_sentence_transformers(self, done):
        kinds = [step["type"].rpartition(".")[2] for step in json.loads((done.path / "modules.json").read_text())]
        assert kinds == ["Transformer", "Pooling", "Normalize"]
        assert json.loads((done.path / "1_Pooling" / "config.json").read_text())["pooling_mode_mean_tokens"] is True
        assert json.loads((done.path / "sentence_bert_config.json").read_text())["max_seq_length"] == 32

    def test_in_several_passes_it_learns_the_same(self, bert, tmp_path):
        """Gradients by way of cached vectors are those of the whole batch: without dropout but for rounding."""
        still = shutil.copytree(bert, tmp_path / "still")
        about = json.loads((still / "config.json").read_text())
        dropped = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        (still / "config.json").write_text(json.dumps(about | dropped))
        found = []
        for micro in (4, 2, 1):
            said = words(still, "dpr", f"trainer.micro_batch_size={micro}", "trainer.keep=last")
            path = api.train(*said, root=tmp_path / str(micro)).path
            found.append([(float(row["loss"]), float(row["gradient_norm"])) for row in tiny.metrics(path)[1:]])
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-3)

    def test_a_plain_transformer_becomes_an_encoder_of_its_first_token(self, bert, tmp_path):
        plain = shutil.copytree(bert, tmp_path / "plain")
        for name in ("modules.json", "sentence_bert_config.json"):
            (plain / name).unlink()
        shutil.rmtree(plain / "1_Pooling")
        more = ("encoder.pooling=cls", "encoder.normalize=false", "bi_encoder.scale=1.0", "trainer.max_steps=1")
        path = api.train(*words(plain, "dpr", *more), root=tmp_path).path
        layout = encoder_model.read_layout(path)
        assert (layout.pooling, layout.max_length, layout.lower_case) == ("cls", 64, False)
        assert not (path / "2_Normalize").exists()
        by_name = SentenceEncoder(str(path), normalize=False).encode(["who wrote it"])
        as_weights = SentenceEncoder(str(plain), pooling="cls", normalize=False, weights=str(path))
        np.testing.assert_array_equal(as_weights.encode(["who wrote it"]), by_name)

    def test_told_to_stop_while_the_base_is_measured_it_does_not_go_on(self, bert, tmp_path, monkeypatch):
        real, seen = EncoderBase.embed, []

        def embed(*given):
            seen.append(given)
            os.kill(os.getpid(), signal.SIGTERM)
            return real(*given)

        monkeypatch.setattr(EncoderBase, "embed", embed)
        stopped = api.train(*words(bert, "mdr"), root=tmp_path)
        assert stopped.stopped_by == signal.SIGTERM and stopped.said == ("stopped at step 0 of 4",) and len(seen) == 1

    def test_adapter_none_measures_the_untrained_encoder(self, bert, done, tmp_path):
        base = api.train(*words(bert, "mdr", "adapter=none"), root=tmp_path)
        assert base.facts["held_out_loss"]["base"] == pytest.approx(done.facts["held_out_loss"]["base"], abs=1e-5)
        assert not (base.path / "model.safetensors").exists()


@pytest.mark.end_to_end
def test_t25_stopped_and_killed_it_ends_in_the_same_bits(warm, bert, tmp_path):
    hard = words(bert, "mdr", "trainer.micro_batch_size=2", "trainer.checkpoint_minutes=1e-9")
    whole = warm.start(tmp_path / "whole", "train", "--quiet", *hard)
    assert whole.wait() == 0, whole.err
    for number, step, code in ((signal.SIGTERM, 0, 143), (signal.SIGKILL, 2, -9)):
        command = warm.start(tmp_path / "cut", "train", *hard, blow=(int(number), step, "step"))
        assert command.wait() == code, command.err
    last = warm.start(tmp_path / "cut", "train", *hard)
    assert last.wait() == 0, last.err
    assert "going on after step 2" in last.err
    cut, undisturbed = tiny.folder_of(tmp_path / "cut"), tiny.folder_of(tmp_path / "whole")
    assert tiny.metrics(cut) == tiny.metrics(undisturbed) and len(tiny.metrics(cut)) == 5
    for name in ("model.safetensors", "loss.png", "tokenizer.json"):
        assert (cut / name).read_bytes() == (undisturbed / name).read_bytes(), name


class TestRefused:
    def test_what_does_not_fit_together(self, bert):
        refused(*words(bert, "dpr", "adapter=lora"), match=r"^adapter=lora: an encoder is trained whole; adapter=full")
        two = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2")
        refused(*words(bert, "dpr", *two), match=r"^trainer\.data=bi_encoder trains in one process \(every passage")
        refused(*words(bert, "dpr", "bi_encoder.hops=0"), match=r"^bi_encoder\.hops=0; allowed: 1 and more")
        trained = r"a training starts from the model; encoder\.weights=null"
        refused(*words(bert, "dpr", f"encoder.weights={bert}"), match=trained)

    def test_an_encoder_is_no_adapter_and_no_adapter_an_encoder(self):
        with pytest.raises(InputError, match=r"llm\.adapter=kgp/train_dpr trains an encoder: encoder\.weights=kgp/"):
            api.compose("llm.adapter=kgp/train_dpr")
        with pytest.raises(InputError, match=r"encoder\.weights=gcg/sft trains a language model: llm\.adapter=gcg/sft"):
            api.compose("encoder.weights=gcg/sft")
        with pytest.raises(MissingWeightsError, match=r"encoder\.weights=kgp/train_dpt: neither .*did you mean kgp/"):
            api.compose("encoder.weights=kgp/train_dpt")

    def test_t40_a_run_never_trains(self, tmp_path):
        with pytest.raises(MissingWeightsError, match=r"not trained yet: graphcontext train experiment=kgp/train_dpr "):
            api.run("experiment=kgp/dpr", "generator=none", root=tmp_path)


def test_the_trainings_base_is_the_encoder_that_takes_its_weights(bert):
    config = api.compose("experiment=kgp/dpr", "generator=none", f"encoder.model={bert}").config
    (node,) = {json.dumps(n, sort_keys=True) for n in components(config["retriever"]) if n["_target_"] == TARGET}
    assert json.loads(node)["overrides"] == ["scale=sample", f"encoder.model={bert}"]


def test_a_run_follows_the_bytes_of_its_weights(bert, tmp_path):
    said = ["experiment=kgp/dpr", "generator=none", "dataset.limit=3", f"encoder.model={bert}"]
    config = api.compose(*said).config
    (node,) = [n for n in components(config["retriever"]["encoder"]) if n["_target_"] == TARGET]
    before = keys(config)
    done = api.train(f"experiment={node['experiment']}", *node["overrides"], "trainer.wandb=disabled", root=tmp_path)
    assert keys(api.compose(*said).config) == before  # known before it was there
    run = api.run(*said, root=tmp_path)
    name = f"adapter:kgp/train_dpr:{done.path.name[:12]}"
    assert run.manifest["stages"][name]["content"] and "encoder kgp/train_dpr: full" in run.summary()
    untrained = api.run(*said, "encoder.weights=null", root=tmp_path)
    assert [r.passages for r in untrained.rankings()] != [r.passages for r in run.rankings()]
    other = api.run(*said, f"encoder.weights={done.path}", root=tmp_path)  # as a folder
    assert [r.passages for r in other.rankings()] == [r.passages for r in run.rankings()]
    graph = ("experiment=kgp/neighbourhood", "graph=knn_mdr", "graph.k=2", "encoder.weights=kgp/train_dpr")
    near = api.run(*graph, "dataset.limit=3", f"encoder.model={bert}", root=tmp_path)
    (built,) = [known["inputs"] for known in map(json.loads, read(tmp_path / "store" / "graph", "*/done.json"))]
    assert near.manifest["stages"][name]["content"] == built[name]  # the graph is made from these very bytes


def test_without_weights_no_key_changes():
    node = {"_target_": "graphcontext.retrieve.encoder.SentenceEncoder", "model": "minilm", "revision": None}
    assert fingerprint(node | {"weights": None}) == fingerprint(node)
    assert fingerprint(node | {"weights": "/nowhere"}) != fingerprint(node)


@pytest.mark.slow
@pytest.mark.needs_models
def test_minilm_learns_the_held_out_questions_of_the_sample(tmp_path):
    done = api.train("experiment=kgp/train_mdr", "trainer.wandb=disabled", root=tmp_path)
    held, ranked = done.facts["held_out_loss"], done.facts["held_out_mrr"]
    assert held["best"] < held["base"] and ranked["kept"] >= ranked["base"]
