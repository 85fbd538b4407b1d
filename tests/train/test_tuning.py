"""The loss of a step, by hand: summed over targets, divided by those of the global batch, whatever is padded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.train.batches import Collate, Course
from graphcontext.train.examples import IGNORED, Example
from graphcontext.train.tuning import CausalTuning, Seq2SeqTuning, derive
from graphcontext.whole import load_weights
from tests.tiny_models import save_tiny_bart, save_tiny_llama, save_tiny_t5
from tests.train.test_settings import settings

CAUSAL = [
    Example("a", (1, 5, 6, 7, 2), (IGNORED, IGNORED, IGNORED, 7, 2)),
    Example("b", (1, 8, 9), (IGNORED, 8, 9)),
    Example("c", (1, 4, 5, 6, 7, 8, 2), (IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, 2)),
]
SEQ2SEQ = [Example("a", (5, 6, 2), (7, 2)), Example("b", (5, 2), (6, 7, 8, 2)), Example("c", (4, 2), (2,))]
KINDS = {
    "llama": (save_tiny_llama, "AutoModelForCausalLM", CausalTuning, CAUSAL),
    "t5": (save_tiny_t5, "AutoModelForSeq2SeqLM", Seq2SeqTuning, SEQ2SEQ),
    "bart": (save_tiny_bart, "AutoModelForSeq2SeqLM", Seq2SeqTuning, SEQ2SEQ),
}


@pytest.fixture(params=KINDS)
def tuning(request, tmp_path):
    """A module with its network, and the examples of its kind."""
    save, reader, cls, examples = KINDS[request.param]
    course = Course(tuple(e.length for e in examples), len(examples), 1, 0, True)
    module = cls(lambda: load_weights(reader, save(tmp_path / "m")).eval(), settings(), course, examples, 0)
    module.configure_model()
    return module, examples


def batch(*examples, pad=3):
    return Collate(pad)([(e, True) for e in examples])


def alone(module, example):
    """−log p of each target of one example, by the plain forward pass of transformers."""
    ids, labels = torch.tensor([example.inputs]), torch.tensor([example.labels])
    if isinstance(module, CausalTuning):
        logits, targets = module.network(input_ids=ids).logits[0, :-1], labels[0, 1:]
    else:
        logits, targets = module.network(input_ids=ids, labels=labels).logits[0], labels[0]
    log_p = logits.log_softmax(-1)
    return [-log_p[i, t].item() for i, t in enumerate(targets.tolist()) if t != IGNORED]


def test_the_loss_of_a_batch_is_the_sum_over_its_targets(tuning):
    module, examples = tuning
    each = [alone(module, e) for e in examples]
    total, n = module.losses(batch(*examples))
    assert total.item() == pytest.approx(sum(map(sum, each)), rel=1e-5)
    assert n.item() == sum(map(len, each)) == sum(module.n_targets(e) for e in examples) == sum(module.targets)


def test_padding_changes_nothing(tuning):
    module, examples = tuning
    for example in examples:
        one = module.losses(batch(example))[0].item()
        wide = Collate(3, to=12)([(example, True)])
        assert module.losses(wide)[0].item() == pytest.approx(one, rel=1e-5)


def test_what_fills_a_rank_adds_nothing(tuning):
    module, examples = tuning
    total, n = module.losses(Collate(3)([(examples[0], False)]))
    assert total.item() == 0 and n.item() == 0
    assert total.requires_grad  # so that the backward pass of this rank takes part in the sum


def test_parts_add_up_to_the_gradient_of_the_whole(tuning):
    """Two ranks of two passes each: averaged by DDP, divided by Lightning, multiplied back."""
    module, examples = tuning
    weight = next(w for w in module.network.parameters() if w.requires_grad)

    def gradient(total):
        (found,) = torch.autograd.grad(total, weight, allow_unused=True)
        return torch.zeros_like(weight) if found is None else found

    whole = gradient(module.losses(batch(*examples))[0] / sum(module.targets))
    course, module.loss_sum, module.passes = module.course, None, 0
    module._trainer = SimpleNamespace(world_size=2, accumulate_grad_batches=2, global_rank=0)
    dealt = [[examples[0]], [examples[1]], [examples[2]], []]
    summed = torch.zeros_like(weight)
    for parts in (dealt[:2], dealt[2:]):
        module.passes, module._batches = 0, course.steps()
        for part in parts:
            given_ = batch(*part) if part else Collate(3)([(examples[0], False)])
            summed += gradient(module.training_step(given_, 0)) / 2  # Lightning: / accumulate_grad_batches
    assert (summed / 2 - whole).abs().max() < 1e-3 * whole.abs().max()  # DDP: mean over ranks


def test_held_out_loss_is_the_mean_of_a_target_over_examples_of_any_batches(tuning):
    module, examples = tuning
    each = [value for e in examples for value in alone(module, e)]
    by_one = [batch(e) for e in examples]
    filled = [batch(*examples), Collate(3)([(examples[0], False)])]
    module.network.train()
    for batches in (by_one, filled):
        loss, n = module.held_out_loss(batches)
        assert n == 3 and loss == pytest.approx(sum(each) / len(each), rel=1e-5)
    assert module.network.training  # as it was
    assert module.held_out_loss([]) == (0.0, 0)


def test_logits_are_computed_where_something_is_learnt_alone(tmp_path):
    course = Course((5,), 1, 1, 0, True)
    network = load_weights("AutoModelForCausalLM", save_tiny_llama(tmp_path / "m"))
    module = CausalTuning(lambda: network, settings(), course, CAUSAL[:1], 0)
    module.configure_model()
    shapes = []
    network.lm_head.register_forward_hook(lambda _, given_, out: shapes.append(tuple(out.shape)))
    module.losses(batch(CAUSAL[0]))
    assert shapes[0][1] == 2  # 2 targets of 5 tokens


@given(st.lists(st.tuples(*[st.integers(0, 999)] * 4), min_size=2, max_size=9, unique=True))
def test_each_pass_of_each_rank_has_a_seed_of_its_own(parts):
    seeds = [derive(*p) for p in parts]
    assert len(set(seeds)) == len(parts) and all(0 <= s < 2**63 for s in seeds)
    assert seeds == [derive(*p) for p in parts]
