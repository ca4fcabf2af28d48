"""What Snakemake would run: the whole matrix, nothing at all, and what a change touches, job by job."""

from __future__ import annotations

import json
import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from workspace import COMPARED, LAST, METHODS, MIXED, ROOT, by_rule, jobs, loading, on_gpu, scoring

from entropy_valley.driver import Machine
from entropy_valley.experiment import base_files, load_files
from entropy_valley.experiment.matrix import Run
from entropy_valley.experiment.params.jobs import training

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


def generated(runs):
    """The jobs of autoregressive runs."""
    names = {name for run in runs for name in (f"generate {run}.grammar.4", f"score {run}.grammar.beam4")}
    return names | scoring(runs)


def fitted(runs):
    """What the fitted method of these runs is fitted to."""
    return {f"length_statistics {run}" for run in runs}


def trained(runs):
    """Training, and all that follows it."""
    causal = {run for run in runs if ".llama3-tiny." in run}
    made = {f"train {run}" for run in runs} | {"table hyperparams"}
    return made | fitted(runs - causal) | jobs(runs - causal) | generated(causal)


def of(part, among=RUNS):
    return {run for run in among if part in run}


def test_the_papers_matrix(paper):
    start = time.monotonic()
    planned = paper.planned(over={"tables": {"studies": []}})
    assert time.monotonic() - start < 15
    cells = 3 * 3 * 3 * 4  # backbones, directions, seeds, methods
    autoregressive, instruct = 3 * 3, 6 * 3  # directions, seeds; variants, methods
    assert by_rule(planned) == {
        "check": 1,
        "corpus": 3,
        "testset": 3 + 1,
        "overlap": 3 + 1,
        "tokens": 3,
        "length_ratios": 3,
        "fetch_backbone": 3 + 1 + 1,  # the variants of one checkpoint share it
        "fetch_comet": 1,
        "train": 27 + autoregressive + 4,  # two variants are zero-shot
        **dict.fromkeys(("canvas", "decode"), cells + instruct),
        "inference": 27 + 6,  # one for each run
        "generate": autoregressive,
        "comet": 3 + 1,  # one for each direction and test set
        "score": cells + autoregressive + instruct,
        "valley": 27,
        "table": 7 + 3 + 2 + 1 + 1,  # with those of autoregressive backbones and of Dream-Instruct
        "figure": 5 + 2,  # with those of all-mask canvases
        "all": 1,
    }


def test_the_main_table_alone_needs_one_backbone(paper):
    planned = paper.planned("results/tables/main.float.tex")
    assert by_rule(planned)["train"] == 9
    assert {job.split(".")[1] for job in planned if job.startswith("train")} == {"llada-8b"}
    assert not AGGREGATES - {"table main"} & planned.keys()


def test_a_second_run_does_nothing(finished):
    assert not finished.planned()


@pytest.mark.parametrize(
    "over",
    [
        {"device": "cuda"},
        {"store": False},
        {"models": "elsewhere"},
        {"backbones": {"dream-7b": {"folder": "a/copy"}}},
        {"training": {"checkpoint_every": 7, "activation_checkpointing": True}},
    ],
    ids=lambda over: "-".join(map(str, over.items())),
)
def test_how_and_where_a_job_runs_repeats_nothing(finished, over):
    assert not finished.planned(over=over)


def test_another_number_of_processes_repeats_only_what_is_trained_anew(finished, tmp_path):
    """Adapters keep the number that they were trained with; the stubs' adapters say nothing, so they are trained."""
    four = {"training": {"processes": 4}}
    assert finished.planned(over=four).keys() == trained(RUNS | AR_RUNS) | AGGREGATES
    moved = finished.copied(tmp_path / "moved")
    experiment = load_files([*base_files(ROOT), *(moved.folder / name for name in moved.config_files())])
    for facts in moved.folder.glob("results/demo/*/*/seed*/adapter/adapter.json"):
        direction, backbone, seed = facts.parts[-5:-2]
        spec = training(experiment, Run(direction, backbone, int(seed.removeprefix("seed"))))
        then = facts.stat().st_mtime_ns
        facts.write_text(json.dumps({"spec": json.loads(spec)}))
        os.utime(facts, ns=(then, then))
    assert not moved.planned(over=four)
    ranks = {"training": {"processes": 4, "lora": {"rank": 4}}}
    assert moved.planned(over=ranks).keys() == trained(RUNS | AR_RUNS) | AGGREGATES


