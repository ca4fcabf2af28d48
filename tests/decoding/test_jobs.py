"""From a test set to translations, in this process unless a test is about processes."""

import dataclasses

import pytest
import reference_variants
import torch
from bench import METHODS, Bench, with_turn_end
from tiny_adapters import adapter_of

from entropy_valley import files
from entropy_valley.decoding import reference
from entropy_valley.decoding.canvas import Decoded
from entropy_valley.model import decoder
from entropy_valley.model.adapters import write_adapter
from entropy_valley.model.decoder import Layer
from entropy_valley.model.families import FAMILIES
from entropy_valley.model.load import load_backbone
from entropy_valley.model.prompt import Prompt
from entropy_valley.revisions import DECODING
from entropy_valley.translation.sentences import Sentences

STEPWISE, DAEDAL = {"sig": "stepwise_kl"}, {"eos_window": 1, "cap": 24}


def test_from_test_set_to_the_references_translations(tmp_path, checkpoints, testset, diffusion):
    bench = Bench(tmp_path, checkpoints, testset, diffusion.family.name)
    hypotheses, _ = bench.decode("ev")
    bos = [diffusion.bos_id] if bench.spec["bos"] else []
    for pair, row in zip(files.read_jsonl(testset), hypotheses, strict=True):
        canvas, text = row["canvas"], bench.spec["prompt"].replace("{src}", pair["source"])
        prompt = bos + diffusion.tokenizer(text, add_special_tokens=False)["input_ids"]
        _, text = reference.decode(diffusion, prompt, canvas["length"], 8)
        turn_end = diffusion.family.turn_end_id(diffusion.tokenizer)
        tokens = Sentences("", [], None, 0, turn_end=turn_end).written(Decoded(text, len(text), None, 1))
        assert (row["id"], row["length"], row["tokens"]) == (pair["id"], canvas["length"], tokens)
        assert row["hypothesis"] == diffusion.tokenizer.decode(tokens, skip_special_tokens=True).strip()
        assert canvas["scores"][canvas["candidates"].index(canvas["length"])] == min(canvas["scores"])
        assert len(canvas["candidates"]) == canvas["calls"] and sum(canvas["candidates"]) == canvas["slots"]


def test_a_turns_end_cuts_the_text_and_changes_nothing_else(bench, llada, no_model, monkeypatch):
    whole, _ = bench.decode("ratio")
    end = max((row["tokens"] for row in whole), key=len)[1]
    monkeypatch.setitem(FAMILIES, "llada", with_turn_end(llada.family, llada.tokenizer, end))
    no_model()
    cuts, _ = bench.decode("ratio", out="chat")
    for row, cut in zip(whole, cuts, strict=True):
        tokens = row["tokens"][: row["tokens"].index(end)] if end in row["tokens"] else row["tokens"]
        hypothesis = llada.tokenizer.decode(tokens, skip_special_tokens=True).strip()
        assert cut == row | {"tokens": tokens, "hypothesis": hypothesis}


def test_costs_are_the_methods_and_the_engines(bench):
    rows, info = bench.decode("ev")
    for row in rows:
        canvas = row["canvas"]
        assert row["calls"] == canvas["calls"] + 8
        assert row["slots"] == canvas["slots"] + 8 * row["length"]
        assert canvas["calls"] <= row["passes"] <= canvas["calls"] + min(8, row["length"]) - 1
        assert row["head_rows"] <= row["slots"]
    (ledger,) = bench.ledgers()
    assert ledger["requested"] == sum(row["canvas"]["calls"] for row in rows) + 12
    assert ledger["tokens"] == sum(row["run_tokens"] for row in rows)
    assert ledger["rows"] == sum(row["head_rows"] for row in rows)
    assert info["passes"] == sum(row["passes"] for row in rows) and info["sentences"] == 12
    assert info["signature"]["decoder"] == f"engine r{DECODING}|med|T8|float32|llada"
    assert info["signature"]["data_digest"] == files.file_digest(bench.testset)


