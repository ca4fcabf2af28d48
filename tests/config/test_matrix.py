"""Cells, and the slices of the config that rules get."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from job_lists import jobs_of

from entropy_valley.config import base_files, load_files, matrix, methods, params
from entropy_valley.config.matrix import CellSet
from entropy_valley.data import sources
from entropy_valley.decoding.orders import Denoising
from entropy_valley.demo.grammar import SOURCES
from entropy_valley.files import canonical

ROOT = Path(__file__).parents[2]
PAPER = load_files(base_files(ROOT))
DEMO = load_files([*base_files(ROOT), ROOT / "config" / "demo-full.yaml"])
RUN = matrix.Run("en-zh", "llada-8b", 1)


def translation(experiment, *names, run=RUN, order="med"):
    """The params of a set of these methods' cells."""
    cells = tuple(matrix.Cell(run, "wmt22", method, order, 32) for method in names)
    return json.loads(params.translation(experiment, CellSet(run, "mine", cells)))


def generation(experiment):
    """Those of the autoregressive baseline."""
    run = matrix.autoregressive_cells(PAPER)[0].run
    return json.loads(params.translation(experiment, CellSet(run, "mine", (matrix.Cell(run, "wmt22", "beam4"),))))


def diagnostics(experiment, run=RUN):
    return json.loads(params.diagnostics(experiment, run))


def test_the_papers_cells_are_its_whole_product():
    cells = matrix.cells(PAPER)
    assert len(cells) == len(set(cells)) == 3 * 3 * 3 * 4
    assert len(matrix.runs(PAPER)) == 27
    # Three autoregressive runs a direction, six variants, and what the studies have that nothing else has.
    studies = set(itertools.chain.from_iterable(matrix.study_cells(PAPER, name) for name in PAPER.tables.studies))
    assert len(matrix.all_cells(PAPER)) == 108 + 9 + 6 * 3 + len(studies - set(cells))
    assert {cell.run.backbone for cell in cells} == {"llada-8b", "dream-7b", "diffullama-7b"}


def test_a_backbone_may_have_seeds_of_its_own():
    seeds = {(run.backbone, run.seed) for run in matrix.runs(DEMO)}
    assert seeds >= {("llada-tiny", 1), ("llada-tiny", 2), ("llada-tiny", 3), ("dream-tiny", 1), ("diffullama-tiny", 1)}


def test_no_two_cells_share_a_name():
    names = [cell.name for experiment in (PAPER, DEMO) for cell in matrix.all_cells(experiment)]
    assert len(set(names)) == len(names)


def test_a_cells_name_tells_its_coordinates():
    cell = matrix.Cell(matrix.Run("en-zh", "llada-8b", 2), "wmt22", "ev", "med", 32)
    assert cell.name == "en-zh/llada-8b/seed2/wmt22/ev/med-T32"
    assert list(cell.key().values()) == ["llada-8b", "en-zh", 2, "wmt22", "ev", "med", 32]


def test_tables_take_one_order_one_budget_and_the_first_test_set():
    wide = PAPER.model_copy(
        update={"matrix": PAPER.matrix.model_copy(update={"steps": [16, 32], "orders": ["med", "random"]})}
    )
    assert len(matrix.cells(wide)) == 4 * 108
    assert matrix.table_cells(wide) == matrix.cells(PAPER)
    assert {cell.run.backbone for cell in matrix.table_cells(wide, "dream-7b")} == {"dream-7b"}


@pytest.mark.parametrize("between", [(), ("config/demo-full.yaml",)], ids=["paper", "demo"])
def test_every_spec_is_canonical_json(between):
    """Snakemake compares the text: the same settings must always give the same one."""
    specs = [job.spec for job in jobs_of({}, *between).all]
    assert len(specs) > 60 and all(canonical(json.loads(text)) == text for text in specs)


