"""Every report through the script, and what a new one takes."""

from __future__ import annotations

import csv
import functools
import json
from pathlib import Path

import fake_corpora
import fake_coverage
import fake_orders
import fake_ratings
import fake_results
import pandas as pd
import pytest
from fake_sets import put
from fake_texts import add_canvases, write_cases
from making import drawn, one_backbone
from matplotlib.text import Text
from run_rule import run_rule
from test_config_tables import write_adapters
from test_cost_table import params as write_costs

from entropy_valley import files
from entropy_valley.analysis import expressions
from entropy_valley.analysis.our_numbers import places
from entropy_valley.errors import InputError
from entropy_valley.experiment import base_files, load_files
from entropy_valley.provenance import record_of
from entropy_valley.reporting import reports, style, tables
from entropy_valley.reporting.report import TableReport
from entropy_valley.reporting.tables import Cell, Column, Group, Row, Section, Table
from entropy_valley.results import SCORES, TRANSLATIONS

BOTH = {("oracle", "med"): [0.5] * 5, ("oracle", "sig_first"): [0.6] * 5}
STUDY = {"columns": ["comet", "lead"], "against": ["ev", "med", 8], "fixed": ["ratio"]}
MED = {"med": {"order": "med", "settings": {}, "source_guided": False}}
PROMPT = {"direction": "en-zh", "prompt": "Translate English to Chinese.\n\nEnglish: {src}\nChinese: "}
NOTHING_RUN = {"names": {}, "metric": "comet22", "metric_label": "COMET", "steps": 32, "seeds": [1], "values": True}
MADE_UP = {
    "tables/main": lambda root: fake_results.write(root),
    "tables/crossbb": lambda root: fake_results.write(root, backbones={"llada-tiny": (1, 2), "dream-tiny": (1,)}),
    "tables/crossbb_bleu": lambda root: fake_results.write(root) | {"shown": ["bleu"]},
    "tables/full_significance": lambda root: fake_results.write(root),
    "tables/ar_reference": lambda root: fake_results.write(root, autoregressive={"llama3-tiny": (1, 2)}),
    "tables/dream_instruct": lambda root: fake_results.write_instruct(root),
    "tables/systems": lambda root: fake_results.write(root) | STUDY,
    "tables/orders": lambda root: fake_orders.write(root, BOTH),
    "tables/categories": lambda root: fake_orders.write(root, BOTH),
    "tables/checks": lambda root: fake_results.write_selector_checks(root),
    "tables/budgets": lambda root: fake_results.write(root, steps=(4, 8)),
    "tables/matrix": lambda root: {**fake_results.write(root, steps=(4, 8)), "orders": MED, "main": "med"},
    "tables/coverage": lambda root: fake_coverage.write(root),
    "tables/faithfulness_summary": lambda root: fake_coverage.write(root),
    "tables/failure_buckets": lambda root: fake_coverage.write(root),
    "tables/reproduction": lambda root: fake_results.write(root),
    "tables/readings": lambda root: {**fake_results.write(root), "origins": {"llada-tiny": "llada-tiny"}},
    "tables/dissociation": lambda root: add_canvases(fake_results.write(root)),
    "tables/cases": lambda root: write_cases(root, {"ev": ("点", 0.9)}),
    "figures/cases": lambda root: write_cases(root, {"ev": ("点", 0.9)}),
    "figures/dissociation": lambda root: add_canvases(fake_results.write(root)),
    "tables/hyperparams": write_adapters,
    "tables/prompts": lambda root: {
        "backbones": [["tiny", "Tiny"]],
        "prompts": [{**PROMPT, "backbone": "tiny", "decoded_as": "zh-en"}],
    },
    "tables/cost": lambda root: write_costs(root, root / "benchmarks"),
    "tables/human_eval": fake_ratings.write,
    "tables/human_eval_details": fake_ratings.write,
    "figures/human_eval": fake_ratings.write,
    "tables/paper_comparison": lambda root: {**NOTHING_RUN, "tables": {}},
    "tables/corpus": lambda root: fake_corpora.write(root),
    "figures/hero": lambda root: fake_results.write(root),
    "figures/method": lambda root: {"ratios": [0.55, 0.62, 0.71, 0.8, 1.0], "steps": 32},
    "figures/crossbb": lambda root: fake_results.write(root),
    "figures/entropy_valley": lambda root: fake_results.write_selector_checks(root),
    "figures/selector_checks": lambda root: fake_results.write_selector_checks(root),
    "figures/systems": lambda root: fake_results.write(root),
    "figures/budgets": lambda root: fake_results.write(root, steps=(4, 8)),
}


@pytest.fixture
def run(tmp_path):
    """Make a report of some params; the paths of its files by ending."""

    def run(key, params):
        outputs = {ending: tmp_path / f"out.{ending}" for ending in reports.find(key).endings}
        reports.write(params, how(key, tmp_path), list(map(str, outputs.values())))
        return outputs

    return run


def how(key, root, here=None):
    return {"report": key, "caption": "A caption.", "root": str(root), "here": str(here or root)}


