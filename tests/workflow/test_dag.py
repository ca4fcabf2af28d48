"""What Snakemake would run: the whole matrix, nothing at all, and what a change touches, job by job."""

from __future__ import annotations

import re

import pytest
from workspace import LAST, METHODS, MIXED, ROOT, Workspace, by_rule, on_gpu, sets

from entropy_valley.config import base_files, load_files, matrix
from entropy_valley.config.matrix import sets_of
from entropy_valley.runs.inventory import Inventory

TABLES = {"main", "crossbb", "crossbb_bleu", "full_significance", "dissociation"}
FIGURES = {"hero", "crossbb", "dissociation"}
MAIN = {f"table {name}" for name in TABLES} | {f"figure {name}" for name in FIGURES} | {"all"}
CASES = {"table cases", "figure cases"}  # of one run
OF_EV = {"table coverage", "table faithfulness_summary", "table failure_buckets"} | CASES  # EV beside Ratio alone
PAIRS = {"length_ratios en-zh", "length_ratios en-de", "table corpus"}  # by the tokenizers of all backbones
AGGREGATES = MAIN | OF_EV | {"table ar_reference"}
RUN = "en-zh.llada-tiny.1"
RUNS = {
    f"{direction}.{run}" for direction in ("en-zh", "en-de") for run in ("llada-tiny.1", "llada-tiny.2", "dream-7b.1")
}
AR_RUNS = {f"{direction}.llama3-tiny.1" for direction in ("en-zh", "en-de")}
BASELINE = sets(AR_RUNS, "autoregressive")
SETS = sets(RUNS) | BASELINE


def trained(runs):
    """Training, and all that follows it."""
    causal = {run for run in runs if ".llama3-tiny." in run}
    jobs = {f"train {run}" for run in runs} | {"table hyperparams"}
    return jobs | sets(runs - causal) | sets(causal, "autoregressive")


def of(part):
    return {run for run in RUNS if part in run}


# --- the paper's matrix, nothing done


def test_the_whole_matrix(paper):
    """With all studies: every table and figure, each set once, few loads of a model, no further training."""
    text = paper.dry_run("-p", over={"device": "cuda"})
    planned = paper.jobs(text)
    assert set(planned.values()) == {1}
    reported = {f"table {name}" for name in ("multi_candidate", "ev_line", "order_sweep_summary", "selector_checks")}
    assert reported | {"table full_pareto", "figure pareto", "figure selector_comparison"} <= planned.keys()
    counts = by_rule(planned)
    assert sum(counts.values()) <= 450
    assert counts["train"] == 27 + 9 + 4 + 2  # no study trains anything but one of two pools
    assert counts["translate"] + counts["shard"] + counts["diagnose"] <= 180  # loads of a backbone, beside timings
    assert counts["score"] == counts["translate"] <= 100
    assert on_gpu(text).keys() == {"train", "translate", "shard", "diagnose", "latency", "score"}


