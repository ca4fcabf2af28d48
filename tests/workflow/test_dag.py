"""What Snakemake would run: the whole matrix, nothing at all, and what a change touches, job by job."""

import re
import shutil

import pytest
from workspace import METHODS, MIXED, Workspace, by_rule, on_gpu, sets

REPORTS = ("table", "figure", "comparison")  # rules that take a second: a change of anything that they show repeats all
PAIRS = {"length_ratios en-zh", "length_ratios en-de"}  # by the tokenizers of all backbones
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
    jobs = {f"train {run}" for run in runs}
    return jobs | sets(runs - causal) | sets(causal, "autoregressive")


def computed(planned):
    """The planned jobs without tables and figures."""
    return {job for job in planned if job.split()[0] not in (*REPORTS, "all")}


def of(part):
    return {run for run in RUNS if part in run}


# --- the paper's matrix, nothing done


def test_the_whole_matrix(paper):
    """With all studies: every table and figure, each set once, few loads of a model, no further training."""
    text = paper.dry_run("-p", over={"device": "cuda"})
    planned = paper.jobs(text)
    assert set(planned.values()) == {1}
    reported = {f"table {name}" for name in ("multi_candidate", "ev_fit", "order_sweep_summary", "selector_checks")}
    assert reported | {"table full_pareto", "figure pareto", "figure selector_comparison"} <= planned.keys()
    counts = by_rule(planned)
    assert sum(counts.values()) <= 450
    assert counts["train"] == 27 + 9 + 4 + 2  # no study trains anything but one of two pools
    assert counts["translate"] + counts["shard"] + counts["diagnose"] <= 180  # loads of a backbone, beside timings
    assert counts["score"] == counts["translate"] + counts["merge"] <= 100
    assert on_gpu(text).keys() == {"train", "translate", "shard", "diagnose", "latency", "score"}