@pytest.mark.parametrize("key", ["tables/main", "figures/hero"])
def test_a_report_that_fails_at_its_last_file_leaves_all_finished_ones(run, tmp_path, monkeypatch, key):
    before = {path: path.read_bytes() for path in run(key, MADE_UP[key](tmp_path)).values()}
    other = MADE_UP[key](tmp_path) | {"labels": {"backbones": {"llada-tiny": "Another"}, "directions": {}}}
    monkeypatch.setattr(tables, "write_csv", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(key, other)
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("key", reports.REPORTS)
def test_every_report_writes_its_files(run, tmp_path, key):
    outputs = run(key, MADE_UP[key](tmp_path))
    assert all(path.stat().st_size > 100 for path in outputs.values())
    header = outputs["csv"].read_text().splitlines()[0].split(",")
    for place in places_of(key):  # where the paper's numbers are compared with
        ours = (place.ours.replace("$metric", metric) for metric in place.metric.split())
        terms = expressions.TERM.findall(" ".join([*ours, place.spread]))
        given = [
            *expressions.conditions(place.where),
            *(name for _, where in terms for name in expressions.conditions(where)),
        ]
        assert {*given, *(column for column, _ in terms)} <= {*header, "latency", "mae", "pool"}, place


@functools.cache
def papers_reports():
    return reports.configured(load_files(base_files(), reports.problems))


def places_of(key):
    """The places of the paper's numbers in tables that this report makes."""
    return [place for place in places() if papers_reports()[f"tables/{place.table}"].key == key]


@pytest.mark.parametrize("key", [key for key in reports.REPORTS if key.startswith("figures/")])
def test_a_figure_fits_on_a_page_with_letters_of_seven_points(tmp_path, key):
    figure, _ = drawn(reports.find(key), MADE_UP[key](tmp_path))
    assert figure.get_size_inches()[0] < style.PAGE + 0.001
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert texts and min(text.get_fontsize() for text in texts) >= 7


def test_hero_has_a_panel_b_where_there_are_autoregressive_cells(run, matched):
    rows = list(csv.DictReader(run("figures/hero", matched)["csv"].open()))
    methods = {panel: {row["method"] for row in rows if row["panel"] == panel} for panel in "AB"}
    assert methods == {"A": {"oracle", "ratio", "ev"}, "B": {"oracle", "ratio", "ev", "beam4"}}


def test_significance(run, params, tmp_path):
    rows = list(csv.DictReader(run("tables/full_significance", params)["csv"].open()))
    assert len(rows) == len(params["cells"])
    zero = next(row for row in rows if float(row["p_one_sided"]) == 0)
    assert zero["p_one_sided_printed"] == "< 0.005"
    assert (zero["resamples"], zero["bootstrap_seed"], zero["sentences"]) == ("200", "1", "60")


def test_the_script_reads_results_where_they_are_and_records_all_that_it_read(params, tmp_path):
    """As in a module whose results have a prefix: the params say another folder."""
    params = one_backbone(params) | {"made_from": {"a file": "its digest"}}
    said = json.loads(files.canonical(params).replace(f"{tmp_path}/", "results/"))
    outputs = [tmp_path / f"out.{ending}" for ending in reports.find("tables/main").endings]
    run_rule("report", said, output=outputs, how=how("tables/main", "results", tmp_path), rule="table")
    record = record_of(outputs[-1])
    assert (record.rule, record.params) == ("table", said)
    assert record.outputs.keys() == {path.name for path in outputs}
    assert record.facts["length_methods"]["en-zh"] == {"oracle": [{}], "ratio": [{}], "ev": [{}]}
    sets = {Path(cell["path"]) for cell in params["cells"]}
    read = [folder / name for folder in sets for name in ("translations.json", "scores.json", "scores.jsonl")]
    assert {str(path): files.file_digest(path) for path in read} == record.inputs


def test_scores_that_were_edited_go_into_no_table(run, params):
    params = one_backbone(params)
    scores = Path(params["cells"][1]["path"], SCORES)
    scores.write_text(scores.read_text().replace(" 0.8", " 0.9"))
    with pytest.raises(InputError, match=r"scores\.jsonl: not as the rule score wrote it"):
        run("tables/main", params)


def test_numbers_that_do_not_compare_leave_the_old_table(run, params, tmp_path):
    params = one_backbone(params)
    outputs = [tmp_path / f"out.{ending}" for ending in ("tex", "csv", "md")]
    for path in outputs:
        path.write_text("before")
    put(params["cells"][1], TRANSLATIONS, signature={})
    with pytest.raises(InputError, match=r"no signature\.decoder"):
        run("tables/main", params)
    assert [path.read_text() for path in outputs] == ["before"] * 3


def test_a_report_that_is_not_there(run):
    with pytest.raises(InputError, match=r"tables/nobody: is no report.*tables/main, tables/crossbb"):
        run("tables/nobody", {})


class Counted(TableReport):
    """How many cells each method has: a report is this class, and its line in the registry."""

    caption = "Cells of each method."

    def cells(self, experiment):
        return []

    def numbers(self, params):
        return pd.DataFrame({"method": [cell.method for cell in params.cells]}).value_counts().reset_index()

    def table(self, params, numbers):
        groups = tuple(Group(row.method, (Row((Cell(str(row.count)),)),)) for row in numbers.itertuples())
        return Table((Column("Method", align="l"), Column("Cells")), (Section(groups),))


def test_a_new_report_is_a_class_and_a_line_in_the_registry(run, monkeypatch, params):
    monkeypatch.setitem(reports.REPORTS, "tables/counted", Counted)
    outputs = run("tables/counted", params)
    assert outputs["csv"].read_text() == "method,count\nev,12\noracle,12\nratio,12\n"
    assert "decoder" in outputs["md"].read_text()  # what the numbers were made by stands below every table