def test_a_set_knows_its_own_methods_and_its_directions_ratios_only():
    spec = translation(PAPER, "ev", "ratio", "ratio_eos", "oracle")
    assert spec["methods"]["ev"]["ratios"] == [0.70, 0.75, 0.80, 0.85, 0.90]
    assert spec["methods"]["ratio"] == {"ratios": 0.8, "reserve_eos_slot": False}
    assert spec["methods"]["ratio_eos"]["reserve_eos_slot"] is True
    assert spec["methods"]["oracle"] == {}
    assert list(spec["methods"]) == sorted(spec["methods"]) and len(spec["methods"]) == 4
    assert spec["orders"] == {"med": {"order": "med", "order_settings": {}}}
    assert spec["cells"][0] == ["wmt22", "ev", "med", 32]


def test_what_it_is_made_from_follows_from_the_params_of_all_before():
    spec, fitted = translation(PAPER, "ev"), translation(PAPER, "ev_line")
    assert spec["made_from"].keys() == {"adapter", "testset wmt22"}
    assert fitted["made_from"].keys() == {"adapter", "testset wmt22", "corpus en-zh"}
    assert spec["made_from"]["adapter"] == params.digest(params.training(PAPER, RUN))
    other = PAPER.model_copy(update={"corpus": PAPER.corpus.model_copy(update={"seed": 5})})
    assert translation(other, "ev")["made_from"]["adapter"] != spec["made_from"]["adapter"]


def test_how_adapters_are_run_is_a_param_of_decoding():
    unmerged = PAPER.decoding.model_copy(update={"merge_adapter": False})
    other = PAPER.model_copy(update={"decoding": unmerged})
    usual, beside = translation(PAPER, "ev"), translation(other, "ev")
    assert beside == usual | {"merge_adapter": False} and usual["merge_adapter"]
    assert not generation(other)["merge_adapter"] and not diagnostics(other)["merge_adapter"]
    assert params.training(other, RUN) == params.training(PAPER, RUN)


def test_the_precision_of_the_head():
    def spec(**settings):
        return translation(
            PAPER.model_copy(update={"decoding": PAPER.decoding.model_copy(update=settings)}), "ev", run=RUN
        )

    rounded = spec(head_precision="backbone")
    assert rounded["head_precision"] == "backbone"
    assert spec() == rounded | {"head_precision": "float32"}
    assert spec(precision="float32") == spec(precision="float32", head_precision="backbone")
    assert spec(precision="float32") == rounded | {"precision": "float32"}
    assert "head_precision" not in generation(PAPER)
    assert spec()["methods"]["ev"].keys() == {"ratios", "score"}
    assert spec(exact_products=False)["methods"]["ev"] == {**spec()["methods"]["ev"], "exact": False}
    assert spec(mask_token="may_be_revealed") == spec() | {"mask_token": "may_be_revealed"}


@pytest.mark.parametrize("value", [True, False])
def test_padded_passes(value):
    """With ``auto`` the device decides, and no result is repeated because of a device."""
    said = PAPER.model_copy(update={"decoding": PAPER.decoding.model_copy(update={"batch_invariant": value})})
    usual = translation(PAPER, "ev")
    assert usual["batch_invariant"] == "auto"
    assert translation(said, "ev") == usual | {"batch_invariant": value}
    assert generation(said) == generation(PAPER)


def test_how_a_training_runs_is_none_of_its_params():
    for over in ({"processes": 4}, {"micro_tokens": "auto"}, {"checkpoint_every": 7}):
        assert params.training(changed(PAPER, **over), RUN) == params.training(PAPER, RUN)
    assert params.training(changed(PAPER, learning_rate=1.0), RUN) != params.training(PAPER, RUN)


def test_compiled_layers():
    compiled = PAPER.model_copy(update={"decoding": PAPER.decoding.model_copy(update={"compile_layers": True})})
    assert translation(compiled, "ev") == translation(PAPER, "ev") | {"compile_layers": True}


def changed(experiment, **training):
    return experiment.model_copy(update={"training": experiment.training.model_copy(update=training)})