def test_the_matrix_without_studies(paper):
    planned = paper.planned(over={"tables": {"studies": []}})
    assert {"table main", "table ar_reference", "table dream_instruct", "figure entropy_valley"} <= planned.keys()
    runs, autoregressive, instruct = 3 * 3 * 3, 3 * 3, 6  # backbones, directions, seeds; variants
    assert by_rule(computed(planned)) == {
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
    assert on_gpu(text) == {"train": 27, "shard": 2 * 27, "score": 27}
    assert by_rule(paper.jobs(text))["merge"] == 27


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
    over = {
        "store": False,
        "device": "cuda",
        "models": "elsewhere",
        "backbones": {"dream-7b": {"folder": "a/copy"}},
        "training": {"checkpoint_every": 7, "activation_checkpointing": True, "processes": 4},
    }
    assert not finished.planned("--cores", "7", "--set-threads", "train=4", "translate=3", over=over)
    unused = {
        "length_head_training": {"epochs": 2},  # no method uses it
        "studies": {"mine": {"directions": ["en-zh"], "methods": ["lr_style"]}},  # it is not listed
        "matrix": {**MIXED["matrix"], "methods": METHODS[::-1], "directions": ["en-de", "en-zh"]},  # in another order
    }
    planned = finished.planned(over=unused)
    assert not computed(planned) and {"table main", "figure hero"} <= planned.keys()


KIWI = {"metric": "comet", "label": "Kiwi", "checkpoint": "Unbabel/wmt22-cometkiwi-da", "reference_free": True}
INSTRUCT = {"backbones": ["flat", "bare"], "direction": "en-zh", "seed": 1, "testset": "grammar"}
FLAT = {"variant_of": "dream-7b", "label": "flat", "shifted": False}
BARE = {"variant_of": "dream-7b", "label": "bare", "zero_shot": True}
PROMPT_TOKENS = {f"tokens {direction}.llada-tiny.grammar" for direction in ("en-zh", "en-de")}
SEED3 = {f"{direction}.llada-tiny.3" for direction in ("en-zh", "en-de")}
CHANGES = {
    "a metric more": (
        {"scoring": {"metrics": {"kiwi": KIWI}}},
        {name for name in SETS if name.startswith("score")} | {"fetch_comet Unbabel--wmt22-cometkiwi-da"},
    ),
    "a seed more": ({"matrix": {"seeds": [1, 2, 3]}}, trained(SEED3)),
    "a prompt, with backbones pre-trained on it": (
        {"directions": {"en-de": {"prompt": "{src} = "}}},
        {"pretrain llada-tiny.1", "pretrain llama3-tiny.4"}
        | PROMPT_TOKENS
        | PAIRS
        | trained(of("llada-tiny") | of("en-de") | AR_RUNS),
    ),
    "a pre-training for each run": (  # that of seed 1 is there, with all that follows
        {"backbones": {"llada-tiny": {"pretraining": {"seed": None}}}},
        {"pretrain llada-tiny.2"} | trained(of(".llada-tiny.2")),
    ),
    "variants of one checkpoint": (  # zero-shot trains nothing; neither reads the checkpoint anew
        {"backbones": {"flat": FLAT, "bare": BARE}, "instruct": INSTRUCT},
        {"train en-zh.flat.1"} | sets({"en-zh.flat.1", "en-zh.bare.1"}, "instruct"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_repeats_what_it_touches(finished, change):
    over, expected = CHANGES[change]
    assert computed(finished.planned(over=over)) == expected


def test_an_edited_corpus_file_of_the_users_own_repeats_what_is_made_from_it(tmp_path):
    own = {"name": "files", "source": "own.en", "target": ".//own.zh"}  # which Snakemake would not find
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


def test_studies_add_what_is_their_own(finished):
    """Their cells that are at home in the matrix are there. The challenge subset of the orders is a test set; its
    sentences are read with and without their sources."""
    both, ev = ({"directions": ["en-zh"], "methods": methods} for methods in (["ratio", "ev"], ["ev"]))
    studies = {
        "with_figure": both | {"figure": True},
        "with_seconds": both | {"columns": ["comet", "latency"]},
        "of_pool": ev | {"pools": ["2k"]},
        "on_dev": ev | {"testset": "dev"},
    }
    listed = [*studies, "order_sweep_summary", "negative_order"]
    pools = {"en-zh": {"pools": {"2k": 2000}}}
    planned = finished.planned(over={"studies": studies, "tables": {"studies": listed}, "directions": pools})
    own = {f"latency {RUN}.grammar.{method}.med.32" for method in ("ratio", "ev")}
    own |= sets([f"{RUN}-2k"], "of_pool") | {f"train {RUN}-2k"}
    own |= sets([RUN], "on_dev") | {"dev_as_testset en-zh", "overlap en-zh.dev"}
    own |= sets([RUN], "order_sweep_summary") | sets([RUN], "negative_order")
    own |= {f"{rule} en-zh.grammar-challenge" for rule in ("testset", "overlap")} | {f"diagnose {RUN}"}
    assert computed(planned) == own
    assert {f"table {name}" for name in listed} <= planned.keys()
    assert [job for job in planned if job.startswith("figure ") and job[7:] in studies] == ["figure with_figure"]


def test_nothing_runs_beside_a_timed_job(finished):
    path = "results/demo/en-zh/llada-tiny/seed1/latency/grammar/ev/med-T32.json"
    text = finished.dry_run("--printshellcmds", "--cores", "7", path)
    assert re.search(r"rule latency:\n(?:    .*\n)*    threads: 7\n", text)


def test_checks_and_controls_come_with_the_methods_whose_canvases_they_deal(finished):
    checks = {
        "layout": "checks",
        "directions": ["en-zh", "en-de"],
        "methods": ["ev", "ev_reassigned_1"],
        "seeds": [1, 2],
    }
    over = {"tables": {"studies": ["mine"]}, "studies": {"mine": checks}}
    planned = by_rule(finished.planned("results/demo/tables/mine.md", over=over))
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


def test_a_table_trains_no_adapter_that_was_moved_away(finished, tmp_path):
    workspace = finished.copied(tmp_path / "copy")
    results = workspace.folder / "results/demo"
    for path in ("en-zh/llada-tiny/seed1/adapter", "backbones/llada-tiny"):
        shutil.rmtree(results / path)
    for path in (results / "corpus/en-zh").glob("train.*"):
        path.unlink()
    main = "results/demo/tables/main.tex"
    assert workspace.planned(main, "--forcerun", main).keys() == {"table main"}
