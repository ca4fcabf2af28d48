"""What Snakemake would run: the whole matrix, nothing at all, and what a change touches, job by job."""

from __future__ import annotations

import time

import pytest
from workspace import LAST, MIXED, by_rule, on_gpu, sets

TABLES = {"main", "crossbb", "crossbb_bleu", "full_significance", "dissociation"}
FIGURES = {"hero", "crossbb", "dissociation"}
MAIN = {f"table {name}" for name in TABLES} | {f"figure {name}" for name in FIGURES}
MAIN |= {"all"}
CASES = {"table cases", "figure cases"}  # of one run
OF_EV = {"table coverage", "table faithfulness_summary", "table failure_buckets"} | CASES  # EV beside Ratio alone
EN_ZH = {"table faithfulness_summary"} | CASES  # the first is of the directions with groups by r
PAIRS = {"length_ratios en-zh", "length_ratios en-de", "table corpus"}  # by the tokenizers of all backbones
AGGREGATES = MAIN | OF_EV | {"table ar_reference"}
RUNS = {
    f"{direction}.{run}" for direction in ("en-zh", "en-de") for run in ("llada-tiny.1", "llada-tiny.2", "dream-7b.1")
}
AR_RUNS = {f"{direction}.llama3-tiny.1" for direction in ("en-zh", "en-de")}
BASELINE = sets(AR_RUNS, "autoregressive")
SETS = sets(RUNS) | BASELINE


def trained(runs):
    """Training, and all that follows it."""
    causal = {run for run in runs if ".llama3-tiny." in run}
    made = {f"train {run}" for run in runs} | {"table hyperparams"}
    return made | sets(runs - causal) | sets(causal, "autoregressive")


def of(part, among=RUNS):
    return {run for run in among if part in run}


def test_the_whole_matrix(paper):
    """Of all studies too: at most 450 jobs, 130 loads of a backbone beside timings, and 100 of COMET."""
    start = time.monotonic()
    planned = by_rule(paper.planned(last=True))
    assert time.monotonic() - start < 15
    assert sum(planned.values()) <= 450
    assert planned["translate"] + planned["diagnose"] <= 130
    assert planned["score"] == planned["translate"] <= 100


def test_the_matrix_without_studies(paper):
    planned = by_rule(paper.planned(over={"tables": {"studies": []}}))
    runs, autoregressive, instruct = 3 * 3 * 3, 3 * 3, 6  # backbones, directions, seeds; variants
    assert planned == {
        "corpus": 3,
        "testset": 3 + 1,
        "overlap": 3 + 1,
        "tokens": 3,
        "length_ratios": 3,
        "fetch_backbone": 3 + 1 + 1,  # the variants of one checkpoint share it
        "fetch_comet": 1,
        "train": runs + autoregressive + 4,  # two variants are zero-shot
        "translate": runs + autoregressive + instruct,
        "score": runs + autoregressive + instruct,
        "diagnose": runs,
        "table": 7 + 3 + 2 + 1 + 1,  # with those of autoregressive backbones and of Dream-Instruct
        "figure": 5 + 2,  # with those of all-mask canvases
        "all": 1,
    }


def test_the_main_table_alone_needs_one_backbone(paper):
    planned = by_rule(paper.planned("results/tables/main.float.tex"))
    assert planned["train"] == planned["translate"] == planned["score"] == 9
    assert sum(planned.values()) <= 40 and planned["table"] == 1


def test_a_second_run_does_nothing(finished):
    assert not finished.planned()


def test_another_device_repeats_only_the_table_of_gpu_hours(finished):
    assert finished.planned(over={"device": "cuda"}, last=True).keys() <= LAST | {"all"}


@pytest.mark.parametrize(
    "over",
    [
        {"store": False},
        {"models": "elsewhere"},
        {"backbones": {"dream-7b": {"folder": "a/copy"}}},
        {"training": {"checkpoint_every": 7, "activation_checkpointing": True, "processes": 4}},
    ],
    ids=lambda over: "-".join(map(str, over.items())),
)
def test_how_and_where_a_job_runs_repeats_nothing(finished, over):
    assert not finished.planned(over=over)


