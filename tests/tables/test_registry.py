"""Which reports a config has, and what the config says of them."""

import functools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from entropy_valley.errors import InputError
from entropy_valley.experiment import tables as reports
from entropy_valley.experiment.config import base_files, params
from entropy_valley.experiment.config.load import load_merged, overlay, read_yaml
from entropy_valley.experiment.config.matrix import Cell, Run, sets_of
from entropy_valley.experiment.tables import footnotes, scores
from entropy_valley.experiment.tables.report import ENDINGS, concerns

ROOT = Path(__file__).parents[2]
BASE = functools.reduce(overlay, map(read_yaml, base_files(ROOT)))


def experiment(**over):
    return load_merged(overlay(BASE, over), further=reports.problems)


def test_what_a_config_does_not_ask_for_is_not_made():
    whole = reports.configured(experiment())
    asked = {name: {"backbones": []} for name in ("autoregressive", "instruct", "valley")}
    asked["human_evaluation"] = {"directions": []}
    few = reports.configured(experiment(tables={"studies": []}, **asked))
    tables = ("main", "crossbb", "crossbb_bleu", "full_significance", "dissociation", "cases")
    tables += ("coverage", "faithfulness_summary", "failure_buckets")
    tables += ("hyperparams", "prompts", "cost", "paper_comparison", "corpus")
    figures = ("hero", "method", "crossbb", "dissociation", "cases")
    assert {f"tables/{name}" for name in tables} | {f"figures/{name}" for name in figures} <= few.keys()
    unasked = {"tables/ar_reference", "tables/selector_checks", "figures/selector_checks"}
    assert unasked < whole.keys() and not unasked & few.keys()


@pytest.mark.parametrize(("folder", "rule"), [("tables", "table"), ("tables", "comparison"), ("figures", "figure")])
def test_a_study_may_have_a_dot_in_its_name(monkeypatch, folder, rule):
    written, name = [], f"{folder}/ratios_0.8"
    report = SimpleNamespace(endings=ENDINGS[rule], write=written.append)
    monkeypatch.setattr(reports, "configured", lambda experiment: {name: report})
    outputs = [f"results/{name}.{ending}" for ending in report.endings]
    reports.make(None, outputs)
    assert written == [outputs]


def test_a_change_of_a_method_concerns_its_cells_whatever_its_name_is():
    whole = experiment()
    cell = Cell(Run("en-zh", "llada-8b", 1), "wmt22", "ratio_0.70", "hybrid_0.25", 32)
    for key in ("methods.ratio_0.70.ratios", "methods.ratio_0.70", "orders.hybrid_0.25.order_settings.p"):
        assert concerns(whole, key, cell)
    for key in ("methods.ratio_0.75.ratios", "methods.ratio_0.7", "methods.ratio.ratios", "orders.hybrid_0.2"):
        assert not concerns(whole, key, cell)


OF_EV = "from entropy_valley.lengths.ev import EntropyValley\n\nclass Mine(EntropyValley):\n    sees_reference = {}\n"


@pytest.mark.parametrize("own", [False, True], ids=["ours", "the user's own"])
def test_a_label_of_a_method_repeats_what_prints_it_alone(own, users_class):
    block = {"method": users_class(OF_EV.format(False)) if own else "ev", "same_ratios_as": "ev"}
    plain, named = (
        experiment(matrix={"methods": ["oracle", "ratio", "ev", "mine"]}, length_methods={"mine": block | label})
        for label in ({}, {"label": "My EV"})
    )
    translated, again = (params.translation(one, sets_of(one).all[0]) for one in (plain, named))
    assert translated == again and '"mine"' in translated
    main, without = (reports.configured(one)["tables/main"] for one in (named, plain))
    assert (main.names.method_in("mine", "en-zh"), without.names.method_in("mine", "en-zh")) == ("My EV", "mine")
    assert reports.spec(named) != reports.spec(plain)


