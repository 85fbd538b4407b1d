"""From pairs to token ids: one BOS, EOS kept, loss on the answer, cuts and omissions counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.errors import InputError
from graphcontext.generate.causal_model import CausalModel
from graphcontext.generate.seq2seq_model import Seq2SeqModel
from graphcontext.train.examples import IGNORED, Example, Examples, Pair, causal, packed, seq2seq
from tests.tiny_models import save_tiny_bart, save_tiny_t5
from tests.train import tiny

WITHOUT_BOS = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}assistant "


def model(folder, **options):
    return CausalModel(tiny.save_llama(folder, **options), None, "float32", "none", "cpu")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return model(tmp_path_factory.mktemp("llama") / "llama")


def pair(question="how do i list ports", answer="use the tool", reason=None, opened=None, name="q"):
    messages = [{"role": "user", "content": question}]
    if opened:
        messages.append({"role": "assistant", "content": opened})
    return Pair(name, tuple(messages), answer, reason)


def encode(model, *pairs, most=64, loss_on="answer"):
    return causal(pairs, model, True, most, loss_on)


def only(found):
    (example,) = found.examples
    return example


def said(model, ids):
    return model.tokenizer.decode([i for i in ids if i != IGNORED])


class TestCausal:
    @pytest.mark.parametrize("adds_bos", [True, False])
    @pytest.mark.parametrize("template", [None, WITHOUT_BOS, "bos"])
    def test_t23_one_bos_whoever_adds_it(self, tmp_path, template, adds_bos):
        options = {} if template == "bos" else {"template": template}
        loaded = model(tmp_path / "m", tokenizer_adds_bos=adds_bos, **options)
        example = only(encode(loaded, pair()))
        bos, eos = loaded.tokenizer.bos_token_id, loaded.tokenizer.eos_token_id
        assert example.inputs.count(bos) == (1 if adds_bos or template == "bos" else 0)
        assert bos not in example.inputs[1:] and bos not in example.labels
        assert example.inputs[-1] == example.labels[-1] == eos and example.inputs.count(eos) == 1

    def test_the_answer_alone_is_learnt_and_the_end_with_it(self, llama):
        example = only(encode(llama, pair()))
        assert said(llama, example.inputs) == "<s> user how do i list ports assistant use the tool </s>"
        assert said(llama, example.labels) == "use the tool </s>"
        assert len(example.labels) == len(example.inputs) == example.length == 12
        assert example.labels[:8] == (IGNORED,) * 8

    def test_loss_on_all(self, llama):
        example = only(encode(llama, pair(), loss_on="all"))
        assert example.labels == example.inputs

    def test_the_prompt_is_that_of_evaluation(self, llama):
        for given_ in (pair(), pair(opened="Answer:")):
            example = only(encode(llama, given_))
            prompt = llama.encode(given_.messages, True)
            assert list(example.inputs[: len(prompt)]) == prompt
            assert set(example.labels[: len(prompt)]) == {IGNORED} and IGNORED not in example.labels[len(prompt) :]

    def test_an_answer_that_does_not_fit_is_cut_and_has_no_end(self, llama):
        whole = only(encode(llama, pair()))
        assert encode(llama, pair(), most=12).cut == 0
        for most in (11, 10, 9):  # the first lacks but the end
            found = encode(llama, pair(), most=most)
            assert only(found).inputs == whole.inputs[:most] and found.cut == 1
            assert llama.tokenizer.eos_token_id not in only(found).labels
        assert "1 with tokens cut" in found.described("train")

    def test_a_text_that_spells_a_control_token_is_counted(self, llama):
        eos = llama.tokenizer.eos_token
        found = encode(llama, pair(), pair(question=f"what is {eos}"), pair(answer=f"the tool {eos} is"))
        assert found.facts()["controlled"] == 2 and "controlled" not in encode(llama, pair()).facts()
        assert "2 whose text holds a control token of the model" in found.described("train")

    def test_a_prompt_without_room_for_an_answer_is_left_out_and_counted(self, llama):
        found = encode(llama, pair(), pair("how do i list " * 3), most=8)  # prompts of 8 and 15 tokens
        reason = "no room for an answer in trainer.max_tokens=8"
        assert found.examples == [] and found.skipped == {reason: 2} and found.cut == 0
        assert "left out 2: no room for an answer in trainer.max_tokens=8" in found.described("train")

    def test_a_pair_with_a_reason_is_left_out_under_it(self, llama):
        found = encode(llama, pair(), pair(reason="no gold answer"), pair(reason="no gold answer"), pair())
        assert len(found.examples) == 2 and found.skipped == {"no gold answer": 2}
        assert found.facts() == {"pairs": 2, "tokens": 24, "longest": 12, "cut": 0, "skipped": {"no gold answer": 2}}

    def test_a_tokenizer_without_an_end_is_refused(self, tmp_path):
        loaded = model(tmp_path / "m")
        loaded.tokenizer.eos_token = None
        for encoded in (lambda: encode(loaded, pair()), lambda: packed([("a", "ports")], loaded, 8)):
            with pytest.raises(InputError, match="no end-of-sequence token"):
                encoded()

    @given(st.lists(st.sampled_from(tiny.NOUNS), min_size=1, max_size=30), st.integers(8, 40))
    def test_no_example_is_longer_than_allowed_and_none_is_without_a_target(self, llama, nouns, most):
        found = encode(llama, pair(" ".join(nouns), " ".join(nouns)), pair(), most=most)
        assert len(found.examples) + sum(found.skipped.values()) == 2
        assert all(e.length <= most and e.labels[-1] != IGNORED for e in found.examples)


class TestAnswered:
    """The answer is tokenised as it follows the prompt."""

    def test_prompt_and_answer_are_the_tokens_of_the_joint_text(self, llama):
        messages = pair().messages
        prompt, answer = llama.encode_answered(messages, "use the tool", True)
        joint = "<s>user how do i list ports assistant use the tool"
        assert [*prompt, *answer] == llama.tokenizer(joint, add_special_tokens=False)["input_ids"]

    def test_a_blank_stands_between_an_opening_and_the_answer(self, llama):
        opened = pair(opened="Answer:").messages
        prompt, answer = llama.encode_answered(opened, "use", True)
        assert said(llama, [*prompt, *answer]) == "<s> user how do i list ports assistant Answer : use"

    @pytest.mark.needs_models
    def test_byte_level_tokens_are_those_of_the_joint_text(self):
        from graphcontext import models

        loaded = CausalModel(models.resolve("smollm2", None), None, "float32", "none", "cpu")
        for opened in (None, "Answer:"):
            messages = pair("Which port?", opened=opened).messages
            prompt, answer = loaded.encode_answered(messages, "Port 80 is it.", True)
            text = loaded.tokenizer.decode([*prompt, *answer])
            assert text.endswith("Answer: Port 80 is it." if opened else "assistant\nPort 80 is it.")
            assert loaded.tokenizer(text, add_special_tokens=False)["input_ids"] == [*prompt, *answer]

    def test_a_token_that_spans_both_leaves_the_prompt_as_it_is(self, llama, monkeypatch):
        ids = {"prompt": [1, 2], "prompt answer": [1, 9]}
        monkeypatch.setattr(llama, "_text", lambda *_: "prompt")
        monkeypatch.setattr(llama, "_ids", lambda text: ids[text])
        prompt, answer = llama.encode_answered(pair().messages, "answer", True)
        assert prompt == [1, 2] and len(answer) == 1


@pytest.mark.parametrize("save", [save_tiny_t5, save_tiny_bart], ids=["t5", "bart"])
class TestSeq2Seq:
    @pytest.fixture
    def loaded(self, save, tmp_path):
        return Seq2SeqModel(save(tmp_path / ("bart" if save is save_tiny_bart else "t5")), "float32", "cpu")

    def test_source_and_target_end_and_the_source_is_that_of_evaluation(self, loaded):
        (example,) = seq2seq([pair(answer="use ss")], loaded, 64).examples
        assert list(example.inputs) == loaded.tokenizer("how do i list ports")["input_ids"]
        begins = "<s> " if loaded.folder.name == "bart" else ""  # as it was pretrained
        assert said(loaded, example.labels) == f"{begins}use ss </s>"

    def test_messages_are_joined(self, loaded):
        (example,) = seq2seq([pair(opened="the answer is")], loaded, 64).examples
        assert loaded.tokenizer.decode(example.inputs, skip_special_tokens=True).endswith("ports the answer is")

    def test_what_is_too_long_is_cut_once_and_the_source_keeps_its_end(self, loaded):
        found = seq2seq([pair("ports " * 9, "list " * 9), pair("ports", "list")], loaded, 8)
        long, short = found.examples
        assert len(long.inputs) == 8 == len(long.labels) and found.cut == 1
        assert long.inputs[-1] == loaded.tokenizer.eos_token_id != long.labels[-1]
        assert short.labels[-1] == loaded.tokenizer.eos_token_id

    def test_a_pair_with_a_reason_is_left_out(self, loaded):
        assert seq2seq([pair(reason="no gold answer")], loaded, 8).skipped == {"no gold answer": 1}


class TestPacked:
    TEXTS = [("a", "list ports"), ("b", " "), ("c", "use the tool for disks"), ("d", "logs")]

    def test_blocks_by_hand(self, llama):
        # <s> list ports </s> <s> use the tool | for disks </s> <s> logs </s>
        found = packed(self.TEXTS, llama, 8)
        assert [said(llama, e.inputs) for e in found.examples] == [
            "<s> list ports </s> <s> use the tool",
            "for disks </s> <s> logs </s>",
        ]
        assert all(e.inputs == e.labels for e in found.examples) and found.skipped == {"empty text": 1}
        assert len({e.id for e in found.examples}) == 2

    def test_without_bos_texts_are_parted_by_the_end_alone(self, tmp_path):
        loaded = model(tmp_path / "m", tokenizer_adds_bos=False)
        assert said(loaded, packed(self.TEXTS[:3], loaded, 64).examples[0].inputs) == (
            "list ports </s> use the tool for disks </s>"
        )

    @given(st.lists(st.lists(st.sampled_from(tiny.NOUNS), min_size=1, max_size=12), min_size=1, max_size=9))
    def test_no_token_is_lost(self, llama, nouns):
        texts = [(str(i), " ".join(words)) for i, words in enumerate(nouns)]
        found = packed(texts, llama, 8)
        kept = [i for e in found.examples for i in e.inputs]
        joined = "".join(f"<s>{text}</s>" for _, text in texts)
        whole = llama.tokenizer(joined, add_special_tokens=False)["input_ids"]
        assert kept == whole[: len(kept)] and len(whole) - len(kept) <= 1  # one alone predicts nothing
        assert all(len(e.inputs) == 8 for e in found.examples[:-1])


def test_an_example_is_as_long_as_its_longer_part():
    assert Example("a", (1,), (2, 3)).length == 2


def test_of_no_examples_the_counts_are_zero():
    assert Examples().facts() == {"pairs": 0, "tokens": 0, "longest": 0, "cut": 0, "skipped": {}}
