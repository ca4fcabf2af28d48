"""The authors' readings of LoRA-SFT: each differs from ours, and a plain oracle agrees with it."""

import json
import math
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from tiny_training import ROWS, RUN, SETTINGS, canvases_of, continuations_of, pairs_of, spec

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import base_files, load_files, matrix, params
from entropy_valley.model.adapters import read_adapter
from entropy_valley.model.attention import pack
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import empty_model
from entropy_valley.model.prompt import Prompt
from entropy_valley.training.adapter import lora_modules
from entropy_valley.training.loss import (
    Passes,
    cross_entropies,
    draw_groups,
    draw_masks,
    draw_times,
    fitting_pairs,
    stream,
)
from entropy_valley.training.settings import Loss, Training

THEIRS = {"weight": "none", "normaliser": "micro_batch", "antithetic": False, "at_least_one": False}
ROOT = Path(__file__).parents[2]


def loss_of(backbone, canvases, step):
    """The loss of a step, and what was masked of each of its pairs."""
    total, masks = 0.0, []
    for part in canvases[step]:
        masks += [ids == backbone.mask_id for ids in part.packed.input_ids[0].split(list(part.packed.lengths))]
        if len(part.rows):
            total += (cross_entropies(backbone.model, part, backbone.shifted) @ part.weights).item()
    return total, masks


def plain_loss(backbone, canvases, step, masks, padded):
    """The mean over micro-batches of four, padded to their longest, of the mean cross-entropy of their masked slots."""
    indices, means = canvases.order[step], []
    groups = draw_groups(len(indices), 4, canvases.seed, "groups", step).tolist()
    for group in sorted(set(groups)):
        members, losses = [place for place, own in enumerate(groups) if own == group], []
        width = max(int(canvases.pairs.lengths[indices[place]]) for place in members)
        for place in members:
            start, length = (int(part[indices[place]]) for part in (canvases.pairs.starts, canvases.pairs.lengths))
            clean = canvases.pairs.tokens[start : start + length].tolist()
            seen = [backbone.mask_id if hidden else token for token, hidden in zip(clean, masks[place], strict=False)]
            seen += [backbone.eos_id] * (width - length if padded else 0)
            logits = backbone.model.lm_head(backbone.model.hidden_states(pack([seen]))).log_softmax(-1)
            hidden = [slot for slot in range(length) if masks[place][slot]]
            losses += [-logits[slot - int(backbone.shifted), clean[slot]].item() for slot in hidden]
        means.append(math.fsum(losses) / len(losses) if losses else 0.0)
    return math.fsum(means) / len(means)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("family", ["llada", "diffullama"])
@torch.inference_mode()
def test_the_mean_of_padded_micro_batches(load, family, padded):
    """However a batch is cut into passes: micro-batches are drawn, passes hold similar lengths."""
    backbone = load(family)
    canvases = canvases_of(backbone, passes=Passes(60, ranks=2), padding_read=padded, **THEIRS)
    assert len(canvases[0]) > 1
    for step in range(len(canvases.order)):  # the last batch is short
        loss, masks = loss_of(backbone, canvases, step)
        assert loss == pytest.approx(plain_loss(backbone, canvases, step, masks, padded), rel=1e-4, abs=1e-6)
    with pytest.raises(ValidationError, match="either `eos_padding` or `padding_read`"):
        Loss(padding_read=True, eos_padding="batch")
    other, _ = loss_of(backbone, canvases_of(backbone, **(THEIRS | {"normaliser": "masked"})), 0)
    assert loss_of(backbone, canvases, 0)[0] != pytest.approx(other, rel=1e-3)


@torch.inference_mode()
def test_a_continuations_micro_batch_has_one_mean(load):
    backbone = load("llama3")
    batches = continuations_of(backbone, normaliser="micro_batch")
    (part,) = batches[0]
    losses, indices = cross_entropies(backbone.model, part, True), batches.order[0]
    counts = (batches.pairs.lengths - batches.pairs.prompts)[indices].tolist()
    means = [[], []]
    for group, piece in zip(draw_groups(8, 4, 1, "groups", 0).tolist(), losses.split(counts), strict=True):
        means[group].append(piece)
    expected = sum(torch.cat(pieces).mean() for pieces in means) / 2
    assert (losses @ part.weights).item() == pytest.approx(expected.item(), rel=1e-5) != losses.mean().item()


def test_independent_rates_leave_strata_empty():
    even, free = (draw_times(64, stream(1), eps=1e-3, antithetic=kind) for kind in (True, False))
    assert len((even * 64).long().unique()) > 60 > len((free * 64).long().unique())
    draws = torch.rand(64, generator=stream(1))
    assert torch.allclose(free, 1e-3 + (1 - 1e-3) * draws)


def test_a_sequence_may_have_no_mask():
    """As Bernoulli draws have it: none with probability (1 − t)^|y|."""
    targets, times = torch.full((4000,), 4), torch.full((4000,), 0.2)
    free = draw_masks(times, targets, stream(3), at_least_one=False).view(-1, 4)
    assert free.any(1).float().mean().item() == pytest.approx(1 - 0.8**4, abs=0.03)
    assert draw_masks(times, targets, stream(3)).view(-1, 4).any(1).all()
    assert torch.equal(free.view(-1), torch.rand(16000, generator=stream(3)) < 0.2)


