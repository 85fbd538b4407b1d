"""The sentence encoder on a tiny BERT built here, and on MiniLM where it is present."""

import json
import shutil

import numpy as np
import pytest

import graphcontext.retrieve.encoder as encoder_module
from graphcontext.data.records import Corpus, Passage
from graphcontext.errors import InputError, MissingWeightsError, RunError
from graphcontext.files import TEMPORARY
from graphcontext.retrieve import encoder as module
from graphcontext.retrieve import encoder_model
from graphcontext.retrieve.by_corpus import encode_pool
from graphcontext.retrieve.encoder import SentenceEncoder, warn_untrained
from graphcontext.store import Store, Workspace

TEXTS = ["mount a drive", "", "ssh key", "how do I mount a network drive at boot", "x"]


@pytest.fixture(autouse=True)
def _cache_short_calls_too(monkeypatch):
    monkeypatch.setattr(encoder_module, "CACHED_FROM", 1)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A BERT of 2 layers and 16 dimensions in a sentence-transformers folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(TEXTS * 3, trainers.WordPieceTrainer(vocab_size=80, special_tokens=specials))
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    BertModel(BertConfig(vocab_size=80, max_position_embeddings=32, **sizes)).save_pretrained(folder)
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [{"idx": i, "path": p, "type": f"sentence_transformers.models.{t}"} for i, (t, p) in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 8, "do_lower_case": True}))
    return folder


@pytest.fixture
def copy(tiny, tmp_path):
    return shutil.copytree(tiny, tmp_path / "copy")