def test_a_method_that_sees_the_reference_is_never_the_best_whatever_its_name_is(users_class):
    methods = {
        "nearly": {"method": "oracle", "offset": 1},
        "mine": {"method": users_class(OF_EV.format(True)), "same_ratios_as": "ev"},
        "mixed": {"method": "reassigned", "of": "oracle", "seed": 1},
    }
    names = ["oracle", "ratio", "ev", *methods]
    over = {"matrix": {"methods": names}, "length_methods": methods, "tables": {"studies": []}}
    main = reports.configured(experiment(**over))["tables/main"]
    place = {"backbone": "llada-8b", "direction": "en-zh", "testset": "wmt22", "order": "med", "steps": 32}
    rows = [{**place, "metric": "comet22", "method": name, "mean": 0.9 - 0.1 * (name == "ev")} for name in names]
    rows[1]["mean"] = 0.7
    summary = scores.ranked(main.names, pd.DataFrame(rows))
    assert [*summary.loc[summary["best"], "method"]] == ["ev"]


def test_a_table_says_which_methods_were_fitted_to_its_sentences():
    study = {"methods": ["ratio", "ev_fit", "ev_fit_4"], "directions": ["en-zh"]}
    said = []
    for testset in ("dev", "wmt22"):
        over = {"studies": {"mine": study | {"testset": testset}}, "tables": {"studies": ["mine"]}}
        table = reports.configured(experiment(length_methods={"ev_fit_4": {"pairs": 50}}, **over))["tables/mine"]
        said.append(list(footnotes.fitted(table.names)))
    assert said == [
        [
            "EV fit was fitted to the first 100 of these sentences.",
            "EV fit 4 was fitted to the first 50 of these sentences.",
        ],
        [],
    ]


# Each table and figure of the paper is a target of the same name.
TABLES = {
    *("main", "ar_reference", "faithfulness_summary", "human_eval", "hyperparams", "candidate_range", "ratio_sweep"),
    *("multi_candidate", "direct_length_baselines", "full_pareto", "full_significance", "fwdcount_control"),
    *("coverage", "failure_buckets", "order_sweep_summary", "negative_order", "crossbb", "crossbb_bleu"),
    *("defr_transfer", "human_eval_details"),
}
FIGURES = {"cases", "method", "hero", "crossbb", "dissociation", "pareto", "human_eval"}
LABELS = {f"tables/{name}" for name in TABLES} | {f"figures/{name}" for name in FIGURES}


@pytest.mark.parametrize("names", [[], ["demo", "demo-full"]], ids=["paper", "demo-full"])
def test_each_label_of_the_paper_is_a_target(names):
    found = load_merged(functools.reduce(overlay, [BASE, *(read_yaml(ROOT / f"config/{name}.yaml") for name in names)]))
    assert not LABELS - reports.configured(found).keys()


WIDER = {
    "budgets": {"matrix": {"steps": [16, 32]}},
    "orders": {"matrix": {"orders": ["random", "med"]}},
    "one seed": {"matrix": {"seeds": [1]}},
    "no studies": {"tables": {"studies": []}, "matrix": {"steps": [32, 64], "orders": ["med", "sig_first"]}},
}
CONFIGS = {
    "paper": [],
    "demo": ["demo"],
    "demo-full": ["demo", "demo-full"],
    "released": ["released"],
    "authors' data and adapters": ["authors", "released"],
    "tatoeba": ["tatoeba"],
}


@pytest.mark.parametrize(
    ("config", "wider"), [*((config, "as it is") for config in CONFIGS), *(("demo-full", wider) for wider in WIDER)]
)
def test_each_cell_of_a_set_is_in_a_report(config, wider):
    files = [read_yaml(ROOT / f"config/{name}.yaml") for name in CONFIGS[config]]
    found = load_merged(functools.reduce(overlay, [BASE, *files, WIDER.get(wider, {})]))
    configured = reports.configured(found)
    assert {cell for report in configured.values() for cell in report.cells} == set(sets_of(found).home)
    several = len(found.matrix.steps) > 1 or len(found.matrix.orders) > 1
    assert ("tables/matrix" in configured) == several