def test_threads_and_cores_repeat_nothing(finished):
    assert not finished.planned("--cores", "7", "--set-threads", "train=4", "decode=3")


def test_a_word_in_a_shell_line_repeats_nothing_in_any_profile(finished):
    """Code is carried by the revisions, which are params."""
    rule = finished.folder / "workflow/rules/training.smk"
    text = rule.read_text()
    try:
        rule.write_text(text.replace("python workflow/scripts/train.py", "python -u workflow/scripts/train.py"))
        assert rule.read_text() != text
        for profile in ([], ["--workflow-profile", "demo"], ["--profile", "slurm"]):
            assert not finished.planned(*profile), profile
    finally:
        rule.write_text(text)


def test_results_of_the_version_before_stay_valid_and_a_changed_rank_repeats_them(finished, tmp_path):
    """Their adapters and checkpoints were folders to Snakemake, and so are in its records."""
    old = finished.copied(tmp_path / "old")
    records = old.folder / ".snakemake/metadata"
    moved = {record: folder_of(record) for record in records.iterdir()}
    for record, folder in moved.items():
        content = json.loads(record.read_text())
        content["input"] = sorted(re.sub(STANDS_FOR_A_FOLDER, "", path) for path in content["input"])
        record.unlink()
        (records / urlsafe_b64encode(folder.encode()).decode()).write_text(json.dumps(content))
    assert len({folder for record, folder in moved.items() if folder != named(record)}) == 6 + 2 + 2 + 1
    assert not old.planned()
    assert old.planned(over={"training": {"lora": {"rank": 4}}}).keys() == trained(RUNS | AR_RUNS) | AGGREGATES


STANDS_FOR_A_FOLDER = r"/(adapter|checkpoint|comet)\.json$"


def named(record):
    """The path that a record of Snakemake is about."""
    return urlsafe_b64decode(record.name).decode()


def folder_of(record):
    return re.sub(STANDS_FOR_A_FOLDER, "", named(record))


def test_all_by_force_loads_each_model_once(finished):
    planned = by_rule(finished.planned("--forceall"))
    assert (planned["inference"], planned["comet"]) == (len(RUNS), 2)
    again = finished.planned("--forcerun", "decode", over={"device": "cuda"})
    assert by_rule(again)["inference"] == len(RUNS)


def test_without_a_store_each_job_loads_the_model_itself(paper):
    planned = by_rule(paper.planned("results/tables/main.tex", over={"store": False}))
    assert not planned.keys() & {"inference", "comet"}
    text = paper.dry_run("-p", "results/tables/main.tex", over={"store": False, "device": "cuda"})
    assert on_gpu(text) == {
        "check": 1,
        "train": 9,
        "canvas": 9,
        "decode": 36,
        "score": 36,
    }  # Oracle and Ratio ask no model


def test_shards_share_the_sentences_of_a_run_and_read_what_methods_are_fitted_to(paper):
    over = {"decoding": {"shards": 2}, "matrix": {"methods": [*COMPARED, "cal"]}, "device": "cuda"}
    text = paper.dry_run("-p", "results/tables/crossbb.tex", over=over)
    assert on_gpu(text) == {"check": 1, "train": 27, "length_statistics": 27, "inference": 2 * 27, "comet": 3}
    assert "--shard 1/2 --statistics results/en-zh/llada-8b/seed1/length_statistics.json" in text


def test_one_cell_is_computed_alone(paper):
    folder = "results/en-zh/llada-8b/seed1/wmt22/ev"
    planned = paper.planned(f"{folder}/med-T32/scores.json")
    run = {"en-zh.llada-8b.1"}
    made = jobs(run, ["ev"], "wmt22") | {"check", "corpus en-zh", "testset en-zh.wmt22", "train en-zh.llada-8b.1"}
    fetched = {name for name in planned if name.startswith("fetch")}
    assert planned.keys() == made | fetched


ON_CUDA = {"device": "cuda"}