def test_threads_and_cores_repeat_nothing(finished):
    assert not finished.planned("--cores", "7", "--set-threads", "train=4", "translate=3")


def test_an_edit_of_a_script_repeats_nothing_in_any_profile(finished):
    """Code is carried by the revisions, which are params."""
    script = finished.folder / "workflow/scripts/translate.py"
    text = script.read_text()
    try:
        script.write_text(f"{text}# a word\n")
        for profile in ([], ["--workflow-profile", "demo"], ["--profile", "slurm"]):
            assert not finished.planned(*profile), profile
    finally:
        script.write_text(text)


def test_shards_of_a_set_share_its_sentences(paper):
    over = {"decoding": {"shards": 2}, "device": "cuda"}
    text = paper.dry_run("-p", "results/tables/crossbb.tex", over=over)
    assert on_gpu(text) == {"train": 27, "shard": 2 * 27, "score": 27}
    assert by_rule(paper.planned("results/tables/crossbb.tex", over=over))["translate"] == 27


def test_one_cell_is_computed_alone(paper):
    planned = paper.planned("results/en-zh/llada-8b/seed1/wmt22.ev-med-T32/scores.jsonl")
    run = "en-zh.llada-8b.1"
    made = sets([run], "wmt22.ev-med-T32") | {"corpus en-zh", "testset en-zh.wmt22", f"train {run}"}
    assert planned.keys() == made | {name for name in planned if name.startswith("fetch")}


def test_a_set_that_is_none_is_one_clear_error(paper):
    with pytest.raises(AssertionError, match=r"results/en-zh/llada-8b/seed1/matrixx: is no set .* Did you mean matrix"):
        paper.planned("results/en-zh/llada-8b/seed1/matrixx/scores.jsonl")


def test_evs_ratios_of_one_direction(finished):
    """The sets with EV of that direction, and what shows them."""
    over = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}}
    expected = sets(of("en-zh")) | AGGREGATES | {"figure method"}
    assert finished.planned(over=over).keys() == expected - {"table ar_reference"} | {"table ar_reference"}


def test_a_further_metric_scores_anew_and_translates_nothing(finished):
    kiwi = {"metric": "comet", "label": "Kiwi", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}
    planned = finished.planned(over={"scoring": {"metrics": {"kiwi": kiwi}}}).keys()
    scored = {name for name in SETS if name.startswith("score")}
    assert planned == scored | {"fetch_comet Unbabel--wmt22-cometkiwi-da"} | AGGREGATES


def test_a_method_in_a_study_of_its_own_touches_nothing_finished(finished):
    study = {"directions": ["en-zh"], "methods": ["oracle", "ratio", "ev", "ev_wide"]}
    over = {"studies": {"mine": study}, "tables": {"studies": ["mine"]}}
    assert finished.planned(over=over).keys() == sets(["en-zh.llada-tiny.1"], "mine") | {"table mine", "all"}


VALLEY = {"valley": {"backbones": ["llada-tiny"]}}


def test_a_valley_reads_finished_runs_for_its_figures_alone(finished):
    diagnosed = {f"diagnose {run}" for run in of(".llada-tiny.")}
    figures = {"figure entropy_valley", "figure selector_checks", "all"}
    assert finished.planned(over=VALLEY).keys() == diagnosed | figures


def test_other_length_statistics_repeat_the_sets_of_methods_that_use_them(finished):
    assert finished.planned(over={"length_statistics": {"pairs": 50}}).keys() == sets(RUNS) | AGGREGATES
    assert not finished.planned(over={"length_head_training": {"epochs": 2}})


def test_the_learning_rate_keeps_corpora_and_pretraining(finished):
    over = {"training": {"learning_rate": 5.0e-4}}
    assert finished.planned(over=over).keys() == trained(RUNS | AR_RUNS) | AGGREGATES


def test_resamples_touch_no_cell(finished):
    assert finished.planned(over={"analysis": {"resamples": 50}}).keys() <= AGGREGATES