@pytest.mark.parametrize("mask_token", ["never", "may_be_revealed"])
def test_a_setting_that_the_params_always_name_is_read_by_its_value(mask_token):
    decoding = PAPER.decoding.model_copy(update={"mask_token": mask_token})
    spec = translation(PAPER.model_copy(update={"decoding": decoding}), "ev")
    cell = {"order": "med", "order_settings": {}, "steps": 32}
    assert Denoising.of(spec | cell).mask_token is (mask_token == "may_be_revealed")


def test_a_method_that_sets_up_another_method_says_so():
    assert translation(PAPER, "ev_sum")["methods"]["ev_sum"] == {
        "method": "ev",
        "score": "sum",
        "ratios": [0.70, 0.75, 0.80, 0.85, 0.90],
    }


def test_what_is_measured_on_training_pairs_depends_on_no_methods_settings():
    spec = translation(PAPER, "ev_line")["fits"]["length_statistics"]
    assert (spec["pairs"], spec["bias_pairs"]) == (1000, 200)
    assert not spec.keys() & {"method", "seed"}
    fitted = [name for name in PAPER.length_methods.model_dump() if methods.needs_statistics(PAPER, name)]
    kinds = {methods.base_method(PAPER, name) for name in fitted}
    assert kinds == {"cal", "ev_calibrated", "ev_prior", "ev_line", "length_line"}
    assert {"ev_line_5", "ev_line_mode", "ev_line_4_no_prior"} < set(fitted)
    assert "fits" not in translation(PAPER, "ev", "ratio", "oracle")
    assert translation(PAPER, "length_head", "ev")["fits"].keys() == {"length_head"}


def test_a_valley_has_its_directions_grid_and_no_methods_settings():
    spec = diagnostics(PAPER)["valley"]
    assert (spec["ratios"][0], spec["ratios"][-1], len(spec["ratios"])) == (0.4, 1.5, 23)
    assert (spec["offset"], spec["sentences"], spec["seed"]) == (6, 500, PAPER.corpus.seed)
    assert not spec.keys() & {"method", "ratios_of", "backbones"}
    assert diagnostics(PAPER, matrix.Run("zh-en", "llada-8b", 1))["valley"]["ratios"][-1] == 2.2
    assert len(matrix.valley_cells(PAPER)) == 27
    none, more = (
        PAPER.model_copy(update={"valley": PAPER.valley.model_copy(update={"backbones": names})})
        for names in ([], ["llada-8b-prefix", "dream-7b"])
    )
    assert matrix.valley_cells(none) == []
    shown = [cell.run.backbone for cell in matrix.valley_cells(more)]
    assert shown == ["dream-7b"] * 9 + ["llada-8b-prefix"] * 9


def test_a_reassignment_says_whose_canvases_it_deals_and_how():
    spec = translation(PAPER, "ev_reassigned_deciles_3")
    assert spec["methods"]["ev_reassigned_deciles_3"] == {
        "method": "reassigned",
        "of": "ev",
        "seed": 3,
        "within": "deciles",
    }
    assert spec["methods"]["ev"] == translation(PAPER, "ev")["methods"]["ev"]
    dealt = methods.reassigned_methods(PAPER)
    assert len(dealt) == 10 and all(name.startswith("ev_reassigned_") for name in dealt)


def test_an_orders_settings_change_its_own_sets_alone():
    orders = {**PAPER.reveal_orders, "hybrid_50": PAPER.reveal_orders["hybrid_50"].model_copy(update={"p": 0.6})}
    other = PAPER.model_copy(update={"reveal_orders": orders})
    changed = [translation(other, "ev", order=name) != translation(PAPER, "ev", order=name) for name in orders]
    assert dict(zip(orders, changed, strict=True)) == {name: name == "hybrid_50" for name in orders}
    assert translation(other, "ev") == translation(PAPER, "ev")


def test_a_chat_variant_differs_in_its_prompt_and_a_shifted_one_in_its_shift():
    def of(backbone):
        return translation(PAPER, "ev", run=matrix.Run("en-zh", backbone, 1))

    plain, chat, unshifted = (of(f"dream-instruct-{name}") for name in ("plain", "chat", "chat-unshifted"))
    assert plain["prompt"] in chat["prompt"]
    assert chat["prompt"].count("{src}") == 1
    assert {key for key in chat if chat[key] != unshifted[key]} == {"backbone", "shifted", "made_from"}
    assert {key for key in chat if chat[key] != plain[key]} == {"backbone", "prompt", "made_from"}