def test_every_job_on_a_gpu_waits_for_one_check(paper):
    one = {"seeds": [1], "directions": ["en-zh"]}
    text = paper.dry_run("-p", over={"store": False, "matrix": one, "tables": {"studies": []}, **ON_CUDA})
    blocks = re.findall(r"^rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE)
    waiting = {rule for rule, body in blocks if re.search(r"input: .*/work/stamps/check/[0-9a-f]{16}", body)}
    assert on_gpu(text).keys() - {"check"} <= waiting
    assert on_gpu(text)["check"] == 1


def test_a_check_repeats_nothing_that_is_finished(finished):
    """A seed more needs a check; the others have run without one."""
    new = {f"{direction}.llada-tiny.3" for direction in ("en-zh", "en-de")}
    over = {"matrix": {"seeds": [1, 2, 3]}, **ON_CUDA}
    assert finished.planned(over=over).keys() == trained(new) | AGGREGATES - CASES | {"check"}


def test_a_check_is_done_once(finished, tmp_path):
    checked = finished.copied(tmp_path / "checked")
    over = {"matrix": {"seeds": [1, 2, 3]}, **ON_CUDA}
    (stamp,) = set(re.findall(r"results/\S+/stamps/check/[0-9a-f]{16}", checked.dry_run("-p", over=over)))
    (checked.folder / stamp).parent.mkdir(parents=True)
    (checked.folder / stamp).touch()
    planned = checked.planned(over=over).keys()
    assert "check" not in planned
    (checked.folder / stamp).unlink()  # and what was made after a check does not follow the next one
    assert checked.planned(over=over).keys() == planned | {"check"}
    assert not checked.planned(over=ON_CUDA)


@pytest.mark.skipif(Machine.here().problem() is None, reason="needs a machine without a GPU")
def test_without_a_gpu_a_local_run_ends_before_it_downloads_anything(paper):
    said = paper.run("--cores", "1", "results/tables/main.tex", fails=True)
    assert re.search(r"device: cuda: .*torch 2\S+ is (a CPU build|built for CUDA .*); this machine has ", said)
    assert not (paper.folder / "results/backbones").exists()
    assert not (paper.folder / ".snakemake/locks").exists() or not [*(paper.folder / ".snakemake/locks").iterdir()]


def test_evs_ratios_of_one_direction(finished):
    over = {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}}
    assert finished.planned(over=over).keys() == jobs(of("en-zh"), ["ev"]) | AGGREGATES | {"figure method"}


def test_a_further_metric_scores_anew_and_computes_nothing_else(finished):
    kiwi = {"metric": "comet", "label": "Kiwi", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}
    planned = finished.planned(over={"scoring": {"metrics": {"kiwi": kiwi}}}).keys()
    scored = {f"score {run}.grammar.{method}/med-T32" for run in RUNS for method in METHODS}
    scored |= {f"score {run}.grammar.beam4" for run in AR_RUNS}
    assert planned == scored | scoring(RUNS) | {"fetch_comet Unbabel--wmt22-cometkiwi-da"} | AGGREGATES


def test_ratios_ratio_of_one_direction_and_of_the_method_that_takes_its_ratios(finished):
    over = {"length_methods": {"ratio": {"ratios": {"en-de": 1.5}}}}
    assert finished.planned(over=over).keys() == jobs(of("en-de"), ["ratio", "cal"]) | AGGREGATES - EN_ZH


def test_the_patience_of_a_fitted_method_measures_nothing_anew(finished):
    over = {"length_methods": {"cal": {"patience": 3}}}
    assert finished.planned(over=over).keys() == jobs(RUNS, ["cal"]) | AGGREGATES - OF_EV


VALLEY = {"valley": {"backbones": ["llada-tiny"]}}


def test_a_valley_reads_finished_runs_for_its_figures_alone(finished):
    valleys = {f"valley {run}.grammar" for run in of(".llada-tiny.")}
    figures = {"figure entropy_valley", "figure selector_checks", "all"}
    assert finished.planned(over=VALLEY).keys() == valleys | loading(of(".llada-tiny.")) | figures


def test_other_length_statistics_touch_no_method_without_them(finished):
    over = {"length_statistics": {"pairs": 50}}
    assert finished.planned(over=over).keys() == fitted(RUNS) | jobs(RUNS, ["cal"]) | AGGREGATES - OF_EV


def test_a_method_that_comes_later_is_fitted_by_the_statistics_that_are_there(finished):
    """The job that loads the model reads them; where they are missing too, it makes them itself."""
    over, statistics = {"matrix": {"methods": [*METHODS, "ev_line"]}}, "length_statistics.json"
    text = finished.dry_run("--printshellcmds", over=over)
    loads = [line for line in text.splitlines() if "scripts/inference.py" in line]
    assert len(loads) == len(RUNS) and all(statistics in line for line in loads)
    over["length_statistics"] = {"pairs": 50}
    text = finished.dry_run("--printshellcmds", over=over)
    assert not [line for line in text.splitlines() if "scripts/inference.py" in line and statistics in line]