def test_unit_rows_in_order(tiny):
    vectors = SentenceEncoder(str(tiny)).encode(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((5, 16), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(SentenceEncoder(str(tiny)).encode([text])[0], vector, atol=1e-6)
    assert SentenceEncoder(str(tiny)).encode([]).shape == (0, 16)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_equal_to_the_model_run_by_hand(tiny, pooling):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(str(tiny)), AutoModel.from_pretrained(str(tiny)).eval()
    with torch.inference_mode():
        hidden = model(**tokenizer("ssh key", return_tensors="pt")).last_hidden_state[0].numpy()
    expected = hidden.mean(axis=0) if pooling == "mean" else hidden[0]
    raw = SentenceEncoder(str(tiny), pooling=pooling, normalize=False).encode(["ssh key"])[0]
    np.testing.assert_allclose(raw, expected, atol=1e-6)


def test_the_folder_says_length_case_and_pooling(tiny, copy):
    model = encoder_model.load(tiny, "auto", None, "float32", "cpu")
    assert (model.pooling, model.max_length) == ("mean", 8)
    assert [len(t) for t in model.tokenise(["x " * 30])] == [8]
    encode = SentenceEncoder(str(tiny)).encode
    np.testing.assert_array_equal(encode(["SSH Key"]), encode(["ssh key"]))
    (copy / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    assert encoder_model.read_layout(copy).pooling == "cls"
    (copy / "modules.json").unlink()
    shutil.rmtree(copy / "1_Pooling")
    assert encoder_model.read_layout(copy).pooling == "mean"


def test_batch_size_and_dtype_keep_the_vectors(tiny):
    texts = [f"{t} {'drive ' * (n % 6)}" for n, t in enumerate(TEXTS * 9)]
    reference = SentenceEncoder(str(tiny), batch_size=1).encode(texts)
    for batch_size in (2, 7, 64):
        found = SentenceEncoder(str(tiny), batch_size=batch_size).encode(texts)
        np.testing.assert_allclose(found, reference, atol=1e-6)
    half = SentenceEncoder(str(tiny), dtype="bfloat16").encode(texts)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, reference, atol=0.05)


def test_prefixes_belong_to_their_side(tiny):
    encoder = SentenceEncoder(str(tiny), query_prefix="how do I ")
    np.testing.assert_array_equal(
        encoder.encode(["mount"], kind="query"), encoder.encode(["how do I mount"], kind="passage")
    )
    with pytest.raises(InputError, match="did you mean query"):
        encoder.encode(["mount"], kind="querry")


def bound(folder, root, **settings):
    encoder = SentenceEncoder(str(folder), **settings)
    encoder.bind(Workspace(Store(root)))
    return encoder


def test_t16_a_second_run_encodes_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARD", 4)
    texts = [f"drive {n}" for n in range(10)]
    first, second = bound(tiny, tmp_path), bound(tiny, tmp_path)
    vectors = first.encode(texts)
    assert first.n_encoded == 10
    again = second.encode(texts)
    assert second.n_encoded == 0
    assert isinstance(again, np.memmap)
    np.testing.assert_array_equal(vectors, again)
    np.testing.assert_allclose(vectors, SentenceEncoder(str(tiny)).encode(texts), atol=1e-6)
    kept = sorted(p.name for p in tmp_path.glob("embeddings/*/*"))
    assert kept == ["done.json", "vectors.npy"]  # the shards are joined


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_t16_a_kill_keeps_the_shards_that_were_written(tiny, tmp_path, monkeypatch, at):
    monkeypatch.setattr(module, "SHARD", 4)
    texts = [f"drive {n}" for n in range(10)]  # shards of 4, 4, 2
    undisturbed = bound(tiny, tmp_path / "other").encode(texts)

    killed = bound(tiny, tmp_path / "store")
    encode, join = killed._encode_shard, module._join

    def dying(shard):
        if killed.n_encoded == 4 * at:
            raise Killed
        return encode(shard)

    def dying_join(*arguments):
        raise Killed

    monkeypatch.setattr(killed, "_encode_shard", dying)
    monkeypatch.setattr(module, "_join", dying_join)
    with pytest.raises(Killed):
        killed.encode(texts)
    monkeypatch.setattr(module, "_join", join)

    resumed = bound(tiny, tmp_path / "store")
    vectors = resumed.encode(texts)
    assert resumed.n_encoded == max(0, 10 - 4 * at)
    assert vectors.tobytes() == undisturbed.tobytes()


def test_vectors_are_joined_under_the_lease_alone(tiny, tmp_path, monkeypatch):
    join, temporaries = module._join, []

    def late(paths, target, n):  # another has taken over while this process slept
        target.parent.with_name(f"{target.parent.name}.lock").write_text(json.dumps({"nonce": "other"}))
        return join(paths, target, n)

    def header(stream, about):
        temporaries.extend(tmp_path.glob("embeddings/*/.*"))
        write(stream, about)

    write = np.lib.format.write_array_header_1_0
    monkeypatch.setattr(np.lib.format, "write_array_header_1_0", header)
    monkeypatch.setattr(module, "_join", late)
    with pytest.raises(RunError, match="taken over"):
        bound(tiny, tmp_path).encode(["a", "b", "c"])
    assert not list(tmp_path.glob("embeddings/*/vectors.npy"))
    assert len(temporaries) == 1 and TEMPORARY.fullmatch(temporaries[0].name)  # it is swept after a kill


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:-70], lambda b: b[:40], lambda b: b"", lambda b: b"garbage" * 99, lambda b: b + b"more"],
)
def test_vectors_that_are_not_as_they_were_left_are_encoded_again(tiny, tmp_path, damage):
    first = np.array(bound(tiny, tmp_path).encode(["a", "b", "c"]))
    (file,) = tmp_path.glob("embeddings/*/vectors.npy")
    for unsaid in (False, True):
        file.write_bytes(damage(file.read_bytes()))
        if unsaid:  # joined, but not finished
            file.with_name("done.json").unlink()
        again = bound(tiny, tmp_path)
        np.testing.assert_array_equal(again.encode(["a", "b", "c"]), first)
        assert again.n_encoded == 3


