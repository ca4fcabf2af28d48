"""Cells, their files, and the slices of the config that rules get."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from entropy_valley.corpus import sources
from entropy_valley.demo.source import SOURCES
from entropy_valley.experiment import base_files, load_files, matrix
from entropy_valley.experiment.params import corpora, jobs, methods
from entropy_valley.files import canonical, write_json
from entropy_valley.reporting import reports

ROOT = Path(__file__).parents[2]
PAPER = load_files(base_files(ROOT))
DEMO = load_files([*base_files(ROOT), ROOT / "config" / "demo.yaml"])


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
    assert seeds == {("llada-tiny", 1), ("llada-tiny", 2), ("llada-tiny", 3), ("dream-tiny", 1), ("diffullama-tiny", 1)}


def test_no_two_cells_share_a_file():
    paths = [cell.scores("results") for experiment in (PAPER, DEMO) for cell in matrix.all_cells(experiment)]
    assert len(set(paths)) == len(paths)


def test_a_cells_file_tells_its_coordinates():
    cell = matrix.Cell(matrix.Run("en-zh", "llada-8b", 2), "wmt22", "ev", "med", 32)
    assert cell.scores("results") == "results/en-zh/llada-8b/seed2/wmt22/ev/med-T32/scores.json"
    assert list(cell.key().values()) == ["llada-8b", "en-zh", 2, "wmt22", "ev", "med", 32]


def test_tables_take_one_order_one_budget_and_the_first_test_set():
    wide = PAPER.model_copy(
        update={"matrix": PAPER.matrix.model_copy(update={"steps": [16, 32], "orders": ["med", "random"]})}
    )
    assert len(matrix.cells(wide)) == 4 * 108
    assert matrix.table_cells(wide) == matrix.cells(PAPER)
    assert {cell.run.backbone for cell in matrix.table_cells(wide, "dream-7b")} == {"dream-7b"}


@pytest.mark.parametrize("experiment", [PAPER, DEMO], ids=["paper", "demo"])
def test_every_spec_is_canonical_json(experiment):
    """Snakemake compares the text: the same settings must always give the same one."""
    assert all(canonical(json.loads(text)) == text for text in every_spec(experiment))


def every_spec(experiment):
    backbones = list(dict.fromkeys(cell.run.backbone for cell in matrix.all_cells(experiment)))
    made_here = [name for name in backbones if experiment.backbones[name].pretraining]
    yield from (jobs.pretraining(experiment, name) for name in made_here)
    yield from (jobs.hub(experiment, name) for name in backbones if name not in made_here)
    for cell in matrix.cells(experiment):
        run = cell.run
        yield corpora.corpus(experiment, run.direction)
        yield corpora.testset(experiment, run.direction, cell.testset)
        yield jobs.training(experiment, run)
        yield jobs.canvas(experiment, run, cell.method)
        yield jobs.length_statistics(experiment, run)
        yield jobs.valley(experiment, run)
        yield jobs.decoding(experiment, run, cell.order, cell.steps)
        yield jobs.scoring(experiment, run.direction)
    for cell in matrix.autoregressive_cells(experiment):
        yield jobs.generation(experiment, cell.run)
    yield from (report.params(experiment) for report in reports.configured(experiment).values())


def test_a_canvas_knows_its_own_directions_ratios_only():
    run = matrix.Run("en-zh", "llada-8b", 1)
    assert json.loads(jobs.canvas(PAPER, run, "ev"))["selector"]["ratios"] == [0.70, 0.75, 0.80, 0.85, 0.90]
    assert json.loads(jobs.canvas(PAPER, run, "ratio"))["selector"] == {"ratios": 0.8, "reserve_eos_slot": False}
    assert json.loads(jobs.canvas(PAPER, run, "ratio_eos"))["selector"]["reserve_eos_slot"] is True
    assert json.loads(jobs.canvas(PAPER, run, "oracle"))["selector"] == {}


def test_how_adapters_are_run_goes_unsaid_where_it_is_usual():
    run, unmerged = matrix.Run("en-zh", "llada-8b", 1), PAPER.decoding.model_copy(update={"merge_adapter": False})
    other = PAPER.model_copy(update={"decoding": unmerged})
    decoding = (lambda it: jobs.canvas(it, run, "ev"), lambda it: jobs.decoding(it, run, "med", 32))
    for spec in (*decoding, lambda it: jobs.length_statistics(it, run)):
        usual, beside = json.loads(spec(PAPER)), json.loads(spec(other))
        assert beside == usual | {"merge_adapter": False} and "merge_adapter" not in usual
    assert not json.loads(jobs.generation(other, run))["merge_adapter"]
    assert jobs.training(other, run) == jobs.training(PAPER, run)


def test_the_precision_of_the_head_is_said_where_it_is_not_the_models():
    run = matrix.Run("en-zh", "llada-8b", 1)

    def spec(**settings):
        experiment = PAPER.model_copy(update={"decoding": PAPER.decoding.model_copy(update=settings)})
        return json.loads(jobs.canvas(experiment, run, "ev"))

    rounded = spec(head_precision="backbone")
    assert "head_precision" not in rounded  # as all results of before were made
    assert spec() == rounded | {"head_precision": "float32"}
    assert spec(precision="float32") == spec(precision="float32", head_precision="backbone")
    assert spec(precision="float32") == rounded | {"precision": "float32"}
    assert "head_precision" not in jobs.generation(PAPER, run)
    assert json.loads(jobs.canvas(PAPER, run, "ev"))["selector"].keys() == {"ratios", "score"}
    assert spec(exact_products=False)["selector"] == {**spec()["selector"], "exact": False}
    assert spec(mask_token="may_be_revealed") == spec() | {"mask_token": "may_be_revealed"}


@pytest.mark.parametrize("value", [True, False])
def test_padded_passes_are_said_where_the_config_says_them(value):
    """``auto`` says nothing: the device decides, and no result is repeated because of a device."""
    run = matrix.Run("en-zh", "llada-8b", 1)
    said = PAPER.model_copy(update={"decoding": PAPER.decoding.model_copy(update={"batch_invariant": value})})
    usual = json.loads(jobs.canvas(PAPER, run, "ev"))
    assert "batch_invariant" not in usual
    assert json.loads(jobs.canvas(said, run, "ev")) == usual | {"batch_invariant": value}
    assert jobs.generation(said, run) == jobs.generation(PAPER, run)


def test_compiled_layers_are_said_where_the_config_asks_for_them():
    run = matrix.Run("en-zh", "llada-8b", 1)
    compiled = PAPER.model_copy(update={"decoding": PAPER.decoding.model_copy(update={"compile_layers": True})})
    usual = json.loads(jobs.canvas(PAPER, run, "ev"))
    assert "compile_layers" not in usual
    assert json.loads(jobs.canvas(compiled, run, "ev")) == usual | {"compile_layers": True}


def test_an_adapter_is_valid_whatever_the_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = matrix.Run("en-zh", "llada-8b", 1)
    known = jobs.training(PAPER, run)
    assert json.loads(known)["processes"] == 8
    four = changed(PAPER, processes=4)
    assert json.loads(jobs.training(four, run))["processes"] == 4
    write_json(Path(run.folder(PAPER.results)) / "adapter/adapter.json", {"spec": json.loads(known)})
    assert jobs.training(four, run) == known
    assert jobs.training(four, matrix.Run("en-zh", "llada-8b", 2)) != jobs.training(
        PAPER, matrix.Run("en-zh", "llada-8b", 2)
    )
    assert json.loads(jobs.training(changed(four, learning_rate=1.0), run))["processes"] == 4


def test_an_adapter_is_valid_whatever_passes_auto_would_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, auto = matrix.Run("en-zh", "llada-8b", 1), changed(PAPER, micro_tokens="auto")
    known = jobs.training(changed(PAPER, micro_tokens=8192), run)
    assert jobs.training(auto, run) != known
    write_json(Path(run.folder(PAPER.results)) / "adapter/adapter.json", {"spec": json.loads(known)})
    assert jobs.training(auto, run) == known
    assert jobs.training(changed(auto, processes=4), run) == known
    for over in ({"micro_tokens": 4096}, {"micro_tokens": "auto", "learning_rate": 1.0}):
        assert jobs.training(changed(PAPER, **over), run) != known


def changed(experiment, **training):
    return experiment.model_copy(update={"training": experiment.training.model_copy(update=training)})


def test_a_method_that_sets_up_another_selector_says_so():
    run = matrix.Run("en-zh", "llada-8b", 1)
    assert json.loads(jobs.canvas(PAPER, run, "ev_sum")) == {
        **json.loads(jobs.canvas(PAPER, run, "ev")),
        "method": "ev_sum",
        "selector": {"selector": "ev", "score": "sum", "ratios": [0.70, 0.75, 0.80, 0.85, 0.90]},
    }


def test_what_is_measured_on_training_pairs_depends_on_no_methods_settings():
    spec = json.loads(jobs.length_statistics(PAPER, matrix.Run("en-zh", "llada-8b", 1)))
    assert (spec["pairs"], spec["bias_pairs"]) == (1000, 200)
    assert not spec.keys() & {"method", "selector", "seed"}
    fitted = [name for name in PAPER.length_methods.model_dump() if methods.needs_statistics(PAPER, name)]
    kinds = {methods.selector_name(PAPER, name) for name in fitted}
    assert kinds == {"cal", "ev_calibrated", "ev_prior", "ev_line", "length_line"}
    assert {"ev_line_5", "ev_line_mode", "ev_line_4_no_prior"} < set(fitted)


def test_a_valley_has_its_directions_grid_and_no_methods_settings():
    spec = json.loads(jobs.valley(PAPER, matrix.Run("en-zh", "llada-8b", 1)))
    assert (spec["ratios"][0], spec["ratios"][-1], len(spec["ratios"])) == (0.4, 1.5, 23)
    assert (spec["offset"], spec["sentences"], spec["seed"]) == (6, 500, PAPER.corpus.seed)
    assert not spec.keys() & {"method", "selector", "ratios_of", "backbones"}
    assert json.loads(jobs.valley(PAPER, matrix.Run("zh-en", "llada-8b", 1)))["ratios"][-1] == 2.2
    assert len(matrix.valley_cells(PAPER)) == 27
    none, more = (
        PAPER.model_copy(update={"valley": PAPER.valley.model_copy(update={"backbones": names})})
        for names in ([], ["llada-8b-prefix", "dream-7b"])
    )
    assert matrix.valley_cells(none) == []
    shown = [cell.run.backbone for cell in matrix.valley_cells(more)]
    assert shown == ["dream-7b"] * 9 + ["llada-8b-prefix"] * 9


def test_a_reassignment_says_whose_canvases_it_deals_and_how():
    spec = json.loads(jobs.canvas(PAPER, matrix.Run("en-zh", "llada-8b", 1), "ev_reassigned_deciles_3"))
    assert spec["selector"] == {"selector": "reassigned", "of": "ev", "seed": 3, "within": "deciles"}
    dealt = methods.reassigned_methods(PAPER)
    assert len(dealt) == 10 and all(name.startswith("ev_reassigned_") for name in dealt)


def test_an_orders_settings_change_its_own_decoding_alone():
    orders = {**PAPER.reveal_orders, "hybrid_50": PAPER.reveal_orders["hybrid_50"].model_copy(update={"p": 0.6})}
    other, run = PAPER.model_copy(update={"reveal_orders": orders}), matrix.Run("en-zh", "llada-8b", 1)
    changed = [jobs.decoding(other, run, order, 32) != jobs.decoding(PAPER, run, order, 32) for order in orders]
    assert dict(zip(orders, changed, strict=True)) == {name: name == "hybrid_50" for name in orders}
    assert jobs.decoding(other, run, "med", 32) == jobs.decoding(PAPER, run, "med", 32)


def test_a_chat_variant_differs_in_its_prompt_and_a_shifted_one_in_its_shift():
    def of(backbone):
        return json.loads(jobs.decoding(PAPER, matrix.Run("en-zh", backbone, 1), "med", 32))

    plain, chat, unshifted = (of(f"dream-instruct-{name}") for name in ("plain", "chat", "chat-unshifted"))
    assert plain["prompt"] in chat["prompt"]
    assert chat["prompt"].count("{src}") == 1
    assert {key for key in chat if chat[key] != unshifted[key]} == {"backbone", "shifted"}
    assert {key for key in chat if chat[key] != plain[key]} == {"backbone", "prompt"}


def test_a_test_set_is_as_small_as_the_smaller_of_its_limits():
    assert json.loads(corpora.testset(PAPER, "en-zh", "wmt22"))["limit"] is None
    assert json.loads(corpora.testset(PAPER, "en-zh", "wmt22-500"))["limit"] == 500
    assert json.loads(corpora.testset(DEMO, "en-zh", "wmt22-500"))["limit"] == 200


@pytest.mark.parametrize("experiment", [PAPER, DEMO], ids=["paper", "demo"])
def test_every_source_can_be_made(experiment):
    for name in experiment.sources:
        sources.make(json.loads(corpora.testset(experiment, "en-zh", name))["source"], SOURCES)


def test_a_limit_is_no_part_of_what_is_trained_on():
    narrow = {**PAPER.sources, "wmt19-zh-en": PAPER.sources["wmt19-zh-en"].model_copy(update={"limit": 9})}
    assert corpora.corpus(PAPER.model_copy(update={"sources": narrow}), "en-zh") == corpora.corpus(PAPER, "en-zh")


def test_an_autoregressive_training_knows_nothing_of_masks():
    loss = PAPER.training.loss.model_copy(update={"weight": "none", "eps": 0.1, "eos_padding": 4})
    other = PAPER.model_copy(update={"training": PAPER.training.model_copy(update={"loss": loss})})
    ar, masked = matrix.Run("en-zh", "llama3-8b", 1), matrix.Run("en-zh", "llada-8b", 1)
    assert jobs.training(other, ar) == jobs.training(PAPER, ar)
    assert jobs.training(other, masked) != jobs.training(PAPER, masked)


def test_training_knows_nothing_of_decoding():
    text = jobs.training(PAPER, matrix.Run("en-zh", "llada-8b", 1))
    assert not any(word in text for word in ("ratio", 'steps":32', "schedule", "order", "comet"))


def test_eos_padding_of_a_variant_is_in_its_adapters_spec_alone():
    def training(backbone):
        return json.loads(jobs.training(PAPER, matrix.Run("en-zh", backbone, 1)))

    plain, padded = training("llada-8b"), training("llada-8b-padded")
    assert (plain["training"]["loss"]["eos_padding"], padded["training"]["loss"]["eos_padding"]) == (0, 64)
    loss = padded["training"]["loss"] | {"eos_padding": 0}
    assert padded | {"backbone": "llada-8b", "training": padded["training"] | {"loss": loss}} == plain
    run = matrix.Run("en-zh", "llada-8b-padded", 1)
    assert "eos_padding" not in jobs.decoding(PAPER, run, "daedal_own", 32) + jobs.canvas(PAPER, run, "daedal_own")


def test_daedals_own_defaults_have_a_place_in_a_study_of_the_paper_that_trains_one_adapter_more():
    assert "eos_padding" not in PAPER.tables.studies
    named = PAPER.model_copy(update={"tables": PAPER.tables.model_copy(update={"studies": ["eos_padding"]})})
    cells = matrix.study_cells(named, "eos_padding")
    assert {cell.run for cell in cells} == {matrix.Run("en-zh", "llada-8b-padded", 1)}
    assert {("daedal_own", "daedal_own"), ("daedal_own", "med"), ("eos_probe", "med")} <= {
        (cell.method, cell.order) for cell in cells
    }


def test_daedal_starts_from_a_directions_ratio_or_from_its_own_slots():
    run = matrix.Run("en-de", "llada-8b", 1)
    start = [json.loads(jobs.canvas(PAPER, run, name))["selector"] for name in ("daedal", "daedal_own")]
    assert (start[0]["ratios"], start[0]["eos_window"], "start" in start[0]) == (1.8, 1, False)
    assert (start[1]["start"], start[1]["eos_window"], "ratios" in start[1]) == (64, 32, False)
    assert methods.order_settings(PAPER, "daedal_own") == {"order": "daedal", "order_settings": {"eos_window": 32}}