def test_costs_of_a_variable_length_decoder(bench, llada, monkeypatch):
    """The last probe of its own method is its first pass. With another method: golden.json."""
    monkeypatch.setitem(METHODS, "daedal", {"ratios": 1.2, **DAEDAL})
    rows, info = bench.decode("daedal", order="daedal", **DAEDAL)
    for pair, row in zip(files.read_jsonl(bench.testset), rows, strict=True):
        canvas, text = row["canvas"], bench.spec["prompt"].replace("{src}", pair["source"])
        prompt = llada.tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens, lengths = reference_variants.daedal(llada, prompt, canvas["length"], 1, 24)
        end = tokens.index(llada.eos_id) if llada.eos_id in tokens else len(tokens)
        assert (row["tokens"], row["length"]) == (tokens[:end], len(tokens))
        assert row["calls"] == row["passes"] + 1 == canvas["calls"] + len(lengths)
        assert row["slots"] == canvas["slots"] + sum(lengths)
    (ledger,) = bench.ledgers()
    assert ledger["tokens"] == sum(row["run_tokens"] for row in rows)
    assert ledger["rows"] == sum(row["head_rows"] for row in rows)
    assert info["within_steps"] == info["sentences"] == 12


def test_a_variable_length_decoders_result_is_stored_whatever_t_is(bench, no_model):
    first = bench.decode("ratio", order="daedal", **DAEDAL)
    bench.decode("ratio", order="daedal", eos_window=2, cap=24)
    bench.decode("ratio", order="rho_eos", cap=24)
    assert [ledger["computed"] for ledger in bench.ledgers()] == [12, 12, 12]
    no_model()
    assert bench.decode("ratio", order="daedal", **DAEDAL, steps=2) == first


def test_an_order_and_its_settings_name_a_decode(bench, no_model):
    for order, settings in (("med", {}), ("hybrid", {"p": 0.5}), ("hybrid", {"p": 0.25}), ("hybrid", {"p": 0.5})):
        bench.decode("ratio", order=order, **settings)
    computed = [ledger["computed"] for ledger in bench.ledgers()]
    assert computed[0] == 12 and 24 <= computed[1] <= 36 and computed[2:] == [12, 0]  # the first with the SIG reads it
    no_model()
    bench.decode("ratio", order="hybrid", p=0.25)


def test_another_shift_is_another_decode(bench):
    """One checkpoint may be read both ways; what the store has of one is no answer for the other."""
    first, _ = bench.decode("ratio")
    bench.spec["shifted"] = True
    second, entry = bench.decode("ratio", out="shifted")
    assert first != second and bench.ledgers()[-1]["computed"] == 12
    assert entry["signature"]["shifted"]


def test_a_larger_step_budget_than_slots_is_no_new_decode(bench, no_model):
    bench.decode("ratio", steps=40)
    no_model()
    assert bench.decode("ratio", steps=60)[1]["within_steps"] == 12


def test_a_wider_grid_probes_the_new_lengths_alone(bench, monkeypatch):
    before = [set(row["candidates"]) for row in bench.canvas("ev")]
    monkeypatch.setitem(METHODS, "ev", {"ratios": [0.6, 0.8, 1.0, 1.05, 1.4]})
    after = [set(row["candidates"]) for row in bench.canvas("ev")]
    new = sum(len(later - earlier) for later, earlier in zip(after, before, strict=True))
    assert bench.ledgers()[-1]["computed"] == new == 12


@pytest.mark.parametrize("method", ["oracle", "ratio"])
def test_unprobed_methods_load_no_model(bench, method, no_model):
    no_model()
    assert {(row["calls"], row["slots"]) for row in bench.canvas(method)} == {(0, 0)}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"head_precision": "float32"}, "float32 head"),  # beside a bfloat16 model
        ({"mask_token": "may_be_revealed"}, "reveals masks"),
        ({"attention": "prefix"}, "prefix attention"),
    ],
)
def test_what_computes_otherwise_has_results_of_its_own(bench, settings, name):
    bench.spec["precision"] = "bfloat16" if "head_precision" in settings else "float32"
    decoders = []
    for more in ({}, settings):
        bench.spec |= more
        decoders.append(bench.decode("ratio")[1]["signature"]["decoder"])
        assert bench.ledgers()[-1]["computed"] == bench.ledgers()[-1]["requested"]
    assert decoders[1] == f"{decoders[0]}|{name}"


def test_a_prompt_cache_has_results_of_its_own_but_what_is_exact_is_shared(bench):
    """Of a sentence's probes the first is the exact engine's, and of fixed ratios all is there but the texts."""
    decoders, computed = [], []
    for settings in ({}, {"prompt_cache": "never"}):
        bench.spec |= settings
        canvases = bench.canvas("ev")
        decoders.append(bench.decode("ev")[1]["signature"]["decoder"])
        computed.append([entry["computed"] for entry in bench.ledgers()[-2:]])
    assert decoders[1] == f"{decoders[0]}|prompt cache, never renewed"
    calls = sum(row["calls"] for row in canvases)
    assert computed[1] == [sum(row.get("cached", 0) for row in canvases), computed[0][1]]
    assert computed[1][0] == calls - 12