def test_a_shard_that_is_no_array_is_encoded_again(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARD", 4)
    texts = [f"drive {n}" for n in range(10)]
    undisturbed = np.array(bound(tiny, tmp_path).encode(texts))
    (folder,) = tmp_path.glob("embeddings/*/")
    for file in folder.iterdir():
        file.unlink()
    (folder / "shard-00000.npy").write_bytes(b"garbage")
    np.save(folder / "shard-00001.npy", undisturbed[4:8])
    np.save(folder / "shard-00002.npy", undisturbed[:1])  # of another run's length
    resumed = bound(tiny, tmp_path)
    np.testing.assert_array_equal(resumed.encode(texts), undisturbed)
    assert resumed.n_encoded == 4 + 2


def test_passages_of_several_corpora_are_encoded_once(tiny, tmp_path):
    """Two corpora of three texts share one: five distinct texts are encoded, and each corpus gets its rows."""
    texts = [["a", "b", "ssh key"], ["x", "ssh key", "mount a drive"]]
    corpora = {name: Corpus(name, tuple(Passage(t, "", t, t) for t in part)) for name, part in zip("pq", texts)}
    encoder = bound(tiny, tmp_path)
    encode_pool(encoder, corpora)
    encode_pool(encoder, corpora)
    assert encoder.n_encoded == 5
    found = [encoder.encode(part) for part in texts]
    assert encoder.n_encoded == 5
    alone = bound(tiny, tmp_path / "other")
    assert all(np.allclose(rows, alone.encode(part), atol=1e-6) for rows, part in zip(found, texts))
    encoder.encode(["a", "new"])  # one that is not in the pool: both are encoded
    assert encoder.n_encoded == 7


def test_t12_other_texts_prefixes_and_settings_are_other_artefacts(tiny, tmp_path):
    count = lambda: len(list(tmp_path.glob("embeddings/*/done.json")))  # noqa: E731
    bound(tiny, tmp_path).encode(["a", "b"])
    bound(tiny, tmp_path, batch_size=1).encode(["a", "b"])  # execution: the same
    bound(tiny, tmp_path, query_prefix="q").encode(["a", "b"])  # a passage: the same
    assert count() == 1
    bound(tiny, tmp_path).encode(["b", "a"])
    bound(tiny, tmp_path, passage_prefix="p").encode(["a", "b"])
    bound(tiny, tmp_path, pooling="cls").encode(["a", "b"])
    assert count() == 4


def test_a_model_is_loaded_once_and_freed(tiny):
    encoder_model.free()
    SentenceEncoder(str(tiny)).encode(["a"])
    SentenceEncoder(str(tiny), query_prefix="q").encode(["a"], kind="query")
    assert len(encoder_model._LOADED) == 1
    encoder_model.free()
    assert not encoder_model._LOADED


@pytest.mark.parametrize("missing", ["model.safetensors", "config.json", "1_Pooling/config.json"])
def test_a_folder_that_lacks_a_file_is_named(copy, missing):
    (copy / missing).unlink()
    with pytest.raises(InputError, match=f"lacks .*{missing.split('/')[0].split('.')[0]}"):
        SentenceEncoder(str(copy)).encode(["a"])


def test_weights_that_are_missing_are_an_error_not_random(copy):
    from safetensors.numpy import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"1 weights are missing, such as encoder\.layer\.1\.output\.dense\.weight"):
        SentenceEncoder(str(copy)).encode(["a"])


def test_weights_of_another_shape_are_an_error_not_random(copy):
    from safetensors.numpy import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.1.output.dense.weight"] = np.zeros((3, 3), np.float32)
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"1 weights have another shape .* encoder\.layer\.1\.output"):
        SentenceEncoder(str(copy)).encode(["a"])


def test_a_folder_without_tokenizer_files_is_refused(copy):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (copy / name).unlink()
    with pytest.raises(InputError, match=r"lacks its tokenizer \(tokenizer\.json"):
        SentenceEncoder(str(copy)).encode(["a"])


@pytest.mark.parametrize("n_bytes", [0, 5, 2000])
def test_cut_weights_are_one_line(copy, n_bytes):
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:n_bytes])
    with pytest.raises(InputError, match=r"copy: model\.safetensors is damaged .*; fetch it again") as caught:
        SentenceEncoder(str(copy)).encode(["a"])
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_finite_name_the_folder_not_the_dtype(copy):
    from safetensors.numpy import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.1.output.dense.weight"][:] = np.nan
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"not finite, so the weights are damaged: fetch the model again"):
        SentenceEncoder(str(copy)).encode(["a"])
    with pytest.raises(RunError, match=r"not finite in bfloat16; try encoder\.dtype=float32"):
        SentenceEncoder(str(copy), dtype="bfloat16").encode(["a"])