def test_a_batch_without_masks_trains(finetune):
    """Its loss is 0, as theirs; no mean is divided by zero."""
    loss = THEIRS | {"eps": 1e-6}
    folder = finetune(spec(loss=loss, global_batch=1, max_steps=12), micro_tokens=9)
    rows = [line.split(",") for line in (folder / "losses.csv").read_text().splitlines()[1:]]
    losses = [float(row[1]) for row in rows]
    assert all(math.isfinite(value) for value in losses) and min(losses) >= 0 < max(losses)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_bare_names_are_those_of_the_released_model(load, family):
    """The oracle: PEFT's own rule on a model with the released names."""
    backbone = load(family)
    names = [name for name, module in backbone.model.named_modules() if isinstance(module, torch.nn.Linear)]
    bare = {"llada": "q_proj k_proj v_proj o_proj ff_proj up_proj ff_out"}.get(
        backbone.family.model_type, "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"
    )
    released = {backbone.family.released_name(name): name for name in names}
    wanted = sorted(stock for name, stock in released.items() if any(name.endswith(f".{one}") for one in bare.split()))
    modules = lora_modules(backbone.model, backbone.family, "by_name")
    assert modules == wanted
    assert (modules != lora_modules(backbone.model, backbone.family)) == (backbone.family.model_type == "llada")
    assert ("lm_head" in modules) == (backbone.family.model_type == "llada")


def test_the_papers_share_of_parameters_is_that_of_bare_names():
    """159.35 M of LLaDA-8B's parameters; with the output of attention and without the head 167.77 M."""
    family = FAMILIES["llada"]
    config = {"max_position_embeddings": 2048, **family.releases[0].config, "tie_word_embeddings": False}
    model = empty_model(family, config, torch.bfloat16)
    layers = {kind: map(model.get_submodule, lora_modules(model, family, kind)) for kind in ("blocks", "by_name")}
    counts = {kind: 64 * sum(one.in_features + one.out_features for one in each) for kind, each in layers.items()}
    assert counts == {"blocks": 167_772_160, "by_name": 159_350_784}


def test_an_adapter_of_bare_names_is_trained_and_read_again(finetune, load):
    folder = finetune(spec(lora=SETTINGS["lora"] | {"targets": "by_name"}))
    adapter = read_adapter(folder, FAMILIES["llada"])
    assert set(adapter.modules) == set(lora_modules(load().model, FAMILIES["llada"], "by_name"))
    head = load(adapter=folder).model.lm_head.weight
    assert not torch.equal(head, load().model.lm_head.weight)
    assert len(files.read_json(folder / "adapter_config.json")["target_modules"]) == 6 * 2 + 1


def test_long_targets_are_cut_where_five_tokens_stay(load):
    backbone = load()
    whole = pairs_of(backbone)
    limit = int(whole.lengths.median())
    prompt = Prompt("De: {src}\n", backbone.tokenizer)
    tokens = [(prompt.encode(row["source"]), prompt.tokens(row["target"])) for row in ROWS]
    pairs, expected, cut = fitting_pairs(tokens, backbone.eos_id, limit, cut=True), [], 0
    for source, target in tokens:
        if len(source) + len(target) > limit - 1:
            left = limit - 1 - len(source)
            if left < 5:
                continue
            target, cut = target[:left], cut + 1
        expected.append([*source, *target, backbone.eos_id])
    assert pairs.tokens.tolist() == [token for sequence in expected for token in sequence]
    assert (pairs.cut, pairs.dropped) == (cut, len(ROWS) - len(expected))
    assert cut > 0 and len(pairs) > len(pairs_of(backbone, limit))
    with pytest.raises(InputError, match="no pair has at most 3 tokens"):
        pairs_of(backbone, 3)


def test_the_adapter_of_the_last_multiple_is_kept(finetune):
    """It is that of a training that is broken off there: the rates fall as if all steps ran."""
    whole, kept = finetune(spec()), finetune(spec(keep_every=3))
    rows = [(folder / "losses.csv").read_text().splitlines() for folder in (whole, kept)]
    assert rows[1] == rows[0][: 1 + 6] and len(rows[0]) == 1 + 8
    assert files.read_json(kept / "adapter.json")["steps"] == 6
    assert read_adapter(whole, FAMILIES["llada"]).digest != read_adapter(kept, FAMILIES["llada"]).digest
    settings = Training.model_validate(SETTINGS | RUN | {"precision": "bfloat16", "keep_every": 500})
    assert settings.kept(4689) == settings.kept(4686) == 4500
    with pytest.raises(InputError, match="499 steps"):
        settings.kept(499)


PAPER = load_files(base_files(ROOT))
AUTHORS = load_files([*base_files(ROOT), ROOT / "config" / "authors.yaml"])


def training(experiment, backbone):
    return json.loads(params.training(experiment, matrix.Run("en-zh", backbone, experiment.matrix.seeds[0])))


def test_two_backbones_decode_behind_a_prompt_that_they_were_not_trained_with():
    """And a third one does not; the prompts of the text are those of the training in every direction."""
    for direction, prompt in ((name, section.prompt) for name, section in AUTHORS.directions.items()):
        for backbone in ("llada-8b", "dream-7b", "diffullama-7b"):
            run = matrix.Run(direction, backbone, 42)
            trained = json.loads(params.training(AUTHORS, run))["prompt"]
            other = prompt if backbone == "llada-8b" else AUTHORS.directions["en-zh"].prompt
            assert (trained, params.filling(AUTHORS, run)["prompt"]) == (prompt, other)
            assert params.filling(PAPER, run)["prompt"] == prompt
