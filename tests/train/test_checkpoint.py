"""Checkpoints: trained weights, optimiser state and position come back bit by bit; damage is one line."""

from __future__ import annotations

import pytest
import torch

from graphcontext.errors import RunError
from graphcontext.train import checkpoint
from graphcontext.train.adapter import LoRA
from graphcontext.train.checkpoint import Position
from graphcontext.whole import load_weights
from tests.tiny_models import save_tiny_llama

ROWS = [{"step": 1, "loss": 0.1 + 0.2, "held_out_loss": None}]


@pytest.fixture
def network(tmp_path):
    network = load_weights("AutoModelForCausalLM", save_tiny_llama(tmp_path / "m"))
    return LoRA(rank=2, alpha=4, dropout=0.0).wrap(network)


def adam(network):
    return torch.optim.AdamW([w for w in network.parameters() if w.requires_grad], lr=0.1)


def step(network, optimizer):
    ids = torch.tensor([[1, 5, 6, 2]])
    network(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def trained(network):
    return {name: weight.detach().clone() for name, weight in checkpoint.trained(network)}


def test_what_is_read_is_what_was_written_and_goes_on_alike(network, tmp_path):
    optimizer = adam(network)
    step(network, optimizer)
    position = Position(step=3, best=0.1 + 0.2, best_step=2, worse=1, base=2.5, rows=ROWS)
    checkpoint.write(tmp_path / "last.pt", checkpoint.gather(network, optimizer), position)
    step(network, optimizer)
    undisturbed = trained(network)

    state, again = checkpoint.read(tmp_path / "last.pt")
    assert again == position
    other = adam(network)
    checkpoint.restore(network, state, other)
    step(network, other)
    assert all((weight == undisturbed[name]).all() for name, weight in trained(network).items())


def test_it_holds_adapters_and_never_the_base(network, tmp_path):
    checkpoint.write(tmp_path / "last.pt", checkpoint.gather(network), Position())
    state, _ = checkpoint.read(tmp_path / "last.pt")
    assert state and all("lora_" in name and list(parts) == ["weight"] for name, parts in state.items())


def test_gathered_weights_do_not_change_with_the_model(network):
    state = checkpoint.gather(network)
    name, weight = checkpoint.trained(network)[0]
    with torch.no_grad():
        weight += 1
    assert (state[name]["weight"] != weight).all()


def test_t36_where_there_is_none_there_is_none(tmp_path):
    assert checkpoint.read(tmp_path / "last.pt") is None


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut", "flipped", "of another kind", "pickle"])
def test_a_damaged_one_is_one_line(network, tmp_path, damage):
    path = tmp_path / "last.pt"
    checkpoint.write(path, checkpoint.gather(network), Position())
    whole = path.read_bytes()
    middle = len(whole) // 2
    content = {
        "empty": b"",
        "garbage": b"garbage",
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes(255 - b for b in whole[middle : middle + 2000]) + whole[middle + 2000 :],
    }
    if damage in content:
        path.write_bytes(content[damage])
    else:
        torch.save({"of another kind": [1, 2], "pickle": {"state": {}, "position": Position()}}[damage], path)
    with pytest.raises(RunError, match=r"last\.pt is damaged: remove .*, and the training starts anew") as caught:
        checkpoint.read(path)
    assert "\n" not in str(caught.value)


def test_one_flipped_bit_of_a_weight_is_damage(network, tmp_path):
    """torch reads it without a word, and the training would go on from other weights."""
    path = tmp_path / "last.pt"
    state = checkpoint.gather(network)
    checkpoint.write(path, state, Position())
    whole = path.read_bytes()
    weight = next(iter(state.values()))["weight"].numpy().tobytes()
    at = whole.index(weight) + len(weight) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert torch.load(path, weights_only=True)
    with pytest.raises(RunError, match=r"last\.pt is damaged"):
        checkpoint.read(path)


def test_the_hardware_is_noted_where_it_changes():
    position = Position()
    for step, ranks in ((0, 1), (3, 1), (5, 2), (9, 2)):
        position.step = step
        position.begin(ranks=ranks)
    assert position.sessions == [{"from_step": 0, "ranks": 1}, {"from_step": 5, "ranks": 2}]


def test_one_of_other_weights_is_refused(network, tmp_path):
    state = checkpoint.gather(network)
    name = min(state)
    lacking = {k: v for k, v in state.items() if k != name}
    with pytest.raises(RunError, match=r"of another model: 1 weights differ, such as base_model"):
        checkpoint.restore(network, lacking)
    with pytest.raises(RunError, match="of another model"):
        checkpoint.restore(network, state | {"more": state[name]})
    with pytest.raises(RunError, match="of another model"):
        checkpoint.restore(network, state | {name: {"weight": torch.zeros(3, 3)}})