def test_a_seed_more_runs_that_seed_alone(finished):
    over = {"matrix": {"seeds": [1, 2, 3]}}
    new = {f"{direction}.llada-tiny.3" for direction in ("en-zh", "en-de")}
    assert finished.planned(over=over).keys() == trained(new) | AGGREGATES - CASES


def test_a_prompt_repeats_its_direction_and_backbones_pretrained_on_it(finished):
    over = {"directions": {"en-de": {"prompt": "{src} = "}}}
    made_here = {"pretrain llada-tiny", "pretrain llama3-tiny"}
    counted = {"tokens en-zh.llada-tiny.grammar", "tokens en-de.llada-tiny.grammar"}  # by a tokenizer made anew
    expected = made_here | counted | PAIRS | trained(of("llada-tiny") | of("en-de") | AR_RUNS) | AGGREGATES
    assert finished.planned(over=over).keys() == expected | {"table prompts"}


def test_decoding_otherwise_keeps_the_adapters(finished):
    assert finished.planned(over={"decoding": {"precision": "bfloat16"}}).keys() == SETS | AGGREGATES


@pytest.mark.parametrize("over", [{"steps": [32, 16]}, {"orders": ["med", "random"]}], ids=["budgets", "orders"])
def test_another_budget_or_order_of_the_matrix_repeats_its_sets_and_has_its_table(finished, over):
    """A repeated set takes what is finished from the store."""
    assert finished.planned(over={"matrix": over}).keys() == sets(RUNS) | AGGREGATES | {"table matrix"}


def test_beams_touch_the_baseline_alone(finished):
    planned = finished.planned(over={"autoregressive": {"max_new_tokens": 9}}, last=True).keys()
    assert planned == BASELINE | {"table ar_reference", "figure hero", "all"} | LAST


def test_no_autoregressive_backbone_no_table_of_it(finished):
    others = {"figure hero", "table hyperparams", "table prompts", "all"}
    assert finished.planned(over={"autoregressive": {"backbones": []}}).keys() == PAIRS | others


def test_variants_share_a_checkpoint(finished):
    """Another shift re-reads nothing and trains anew; zero-shot trains nothing; neither touches the backbone."""
    variants = {"flat": {"shifted": False}, "bare": {"zero_shot": True}}
    backbones = {name: {"variant_of": "dream-7b", "label": name, **keys} for name, keys in variants.items()}
    over = {
        "backbones": backbones,
        "instruct": {"backbones": ["flat", "bare"], "direction": "en-zh", "seed": 1, "testset": "grammar"},
    }
    made = {"train en-zh.flat.1"} | sets({"en-zh.flat.1", "en-zh.bare.1"}, "instruct")
    assert finished.planned(over=over).keys() == made | {"table dream_instruct", "all"}


def test_a_reading_of_decoding_shares_the_adapter(finished):
    """A variant that changes nothing of training decodes anew, with the adapter that is there."""
    floors = {
        "variant_of": "llada-tiny",
        "label": "floors",
        "adapter_of": "llada-tiny",
        "decoding": {"schedule": "floors"},
    }
    matrix = {**MIXED["matrix"], "backbones": ["llada-tiny", "floors"], "seeds_of": {"floors": [1]}}
    planned = finished.planned(over={"backbones": {"floors": floors}, "matrix": matrix}).keys()
    assert sets({"en-zh.floors.1", "en-de.floors.1"}) | {"table hyperparams"} <= planned
    assert not {job for job in planned if job.startswith(("train ", "pretrain ")) or ".llada-tiny." in job}


def test_an_edited_corpus_file_of_the_users_own_repeats_what_is_made_from_it(tmp_path):
    from workspace import Workspace

    own = {"name": "files", "source": "own.en", "target": "own.zh"}
    over = {"sources": {"own": own}, "directions": {"en-zh": {"train": "own"}}}
    workspace = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", over)
    for name in ("own.en", "own.zh"):
        (tmp_path / name).write_text("a\n")
    workspace.run("--cores", "2")
    assert not workspace.planned()
    time.sleep(0.02)
    (tmp_path / "own.en").write_text("b\n")
    assert {"corpus en-zh", "train en-zh.llada-tiny.1"} <= workspace.planned().keys()
