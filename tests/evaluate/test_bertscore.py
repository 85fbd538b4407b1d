"""BERTScore equals bert-score 0.3.13, encodes a text once, and gives an empty side 0 without a model."""

import json
import shutil
from pathlib import Path

import pytest

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError, MissingWeightsError
from graphcontext.evaluate import bertscore
from graphcontext.evaluate.bertscore import BERTScore

# Made by tests/evaluate/make_bertscore_golden.py (bert-score 0.3.13, embedded minilm, layer 6).
GOLDEN = json.loads(Path(__file__).with_name("bertscore_golden.json").read_text())
TEXTS = [(row["prediction"], row["reference"]) for row in GOLDEN]


def score(metric: BERTScore, *pairs: tuple) -> list[dict[str, float]]:
    """Score (prediction, reference, …) tuples."""
    questions = [Question(str(i), "how?", "corpus", tuple(refs)) for i, (_, *refs) in enumerate(pairs)]
    answers = [Prediction(str(i), "how?", text, ()) for i, (text, *_) in enumerate(pairs)]
    return metric.score(questions, answers, [], [])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    """A RoBERTa of three layers with random weights and a byte-level tokenizer trained on the pairs."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("tiny_roberta")
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator([a + " " + b for a, b in TEXTS], vocab_size=400, special_tokens=special)
    trained.save_model(str(folder))
    # add_prefix_space is saved since bert-score passes it to encode(), where transformers 5 ignores it.
    RobertaTokenizerFast(
        vocab=f"{folder}/vocab.json",
        merges=f"{folder}/merges.txt",
        model_max_length=64,
        add_prefix_space=True,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    config = RobertaConfig(**sizes, **ids, intermediate_size=64, max_position_embeddings=66, initializer_range=0.5)
    RobertaModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def _forget():
    yield
    bertscore.release()


def test_equals_bert_score_on_a_tiny_roberta(tiny):
    bert_score = pytest.importorskip("bert_score")
    predictions, references = zip(*TEXTS, strict=True)
    p, r, f1 = bert_score.score(
        list(predictions), list(references), model_type=tiny, num_layers=2, batch_size=1, device="cpu"
    )
    ours = score(BERTScore(tiny, None, 2, batch_size=4), *TEXTS)
    for row, *expected in zip(ours, f1.tolist(), p.tolist(), r.tolist(), strict=True):
        assert list(row.values()) == pytest.approx(expected, abs=2e-6)


@pytest.mark.needs_models
def test_equals_bert_score_on_minilm():
    ours = score(BERTScore("minilm", None, 6), *TEXTS)
    for row, golden in zip(ours, GOLDEN, strict=True):
        assert list(row.values()) == pytest.approx([golden["f1"], golden["p"], golden["r"]], abs=2e-6)


def test_t18_an_empty_side_scores_zero_before_any_model_is_looked_for():
    absent = BERTScore("./absent", None, 17)
    rows = score(absent, ("", "gold"), (" \n", "gold"), ("text", ""), ("text",))
    assert rows == [{"bertscore_f1": 0.0, "bertscore_p": 0.0, "bertscore_r": 0.0}] * 4
    with pytest.raises(MissingWeightsError, match=r"no weights: \./absent"):
        score(absent, ("text", "gold"))


def test_a_failed_prediction_scores_zero(tiny):
    question = Question("q", "how?", "corpus", ("gold",))
    failed = Prediction("q", "how?", "gold", (), status="failed", reason="length")
    [row] = BERTScore(tiny, None, 2).score([question], [failed], [], [])
    assert row["bertscore_f1"] == 0.0


def test_the_best_reference_counts_with_its_own_precision_and_recall(tiny):
    metric = BERTScore(tiny, None, 2)
    prediction, first, second = "install foo", "some random string", "install foo with apt"
    one, other, both = score(metric, (prediction, first), (prediction, second), (prediction, first, second))
    assert both == max(one, other, key=lambda row: row["bertscore_f1"])


def test_equal_texts_score_one(tiny):
    [row] = score(BERTScore(tiny, None, 2), ("install foo", "  install foo\n"))
    assert row == pytest.approx({"bertscore_f1": 1.0, "bertscore_p": 1.0, "bertscore_r": 1.0}, abs=1e-6)


def test_references_are_encoded_once_for_all_rows_of_a_table(tiny, monkeypatch):
    metric, seen = BERTScore(tiny, None, 2, batch_size=2), []
    forward = bertscore._Encoder._forward
    monkeypatch.setattr(bertscore._Encoder, "_forward", lambda self, b: seen.append(len(b)) or forward(self, b))
    alone = score(BERTScore(tiny, None, 2, batch_size=2), ("other words", "gold one"), ("gold one", "gold two"))
    bertscore.release()
    seen.clear()
    score(metric, ("text", "gold one"), ("text", "gold two"))
    assert sum(seen) == 3  # two references and one distinct prediction
    after = score(metric, ("other words", "gold one"), ("gold one", "gold two"))
    assert sum(seen) == 4  # one new prediction; the other is a reference too
    assert after == alone  # the same bytes, whatever row went before


def test_wrong_numbers_are_refused(tiny):
    with pytest.raises(InputError, match=r"num_layers=0: a whole number of at least 1"):
        BERTScore(tiny, None, 0)
    with pytest.raises(InputError, match=r"num_layers=9: the model has 3 layers"):
        score(BERTScore(tiny, None, 9), ("text", "gold"))


def test_t18_signature_names_model_layer_and_no_rescaling(tiny):
    signature = BERTScore(tiny, None, 2).signature
    name, weights = signature.split("|")[1].split("@")
    assert name.startswith("tiny_roberta") and len(weights) == 12
    assert signature.endswith("|L2|no-idf|no-rescale|bert-score 0.3.13")
    assert BERTScore("minilm", None, 6).signature.startswith("bertscore_f1|minilm@b9a0018dff09|L6|")


BASELINE = {"layer": 2, "precision": 0.25, "recall": 0.5, "f1": 0.4}


def test_rescaled_equals_bert_score_with_a_baseline(tiny, tmp_path):
    bert_score = pytest.importorskip("bert_score")
    file = tmp_path / "baseline.tsv"
    file.write_text("LAYER,P,R,F\n0,0.1,0.1,0.1\n1,0.1,0.1,0.1\n2,0.25,0.5,0.4\n3,0.1,0.1,0.1\n")
    predictions, references = map(list, zip(*TEXTS, strict=True))
    where = {"model_type": tiny, "num_layers": 2, "batch_size": 1, "device": "cpu", "lang": "en"}
    p, r, f1 = bert_score.score(predictions, references, rescale_with_baseline=True, baseline_path=str(file), **where)
    ours = score(BERTScore(tiny, None, 2, rescaled=True, baseline=BASELINE, batch_size=4), *TEXTS)
    for row, *expected in zip(ours, f1.tolist(), p.tolist(), r.tolist(), strict=True):
        assert list(row) == ["bertscore_f1_rescaled", "bertscore_p_rescaled", "bertscore_r_rescaled"]
        assert list(row.values()) == pytest.approx([max(0.0, x) for x in expected], abs=5e-6)


def test_no_answer_scores_below_one_that_failed(tiny):
    high = {"layer": 2, "precision": 0.999, "recall": 0.999, "f1": 0.999}
    rows = score(BERTScore(tiny, None, 2, True, high), ("install foo", "other words"), ("", "gold"))
    assert [set(row.values()) for row in rows] == [{0.0}, {0.0}]


def test_t18_rescaling_moves_chance_to_zero_and_an_empty_side_stays_there(tiny):
    raw = score(BERTScore(tiny, None, 2), ("install foo", "other words"), ("", "gold"))
    rescaled = score(BERTScore(tiny, None, 2, True, BASELINE), ("install foo", "other words"), ("", "gold"))
    for name, value in (("f1", "f1"), ("p", "precision"), ("r", "recall")):
        b = BASELINE[value]
        assert rescaled[0][f"bertscore_{name}_rescaled"] == pytest.approx((raw[0][f"bertscore_{name}"] - b) / (1 - b))
    assert set(rescaled[1].values()) == {0.0}
    at_chance = {**BASELINE, "f1": raw[0]["bertscore_f1"]}
    [row] = score(BERTScore(tiny, None, 2, True, at_chance), ("install foo", "other words"))
    assert row["bertscore_f1_rescaled"] == 0.0


def test_raw_and_rescaled_of_one_row_encode_it_once(tiny, monkeypatch):
    seen, forward = [], bertscore._Encoder._forward
    monkeypatch.setattr(bertscore, "MEMORY_LIMIT", 0)  # no token vectors are kept
    monkeypatch.setattr(bertscore._Encoder, "_forward", lambda self, b: seen.append(len(b)) or forward(self, b))
    texts = [("text", "gold one"), ("other", "gold two")]
    score(BERTScore(tiny, None, 2), *texts)
    count = sum(seen)
    score(BERTScore(tiny, None, 2, True, BASELINE), *texts)
    assert sum(seen) == count == 4


def test_t18_without_a_baseline_of_the_model_and_layer_rescaling_is_refused():
    with pytest.raises(InputError, match=r"no baseline of minilm at layer 6 is known .* bertscore=roberta_large"):
        BERTScore("minilm", None, 6, rescaled=True, baseline=None)
    with pytest.raises(InputError, match=r"no baseline of x at layer 3 is known"):
        BERTScore("x", None, 3, rescaled=True, baseline=BASELINE)
    with pytest.raises(InputError, match=r"layer, precision, recall and f1 are needed"):
        BERTScore("x", None, 3, baseline={"f1": 0.4})
    config = compose(["metric=[bertscore_f1,bertscore_f1_rescaled]"]).config  # minilm stands in at sample
    with pytest.raises(InputError, match=r"^metric\.bertscore_f1_rescaled: no baseline of minilm"):
        instantiate(config["metric"], "metric")


def test_t18_the_shipped_baseline_is_bert_scores_and_stands_in_the_signature():
    config = compose(["metric=[bertscore_f1_rescaled]", "scale=paper"]).config["metric"]["bertscore_f1_rescaled"]
    metric = instantiate(config, "metric")
    assert metric.signature.endswith("|L17|no-idf|rescaled by 0.83122575, at least 0|bert-score 0.3.13")
    bert_score = pytest.importorskip("bert_score")
    file = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / "roberta-large.tsv"
    rows = [line.split(",") for line in file.read_text().splitlines()]
    [found] = [row for row in rows if row[0] == "17"]
    assert rows[0] == ["LAYER", "P", "R", "F"]
    expected = dict(zip(("layer", "precision", "recall", "f1"), map(float, found), strict=True))
    assert config["baseline"] == expected


@pytest.mark.parametrize("names", [("tokenizer.json", "vocab.json", "merges.txt"), ("model.safetensors",)])
def test_a_folder_that_is_not_whole_is_refused(tiny, tmp_path, names):
    folder = shutil.copytree(tiny, tmp_path / "copy")
    for name in names:
        (folder / name).unlink(missing_ok=True)
    if names == ("model.safetensors",):
        (folder / names[0]).write_bytes(b"cut")
    with pytest.raises(InputError, match=r"copy(: model\.safetensors is damaged| lacks its tokenizer)"):
        score(BERTScore(str(folder), None, 2), ("a b", "a b"))