def test_a_test_set_is_as_small_as_the_smaller_of_its_limits():
    assert json.loads(params.testset(PAPER, "en-zh", "wmt22"))["limit"] is None
    assert json.loads(params.testset(PAPER, "en-zh", "wmt22-500"))["limit"] == 500
    assert json.loads(params.testset(DEMO, "en-zh", "wmt22-500"))["limit"] == 200


@pytest.mark.parametrize("experiment", [PAPER, DEMO], ids=["paper", "demo"])
def test_every_source_can_be_made(experiment):
    for name in experiment.sources:
        sources.make(json.loads(params.testset(experiment, "en-zh", name))["source"], SOURCES)


def test_a_limit_is_no_part_of_what_is_trained_on():
    narrow = {**PAPER.sources, "wmt19-zh-en": PAPER.sources["wmt19-zh-en"].model_copy(update={"limit": 9})}
    assert params.corpus(PAPER.model_copy(update={"sources": narrow}), "en-zh") == params.corpus(PAPER, "en-zh")


def test_an_autoregressive_training_knows_nothing_of_masks():
    loss = PAPER.training.loss.model_copy(update={"weight": "none", "eps": 0.1, "eos_padding": 4})
    other = PAPER.model_copy(update={"training": PAPER.training.model_copy(update={"loss": loss})})
    ar, masked = matrix.Run("en-zh", "llama3-8b", 1), matrix.Run("en-zh", "llada-8b", 1)
    assert params.training(other, ar) == params.training(PAPER, ar)
    assert params.training(other, masked) != params.training(PAPER, masked)


def test_training_knows_nothing_of_decoding():
    text = params.training(PAPER, matrix.Run("en-zh", "llada-8b", 1))
    assert not any(word in text for word in ("ratio", 'steps":32', "schedule", "order", "comet"))


def test_eos_padding_of_a_variant_is_in_its_adapters_spec_alone():
    def training(backbone):
        return json.loads(params.training(PAPER, matrix.Run("en-zh", backbone, 1)))

    plain, padded = training("llada-8b"), training("llada-8b-padded")
    assert (plain["training"]["loss"]["eos_padding"], padded["training"]["loss"]["eos_padding"]) == (0, 64)
    loss = padded["training"]["loss"] | {"eos_padding": 0}
    assert padded | {"backbone": "llada-8b", "training": padded["training"] | {"loss": loss}} == plain
    spec = translation(PAPER, "daedal_own", run=matrix.Run("en-zh", "llada-8b-padded", 1), order="daedal_own")
    assert "eos_padding" not in canonical(spec)


def test_daedals_own_defaults_have_a_place_in_a_study_of_the_paper_that_trains_one_adapter_more():
    assert "eos_padding" not in PAPER.tables.studies
    named = PAPER.model_copy(update={"tables": PAPER.tables.model_copy(update={"studies": ["eos_padding"]})})
    cells = matrix.study_cells(named, "eos_padding")
    assert {cell.run for cell in cells} == {matrix.Run("en-zh", "llada-8b-padded", 1)}
    assert {("daedal_own", "daedal_own"), ("daedal_own", "med"), ("eos_probe", "med")} <= {
        (cell.method, cell.order) for cell in cells
    }


def test_daedal_starts_from_a_directions_ratio_or_from_its_own_slots():
    spec = translation(PAPER, "daedal", "daedal_own", run=matrix.Run("en-de", "llada-8b", 1))
    start = [spec["methods"][name] for name in ("daedal", "daedal_own")]
    assert (start[0]["ratios"], start[0]["eos_window"], "start" in start[0]) == (1.8, 1, False)
    assert (start[1]["start"], start[1]["eos_window"], "ratios" in start[1]) == (64, 32, False)
    assert methods.order_settings(PAPER, "daedal_own") == {"order": "daedal", "order_settings": {"eos_window": 32}}