def test_the_matrix_without_studies(paper):
    planned = by_rule(paper.planned(over={"tables": {"studies": []}}))
    runs, autoregressive, instruct = 3 * 3 * 3, 3 * 3, 6  # backbones, directions, seeds; variants
    assert planned == {
        "fetch_dataset": 2,  # zh-en and de-en
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


def test_a_table_a_cell_or_shards_alone(paper):
    planned = by_rule(paper.planned("results/tables/main.float.tex"))
    assert planned["train"] == planned["translate"] == planned["score"] == 9
    assert sum(planned.values()) <= 45 and planned["table"] == 1
    cell = paper.planned("results/en-zh/llada-8b/seed1/wmt22.ev-med-T32/scores.jsonl")
    run = "en-zh.llada-8b.1"
    jobs = sets([run], "wmt22.ev-med-T32") | {"corpus en-zh", "testset en-zh.wmt22", f"train {run}"}
    assert cell.keys() == jobs | {name for name in cell if name.startswith("fetch")}
    over = {"decoding": {"shards": 2}, "device": "cuda"}
    text = paper.dry_run("-p", "results/tables/crossbb.tex", over=over)
    assert on_gpu(text) == {"train": 27, "shard": 2 * 27, "translate": 27, "score": 27}
    assert by_rule(paper.jobs(text))["translate"] == 27


def test_a_set_that_is_none_is_one_clear_error(paper):
    text = paper.run("-n", "results/en-zh/llada-8b/seed1/matrixx/scores.jsonl", fails=True)
    assert re.search(r"results/en-zh/llada-8b/seed1/matrixx: is no set .* Did you mean matrix", text)


def test_packs_are_asked_for_and_forms_bring_their_tables(paper):
    small = {"backbones": ["llada-8b"], "directions": ["en-zh", "zh-en"], "seeds": [1]}
    over = {"matrix": small, "tables": {"studies": []}, "human_evaluation": {"annotators": ["A", "B"]}}
    packs = by_rule(paper.planned("packs", over=over))
    assert (packs["human_pack"], packs["human_forms"], packs["human_ratings"]) == (2, 4, 0)  # directions, annotators
    assert "human_ratings" not in by_rule(paper.planned(over=over))  # `all` waits for nobody
    (paper.folder / "human_evaluation").mkdir()
    for name in ("en-zh.A.csv", "zh-en.B.xlsx", "en-zh.notes.txt"):
        (paper.folder / "human_evaluation" / name).touch()
    planned = paper.planned(over=over)
    assert {"table human_eval", "table human_eval_details", "figure human_eval"} <= planned.keys()
    assert by_rule(planned)["human_ratings"] == 2


# --- a small matrix, everything done


def test_how_and_where_jobs_run_repeats_nothing(finished):
    assert not finished.planned()
    over = {
        "store": False,
        "models": "elsewhere",
        "backbones": {"dream-7b": {"folder": "a/copy"}},
        "training": {"checkpoint_every": 7, "activation_checkpointing": True, "processes": 4},
        "length_head_training": {"epochs": 2},  # no method uses it
        "studies": {"mine": {"directions": ["en-zh"], "methods": ["lr_style"]}},  # it is not listed
    }
    assert not finished.planned("--cores", "7", "--set-threads", "train=4", "translate=3", over=over)
    assert finished.planned(over={"device": "cuda"}, last=True).keys() <= LAST | {"all"}  # the table of GPU-hours


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


KIWI = {"metric": "comet", "label": "Kiwi", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}
INSTRUCT = {"backbones": ["flat", "bare"], "direction": "en-zh", "seed": 1, "testset": "grammar"}
FLAT = {"variant_of": "dream-7b", "label": "flat", "shifted": False}
BARE = {"variant_of": "dream-7b", "label": "bare", "zero_shot": True}
PROMPT_TOKENS = {f"tokens {direction}.llada-tiny.grammar" for direction in ("en-zh", "en-de")}
SEED3 = {f"{direction}.llada-tiny.3" for direction in ("en-zh", "en-de")}
CHANGES = {
    "ratios of one direction": (
        {"length_methods": {"ev": {"ratios": {"en-zh": [0.6, 0.8, 1.0]}}}},
        sets(of("en-zh")) | AGGREGATES | {"figure method"},
    ),
    "a metric more": (
        {"scoring": {"metrics": {"kiwi": KIWI}}},
        {name for name in SETS if name.startswith("score")} | {"fetch_comet Unbabel--wmt22-cometkiwi-da"} | AGGREGATES,
    ),
    "all-mask canvases of finished runs": (
        {"valley": {"backbones": ["llada-tiny"]}},
        {f"diagnose {run}" for run in of(".llada-tiny.1")} | {"figure entropy_valley", "figure selector_checks", "all"},
    ),
    "statistics that a method uses": ({"length_statistics": {"pairs": 50}}, sets(RUNS) | AGGREGATES),
    "the learning rate": ({"training": {"learning_rate": 5.0e-4}}, trained(RUNS | AR_RUNS) | AGGREGATES),
    "a seed more": ({"matrix": {"seeds": [1, 2, 3]}}, trained(SEED3) | AGGREGATES - CASES),
    "a prompt, with backbones pre-trained on it": (
        {"directions": {"en-de": {"prompt": "{src} = "}}},
        {"pretrain llada-tiny.1", "pretrain llama3-tiny.4", "table prompts"}
        | PROMPT_TOKENS
        | PAIRS
        | trained(of("llada-tiny") | of("en-de") | AR_RUNS)
        | AGGREGATES,
    ),
    "a pre-training for each run": (  # that of seed 1 is there, with all that follows
        {"backbones": {"llada-tiny": {"pretraining": {"seed": None}}}},
        {"pretrain llada-tiny.2"} | trained(of(".llada-tiny.2")) | AGGREGATES - CASES,
    ),
    "the precision of decoding": ({"decoding": {"precision": "bfloat16"}}, SETS | AGGREGATES),
    "a budget and an order more": (  # a repeated set takes what is finished from the store
        {"matrix": {"steps": [32, 16], "orders": ["med", "random"]}},
        sets(RUNS) | AGGREGATES | {"table matrix"},
    ),
    "beams": (
        {"autoregressive": {"max_new_tokens": 9}},
        BASELINE | {"table ar_reference", "figure hero", "all"},
    ),
    "no autoregressive backbone": (
        {"autoregressive": {"backbones": []}},
        PAIRS | {"figure hero", "table hyperparams", "table prompts", "all"},
    ),
    "variants of one checkpoint": (  # zero-shot trains nothing; neither reads the checkpoint anew
        {"backbones": {"flat": FLAT, "bare": BARE}, "instruct": INSTRUCT},
        {"train en-zh.flat.1"} | sets({"en-zh.flat.1", "en-zh.bare.1"}, "instruct") | {"table dream_instruct", "all"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_repeats_what_it_touches(finished, change):
    over, expected = CHANGES[change]
    assert finished.planned(over=over).keys() == expected


def test_resamples_touch_no_cell(finished):
    assert finished.planned(over={"analysis": {"resamples": 50}}).keys() <= AGGREGATES


def test_a_reading_of_decoding_shares_the_adapter(finished):
    """A variant that changes nothing of training decodes anew, with the adapter that is there."""
    floors = {"variant_of": "llada-tiny", "label": "floors", "adapter_of": "llada-tiny"}
    floors["decoding"] = {"schedule": "floors"}
    grid = {**MIXED["matrix"], "backbones": ["llada-tiny", "floors"], "seeds_of": {"floors": [1]}}
    planned = finished.planned(over={"backbones": {"floors": floors}, "matrix": grid}).keys()
    assert sets({"en-zh.floors.1", "en-de.floors.1"}) | {"table hyperparams"} <= planned
    assert not {job for job in planned if job.startswith(("train ", "pretrain ")) or ".llada-tiny." in job}


def test_an_edited_corpus_file_of_the_users_own_repeats_what_is_made_from_it(tmp_path):
    own = {"name": "files", "source": "own.en", "target": "own.zh"}
    over = {"sources": {"own": own}, "directions": {"en-zh": {"train": "own"}}}
    workspace = Workspace(tmp_path, "config/demo.yaml", "config/smallest.yaml", over)
    for name in ("own.en", "own.zh"):
        (tmp_path / name).write_text("a\n")
    adapter = "results/smallest/en-zh/llada-tiny/seed1/adapter/adapter.json"
    workspace.finish(adapter)
    assert not workspace.planned(adapter)
    (tmp_path / "own.en").write_text("b\n")
    assert workspace.planned(adapter).keys() >= {"corpus en-zh", f"train {RUN}"}


# --- studies: sets of their own cells, timings where a column asks for them


def study(**keys):
    """A study that is listed, of two methods that are at home in the matrix."""
    return {"tables": {"studies": ["mine"]}, "studies": {"mine": {"directions": ["en-zh"], "methods": ["ev"]} | keys}}


MINE = sets([RUN], "mine")
SHOWN = {"table mine", "all"}
STUDIES = {
    "what is at home in the matrix": (study(methods=["ratio", "ev"]), SHOWN),
    "a figure": (study(figure=True), SHOWN | {"figure mine"}),
    "cells that no other set has": (
        study(methods=["ev", "lr_style"], others=[{"method": "ev", "steps": 16}, {"method": "ratio"}]),
        SHOWN | MINE,
    ),
    "budgets": (
        study(layout="budgets", methods=["oracle", "ratio", "ev"], steps=[16, 32]),
        SHOWN | MINE | {"figure mine"},
    ),
    "a pool of the corpus": (
        study(pools=["2k"]) | {"directions": {"en-zh": {"pools": {"2k": 2000}}}},
        SHOWN | sets([f"{RUN}-2k"], "mine") | {f"train {RUN}-2k"},
    ),
    "a column of seconds": (
        study(columns=["comet", "latency"], methods=["ratio", "ev"]),
        SHOWN | {f"latency {RUN}.grammar.{method}.med.32" for method in ("ratio", "ev")},
    ),
    "the development pairs": (
        study(testset="dev"),
        SHOWN | MINE | {"dev_as_testset en-zh", "overlap en-zh.dev"},
    ),
    "orders": (  # the challenge subset is a test set; its sentences are read with and without their sources
        {"tables": {"studies": ["order_sweep_summary", "negative_order"]}},
        {f"{rule} en-zh.grammar-challenge" for rule in ("testset", "overlap")}
        | {f"diagnose {RUN}", "figure hero", "all"}
        | {job for name in ("order_sweep_summary", "negative_order") for job in {f"table {name}", *sets([RUN], name)}},
    ),
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_adds_what_is_its_own(finished, name):
    over, expected = STUDIES[name]
    assert finished.planned(over=over).keys() == expected


def test_every_cell_is_in_one_set():
    experiment = load_files([*base_files(ROOT), ROOT / "config/demo.yaml"])
    cells = [cell for one in sets_of(experiment).all for cell in one.cells]
    assert sorted(cells, key=str) == sorted(matrix.all_cells(experiment), key=str)


def test_nothing_runs_beside_a_timed_job(finished):
    path = "results/demo/en-zh/llada-tiny/seed1/latency/grammar/ev/med-T32.json"
    text = finished.dry_run("--printshellcmds", "--cores", "7", path)
    assert re.search(r"rule latency:\n(?:    .*\n)*    threads: 7\n", text)


def test_checks_and_controls_come_with_the_methods_whose_canvases_they_deal(finished):
    checks = study(layout="checks", directions=["en-zh", "en-de"], methods=["ev", "ev_reassigned_1"], seeds=[1, 2])
    planned = by_rule(finished.planned("results/demo/tables/mine.md", over=checks))
    assert planned == {"translate": 4, "score": 4, "diagnose": 4, "table": 1}  # directions, seeds
    name = "grammar.ev_reassigned_1-med-T32"
    over = {"matrix": {"methods": [*METHODS, "ev_reassigned_1"]}}
    planned = finished.planned(f"results/demo/en-de/llada-tiny/seed2/{name}/scores.jsonl", over=over)
    assert planned.keys() == sets(["en-de.llada-tiny.2"], name)


# --- given adapters in the place of training


def test_given_adapters_train_nothing(adopted):
    planned = by_rule(adopted.planned("--forceall"))
    assert planned["adopt_adapter"] == planned["translate"] == planned["score"] == 2
    assert not planned.keys() & {"train", "corpus"}
    assert not adopted.planned(over={"models": "elsewhere"})
    other = {"released": {"llama3-8b": {"en-zh": {1: {"folder": None, "repository": "someone/adapter"}}}}}
    planned = adopted.planned(over=other)
    assert planned["adopt_adapter en-zh.llama3-8b.1"] and not [job for job in planned if "llada-8b" in job]
    (adopted.folder / "given/adapter_model.safetensors").touch()
    assert by_rule(adopted.planned())["adopt_adapter"] == 2
    (adopted.folder / "given/adapter_model.safetensors").unlink()


# --- the inventory, which knows jobs without Snakemake


@pytest.fixture
def authors(tmp_path):
    """As the paper's authors ran it, with a data set that is downloaded and, for German, files of the user's own."""
    small = {"matrix": {"backbones": ["llada-8b"], "seeds": [1]}, "tables": {"studies": ["negative_order"]}}
    own = {"name": "json_lines", "folder": "given", "files": {"de-en": {"train": "train.jsonl", "dev": "dev.jsonl"}}}
    over = {**small, "sources": {"own": own}, "directions": {"en-de": {"train": "own"}}}
    return Workspace(tmp_path, "config/authors.yaml", over)


@pytest.mark.parametrize("name", ["paper", "finished", "adopted", "authors"])
def test_the_inventory_has_the_jobs_that_snakemake_plans(request, name, monkeypatch):
    workspace = request.getfixturevalue(name)
    monkeypatch.chdir(workspace.folder)
    planned = dict(with_inputs(workspace.dry_run("--printshellcmds", "--forceall")))
    inventory = Inventory(load_files(dict.fromkeys([*base_files(), *workspace.config_files()])))
    jobs = inventory.all()
    assert len(jobs) == len(planned)
    for output, (rule, wildcards, inputs) in planned.items():
        job = inventory.at(output)
        assert job in jobs and (job.rule, dict(job.wildcards)) == (rule, wildcards), output
        assert set(job.inputs) <= inputs, output


def with_inputs(text):
    """By first output: rule, wildcards and all inputs of each job, as a dry run prints them."""
    for rule, body in re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", text, flags=re.MULTILINE):
        fields = dict(re.findall(r"^    (\w+): (.*)$", body, flags=re.MULTILINE))
        wildcards = dict(pair.split("=") for pair in fields.get("wildcards", "").split(", ") if pair)
        if "output" in fields:
            yield fields["output"].split(", ")[0], (rule, wildcards, set(fields.get("input", "").split(", ")))