def test_costs_are_the_engines_with_a_prompt_cache(bench):
    bench.spec["prompt_cache"] = 3
    rows, _ = bench.decode("ev", order="hybrid", p=0.5, **STEPWISE)
    (ledger,) = bench.ledgers()
    assert ledger["tokens"] == sum(row["run_tokens"] for row in rows)
    assert ledger["rows"] == sum(row["head_rows"] for row in rows)


def test_costs_are_the_engines_under_prefix_attention(bench, llada):
    """A sentence's prompt is run once by each of two streams."""
    bench.spec["attention"] = "prefix"
    rows, _ = bench.decode("ev")
    totals = bench.ledgers()
    twice = sum(ledger["tokens"] for ledger in totals) - sum(row["run_tokens"] for row in rows)
    prompt = Prompt(bench.spec["prompt"], llada.tokenizer)
    assert twice == sum(len(prompt.encode(row["source"])) for row in files.read_jsonl(bench.testset))
    assert sum(ledger["rows"] for ledger in totals) == sum(row["head_rows"] for row in rows)


def test_padded_passes_have_results_of_their_own(bench):
    """They are asked for on a CPU, by which no text changes, and numbers by rounding at most; the padding is in the
    ledger."""
    before, _ = bench.decode("ev")
    bench.spec["batch_invariant"] = True
    for row, plain in zip(bench.decode("ev", out="padded")[0], before, strict=True):
        canvas = plain["canvas"] | {"scores": pytest.approx(plain["canvas"]["scores"], abs=2e-6)}
        assert row == plain | {"canvas": canvas, "logprob": pytest.approx(plain["logprob"], abs=1.5e-4)}
    one, other = bench.ledgers()
    assert one["computed"] == other["computed"] > 0
    assert one["padded"] == 0 < other["padded"] and one["tokens"] == other["tokens"]
    assert other["tokens"] + other["unused"] + other["padded"] == 1024 * other["passes"]
    bench.decode("ev", execution={"token_budget": 400}, out="smaller")  # other shapes: another name in the store
    assert bench.ledgers()[-1]["computed"] == other["computed"]


def test_compiled_layers_have_results_of_their_own(bench, monkeypatch):
    """Where passes are padded: else nothing is compiled."""
    monkeypatch.setattr(decoder, "_compiled_halves", lambda dynamic: (Layer.before, Layer.after))
    computed, decoders, texts = [], [], []
    for settings in ({}, {"compile_layers": True}, {"batch_invariant": True}):
        bench.spec |= settings
        text, facts = bench.decode("ratio")
        texts.append(text)
        decoders.append(facts["signature"]["decoder"])
        computed.append(bench.ledgers()[-1]["computed"])
    assert computed[0] == computed[2] > computed[1] == 0
    assert decoders == [decoders[0], decoders[0], f"{decoders[0]}|compiled layers"]
    assert texts[1:] == texts[:1] * 2


@pytest.mark.parametrize("name", ["llada", "llama3"])
def test_an_unmerged_adapter_has_results_of_its_own(tmp_path, checkpoints, testset, name):
    model, pairs = load_backbone(checkpoints / name, name).model, {}
    for module in [module for module, _ in model.named_modules() if module.endswith(("_proj", "lm_head"))]:
        outer, inner = model.get_submodule(module).weight.shape
        pairs[module] = [torch.randn(shape) / 4 for shape in ((3, inner), (outer, 3))]
    (tmp_path / "adapter").mkdir()
    write_adapter(adapter_of(pairs, 2.0), tmp_path / "adapter")
    bench, decoders = Bench(tmp_path, checkpoints, testset, name), []
    bench.execution = dataclasses.replace(bench.execution, adapter=tmp_path / "adapter")
    for merges in (True, False):
        bench.spec["merge_adapter"] = merges
        _, entry = bench.generate() if name == "llama3" else bench.decode("ev")
        decoders.append(entry["signature"]["decoder"])
    assert decoders[1] == f"{decoders[0]}|adapter unmerged"
    merged, beside = bench.ledgers()
    assert merged["computed"] == beside["computed"] > 0