def test_only_a_method_that_asks_plans_a_length_head(finished):
    over = {"matrix": {"methods": [*METHODS, "neighbours", "length_head", "length_head_beam5"]}}
    heads = {f"length_head {run}" for run in RUNS}
    new = jobs(RUNS, ["neighbours", "length_head", "length_head_beam5"])
    assert finished.planned(over=over).keys() == heads | new | AGGREGATES - OF_EV
    assert not finished.planned(over={"length_head_training": {"epochs": 2}})


def test_a_beam_trains_no_head_anew(finished):
    canvas = "results/demo/en-zh/llada-tiny/seed1/grammar/length_head/canvas.jsonl"
    for beam in (1, 5):
        over = {
            "matrix": {"methods": [*METHODS, "length_head"]},
            "length_methods": {"length_head": {"beam": beam}},
        }
        run = "en-zh.llada-tiny.1"
        made = {f"length_head {run}", f"canvas {run}.grammar.length_head"}
        assert finished.planned(canvas, over=over).keys() == made | loading([run])


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
    assert (
        finished.planned(over={"decoding": {"precision": "bfloat16"}}).keys()
        == fitted(RUNS) | jobs(RUNS) | generated(AR_RUNS) | AGGREGATES
    )


def test_a_step_budget_more_decodes_on_the_same_canvases(finished):
    planned = finished.planned(
        "results/demo/en-zh/llada-tiny/seed1/grammar/ev/med-T16/scores.json", over={"matrix": {"steps": [16, 32]}}
    )
    run = "en-zh.llada-tiny.1"
    cell = {f"decode {run}.grammar.ev.med.16", f"score {run}.grammar.ev/med-T16"}
    assert planned.keys() == cell | loading([run]) | scoring([run])


@pytest.mark.parametrize("over", [{"steps": [32, 16]}, {"orders": ["med", "random"]}], ids=["budgets", "orders"])
def test_another_budget_or_order_of_the_matrix_is_decoded_and_has_its_table(finished, over):
    order, steps = ("med", 16) if "steps" in over else ("random", 32)
    systems = {f"{run}.grammar.{method}" for run in RUNS for method in METHODS}
    decoded = {f"decode {name}.{order}.{steps}" for name in systems}
    scored = {f"score {name}/{order}-T{steps}" for name in systems}
    planned = finished.planned(over={"matrix": over}).keys()
    assert planned == decoded | scored | loading(RUNS) | scoring(RUNS) | {"table matrix", "all"}


def test_beams_touch_no_canvas(finished):
    planned = finished.planned(over={"autoregressive": {"max_new_tokens": 9}}, last=True).keys()
    assert planned == generated(AR_RUNS) | {"table ar_reference", "figure hero", "all"} | LAST


@pytest.mark.parametrize(
    "target", ["beam8/hypotheses.jsonl", "ev/med-T32/hypotheses.jsonl"], ids=["other beams", "a canvas"]
)
def test_an_autoregressive_backbone_is_decoded_as_the_config_says_alone(finished, target):
    with pytest.raises(AssertionError, match="MissingRule"):
        finished.planned(f"results/demo/en-zh/llama3-tiny/seed1/grammar/{target}")


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
    runs = {"en-zh.flat.1", "en-zh.bare.1"}
    assert finished.planned(over=over).keys() == {"train en-zh.flat.1"} | jobs(runs, COMPARED) | {
        "table dream_instruct",
        "all",
    }


def test_a_reading_of_decoding_shares_the_adapter(finished):
    """A variant that changes nothing of training decodes anew, with the adapter that is there."""
    floors = {
        "variant_of": "llada-tiny",
        "label": "floors",
        "adapter_of": "llada-tiny",
        "decoding": {"schedule": "floors"},
    }
    matrix = {**MIXED["matrix"], "backbones": ["llada-tiny", "floors"], "seeds_of": {"floors": [1]}}
    over = {"backbones": {"floors": floors}, "matrix": matrix}
    planned = finished.planned(over=over).keys()
    runs = {"en-zh.floors.1", "en-de.floors.1"}
    assert jobs(runs) | fitted(runs) | {"table hyperparams"} <= planned
    assert not {job for job in planned if job.startswith(("train ", "pretrain ", "check "))}
    assert not {job for job in planned if ".llada-tiny." in job}
