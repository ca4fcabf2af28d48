import math

import pytest
import torch
from tiny_checkpoints import checkpoints  # noqa: F401 - a fixture

from entropy_valley.decoding.canvas import Ledger
from entropy_valley.decoding.engine import Engine
from entropy_valley.lengths import Sentence, make_method
from entropy_valley.lengths.length_head import LengthHead, fit, mean_states, report
from entropy_valley.model.attention import pack
from entropy_valley.model.load import load_backbone

# Of states (a, b) the logits of 2, 3 and 4 slots are a, b and 0.
HEAD = LengthHead(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), torch.zeros(3))
FITTING = {"longest": 6, "epochs": 30, "learning_rate": 0.1, "batch": 4, "seed": 1}


def test_the_beam_is_of_the_likeliest_lengths():
    sentence = Sentence(4, None, {9: -0.5, 7: -1.5, 8: -1.5, 3: -4.0})
    for beam, lengths in ((1, [9]), (2, [9, 7]), (3, [9, 7, 8]), (8, [9, 7, 8, 3])):  # the shorter one on a tie
        choice = make_method("length_head", {"beam": beam}).choose(sentence, {})
        assert (choice.length, list(choice.contenders)) == (9, lengths)
        assert choice.scores == {length: -sentence.predicted[length] for length in lengths}


def test_a_prediction_is_a_softmax_over_lengths():
    # Logits log 2, log 5 and 0: probabilities 2/8, 5/8 and 1/8 of 2, 3 and 4 slots.
    likeliest = HEAD.likeliest(torch.tensor([math.log(2), math.log(5)]), room=9)
    assert list(likeliest) == [3, 2, 4]
    assert list(likeliest.values()) == pytest.approx([math.log(5 / 8), math.log(2 / 8), math.log(1 / 8)], abs=1e-6)


@pytest.mark.parametrize(("room", "lengths"), [(3, [3, 2]), (2, [2]), (0, [2])])
def test_no_prediction_is_longer_than_the_room_but_one_slot_and_its_eos_always_are(room, lengths):
    assert list(HEAD.likeliest(torch.tensor([0.0, 1.0]), room)) == lengths


def test_it_learns_what_the_states_say_whatever_their_scale():
    """The length is the place of the largest state, ×1000, on an offset; 9 slots count as the longest."""
    draw = torch.Generator().manual_seed(0)
    lengths = [2, 3, 4, 5, 9] * 12
    states = torch.eye(5)[[min(length, 6) - 2 for length in lengths]] * 1000 + 5e3
    states += torch.randn(states.shape, generator=draw)
    head = fit(states, lengths, **FITTING)
    assert report(head, states[:50], lengths[:50]) == {"pairs": 50, "accuracy": 0.8, "mae": 0.6}  # 9 is taken for 6
    again = fit(states, lengths, **FITTING)
    assert torch.equal(head.weight, again.weight) and torch.equal(head.bias, again.bias)
    assert not torch.equal(head.weight, fit(states, lengths, **FITTING | {"seed": 2}).weight)


def test_a_constant_state_is_no_division_by_zero():
    head = fit(torch.ones(8, 3), [2, 3] * 4, **FITTING)
    assert torch.isfinite(head.weight).all() and torch.isfinite(head.bias).all()


def test_a_mean_state_is_of_the_prompt_alone(checkpoints):  # noqa: F811
    backbone, ledger = load_backbone(checkpoints / "diffullama", "diffullama"), Ledger()
    prompts = [[5, 6, 7, 8, 9], [10, 11, 12, 13], [5, 6, 7, 8, 20, 21, 22]]
    means = dict(mean_states(Engine(backbone, ledger, budget=12), prompts))
    assert sorted(means) == [0, 1, 2]
    for place, prompt in enumerate(prompts):
        with torch.no_grad():
            own = backbone.model.hidden_states(pack([prompt])).mean(0)
        torch.testing.assert_close(means[place], own)
    assert (ledger["passes"], ledger["tokens"], ledger["rows"]) == (2, 16, 0)