@pytest.mark.parametrize("name", ["closure", "lead", "runs"])
def test_no_metric_has_the_name_of_a_column_of_studies(name):
    with pytest.raises(InputError, match=rf"scoring\.metrics\.{name}: is a column of studies"):
        experiment(scoring={"metrics": {name: {"metric": "bleu", "label": "x"}}})


def test_a_start_loads_no_figures_or_models():
    """What the Snakefile imports, and all that it asks of the reports, in a process of its own; and the command."""
    imports = [line for line in (ROOT / "Snakefile").read_text().splitlines() if line.startswith("from entropy_valley")]
    program = [
        *imports,
        "import sys, entropy_valley.experiment.cli",
        "EXPERIMENT = configuration.load_files(configuration.base_files(), tables.problems)",
        "REPORTS = tables.configured(EXPERIMENT)",
        "assert [report.inputs() for report in REPORTS.values()] and tables.spec(EXPERIMENT)",
        "late = {'matplotlib', 'scipy', 'torch', 'transformers', 'comet', 'huggingface_hub'}",
        "print(*late & sys.modules.keys())",
    ]
    found = subprocess.run(
        [sys.executable, "-c", "\n".join(program)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout == "\n"


@pytest.mark.parametrize(("table", "block"), [("hyperparams", "matrix"), ("dream_instruct", "instruct")])
def test_a_variant_with_the_adapters_of_another_backbone_trains_none(table, block):
    same = {"variant_of": "dream-7b", "label": "by floors", "adapter_of": "dream-7b"}
    over = {"backbones": {"floors": same}, block: {"backbones": ["llada-8b", "dream-7b", "floors"]}}
    read = reports.configured(experiment(**over))[f"tables/{table}"].inputs()
    assert "results/en-zh/dream-7b/seed1/adapter/adapter.json" in read
    assert not [path for path in read if "/floors/" in path and "/adapter/" in path]


def test_the_corpus_is_that_of_all_directions_and_checkpoints_that_train():
    report = reports.configured(experiment())["tables/corpus"]
    files_of = {f"results/corpus/{name}/length_ratios.json" for name in ("en-zh", "zh-en", "en-de")}
    assert files_of <= {*report.inputs()}
    given = {"llada-8b": {name: {1: {"folder": "x"}} for name in ("en-zh", "zh-en", "en-de")}}
    small = {"matrix": {"backbones": ["llada-8b"], "seeds": [1]}, "tables": {"studies": []}, "released": given}
    alone = {"autoregressive": {"backbones": []}, "instruct": {"backbones": []}}
    assert "tables/corpus" not in reports.configured(experiment(adapters="released", **small, **alone))


def test_a_single_backbone_is_not_compared_with_others():
    one = experiment(matrix={"backbones": ["llada-8b"]}, tables={"studies": []})
    missing = reports.configured(experiment(tables={"studies": []})).keys() - reports.configured(one).keys()
    assert missing == {"tables/crossbb", "tables/crossbb_bleu", "figures/crossbb"}


def test_captions_say_the_label_of_the_metric():
    named = experiment(scoring={"comet": {"label": "my COMET"}}, tables={"metrics": ["comet22", "chrf"]})
    texts = {path: report.text for path, report in reports.configured(named).items()}
    assert texts["tables/main"].startswith("Main table: my COMET and chrF of the length")
    assert not any("{" in text or "COMET" in text.replace("my COMET", "") for text in texts.values())


def test_fixed_ratios_have_their_numbers_by_direction():
    half = {"method": "ratio", "ratios": {"en-zh": 0.71, "zh-en": 1.0, "en-de": 0.9}}
    report = reports.configured(experiment(length_methods={"half": half}))["tables/main"]
    names = [report.names.method_in(*one) for one in (("ratio", "en-zh"), ("ratio_eos", "zh-en"), ("half", "zh-en"))]
    assert names == ["Fixed ratio 0.8", "Fixed ratio 1.2 + EOS slot", "half 1"]