def test_other_pooling_and_steps_are_refused(copy):
    (copy / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(InputError, match="pooling_mode_max_tokens"):
        SentenceEncoder(str(copy)).encode(["a"])
    (copy / "modules.json").write_text(json.dumps([{"path": "", "type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(InputError, match="names a Dense step"):
        SentenceEncoder(str(copy)).encode(["a"])


def test_a_model_that_is_not_here_is_missing_weights():
    with pytest.raises(MissingWeightsError, match="no weights: example/absent"):
        SentenceEncoder("example/absent").encode(["a"])


@pytest.mark.parametrize("wrong", [{"pooling": "men"}, {"dtype": "int8"}, {"batch_size": 0}, {"max_length": 1}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=f"encoder.{next(iter(wrong))}="):
        SentenceEncoder("minilm", **wrong)


@pytest.mark.needs_models
def test_minilm_similarities():
    encoder = SentenceEncoder("minilm")
    texts = [
        "How do I find which process is using a port?",
        "Which program listens on port 8080?",
        "What is the best recipe for apple pie?",
        "How do I find which process is using a port? " * 20,
        "",
    ]
    vectors = encoder.encode(texts)
    assert vectors.shape == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    cosines = vectors @ vectors[0]
    assert cosines[1] > 0.55 > 0.2 > cosines[2]
    alone = np.concatenate([encoder.encode([t]) for t in texts])
    np.testing.assert_allclose(vectors, alone, atol=1e-6)
    one_by_one = SentenceEncoder("minilm", batch_size=1).encode(texts)
    np.testing.assert_allclose(vectors, one_by_one, atol=1e-6)


def test_trained_weights_take_the_models_place(tiny, copy):
    import torch
    from safetensors.torch import load_file, save_file

    file = copy / "model.safetensors"
    save_file({name: torch.flip(w, [0]) for name, w in load_file(file).items()}, file, metadata={"format": "pt"})
    plain, trained = SentenceEncoder(str(tiny)), SentenceEncoder(str(tiny), weights=str(copy))
    np.testing.assert_array_equal(trained.encode(TEXTS), SentenceEncoder(str(copy)).encode(TEXTS))
    assert np.abs(trained.encode(TEXTS) - plain.encode(TEXTS)).max() > 1e-3


def test_a_missing_or_damaged_folder_of_weights_is_one_line(tiny, copy, tmp_path):
    with pytest.raises(MissingWeightsError, match=r"encoder\.weights=.*gone: no such folder"):
        SentenceEncoder(str(tiny), weights=str(tmp_path / "gone")).encode(["x"])
    whole = (copy / "model.safetensors").read_bytes()
    for spoil in (whole[: len(whole) // 2], None):
        (copy / "model.safetensors").unlink()
        if spoil is not None:
            (copy / "model.safetensors").write_bytes(spoil)
        encoder_model.free()
        with pytest.raises(InputError, match=r"model\.safetensors") as caught:
            SentenceEncoder(str(tiny), weights=str(copy)).encode(["x"])
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"encoder\.weights=3; allowed: a folder, a training experiment, or null"):
        SentenceEncoder(str(tiny), weights=3)


def test_the_hash_of_trained_weights_leaves_curves_and_manifests_out(tiny, copy):
    from graphcontext.models import trained_identity

    before = trained_identity(str(copy))
    (copy / "metrics.csv").write_text("step,loss")
    (copy / "checkpoints").mkdir()
    (copy / "checkpoints" / "last.pt").write_bytes(b"x")
    assert trained_identity(str(copy)) == before == trained_identity(str(tiny))
    (copy / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    assert trained_identity(str(copy)) != before
    assert trained_identity("/nowhere") == "unresolved:/nowhere"


@pytest.mark.parametrize(
    "name",
    [
        *("modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config.json"),
        *("tokenizer.json", "tokenizer_config.json", "model.safetensors", "model.safetensors.index.json"),
        *("model-00001-of-00002.safetensors", "pytorch_model-00001-of-00002.bin"),
    ],
)
def test_the_hash_of_trained_weights_is_of_all_that_is_read(copy, name):
    from graphcontext.models import trained_identity

    if not (copy / name).exists():
        (copy / name).write_bytes(b"1")
    before = trained_identity(str(copy))
    (copy / name).write_bytes((copy / name).read_bytes() + b" ")
    assert trained_identity(str(copy)) != before


def test_an_encoder_that_was_not_trained_on_two_hops_is_told(caplog):
    warn_untrained(SentenceEncoder("minilm"), "agent=mdr")
    assert caplog.messages == ["agent=mdr: minilm was not trained on two hops, as the paper's is: encoder=mdr"]
    warn_untrained(SentenceEncoder("minilm", weights="trained/mdr"), "agent=mdr")
    assert len(caplog.messages) == 1
