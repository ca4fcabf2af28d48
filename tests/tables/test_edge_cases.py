"""What tables say where there is little to say: no gap, no loss, no case, one run, a partial form.

The tables are those of a finished run, whose results each test changes.
"""

import math
from pathlib import Path

import finished
import numpy as np
import pandas as pd
import pytest

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.stats.significance import Analysis
from entropy_valley.experiment.tables.dissociation import split
from entropy_valley.experiment.tables.paired_tests import holds
from entropy_valley.experiment.tables.valley import over_runs
from entropy_valley.results import SCORES, TRANSLATIONS

MAIN = "tables/main"


def where(run, name, **keys):
    """The cells of a report that have these methods, directions, backbones or seeds."""

    def has(cell, key, value):
        return getattr(cell if hasattr(cell, key) else cell.run, key) == value

    return [cell for cell in run.cells(name) if all(has(cell, *item) for item in keys.items())]


def score(run, name, scores, **keys):
    """Give the cells of each method a mean score, around which its sentences lie."""
    for method, mean in scores.items():
        for cell in where(run, name, method=method, **keys):
            run.score(cell, mean - 0.001, mean + 0.001)


def notes_of(text):
    return [line for line in text.splitlines() if line and not line.startswith("|")]


class TestGap:
    """A run without a gap has no closure, in any metric and table."""

    @pytest.fixture
    def even(self, run):
        """Oracle leads Ratio by a third of a standard error in both runs of Zh→En."""
        for cell in where(run, MAIN, direction="zh-en"):
            if cell.method in ("oracle", "ratio"):
                ahead = 0.001 * (cell.method == "oracle")
                run.score(cell, *(0.8 + ahead + sign * 0.01 * (cell.method == "ratio") for sign in (1, -1)))
        return run

    def test_it_is_not_available_in_any_metric_and_the_runs_are_named(self, even):
        text = even.text(MAIN)
        rows = [row for row in even.rows(MAIN)][4:8]
        assert rows[0][0] == "Zh→En" and {row[3] for row in rows} == {row[6] for row in rows} == {"n/a"}
        assert (
            "Gap closure leaves out runs, in any metric, where Oracle's lead in toy COMET may be chance (at most 1.96 "
            "standard errors over sentences): LLaDA-tiny Zh→En (2 of 2 runs). "
            "Its means are conditional: of the other runs alone." in notes_of(text)
        )
        assert even.numbers(MAIN).query("direction == 'zh-en'")["gap_closure_mean"].isna().all()


@pytest.mark.parametrize(
    ("low", "bootstrap", "wilcoxon", "resamples", "held"),
    [
        (0.01, 0.0, 0.0005, 10_000, True),
        (0.01, 0.0, 0.0015, 10_000, False),  # Wilcoxon's test does not say so
        (0.01, 0.0015, 0.0005, 10_000, False),
        (-0.01, 0.0, 0.0005, 10_000, False),
        (0.01, 0.0, 0.0005, 200, False),  # that no resample of 200 speaks against it means p < 0.01
    ],
)
def test_a_lead_holds_where_both_tests_say_so(low, bootstrap, wilcoxon, resamples, held):
    test = {"ci_low": low, "p_two_sided": bootstrap, "wilcoxon_p": wilcoxon, "resamples": resamples}
    assert list(holds(pd.DataFrame([test]))) == [held]


def test_there_are_no_shares_of_a_lead_whose_interval_ends_at_zero():
    leads, nearer = np.array([[0.4], [0.0], [0.0], [0.0]]), np.array([[2], [0], [-1], [1]])
    parts = split(leads, nearer, Analysis(resamples=200, seed=1)).set_index("canvas")
    assert parts.lead_low["all"] == 0 and parts["share"].isna().all()


def test_runs_share_a_band_of_deviations_and_a_single_run_has_its_sentences():
    place = {"backbone": "tiny", "direction": "en-zh", "testset": "test", "axis": "ratios", "at": 0.75}
    run = {"lowest": math.nan, "standard_error": 0.05, "sentences": 9}
    points = pd.DataFrame([{**place, **run, "seed": seed, "mean": 2.0 + seed} for seed in (1, 2)])
    both = over_runs(points)
    assert set(both["spread"]) == {"std over runs"} and set(both["runs"]) == {2}
    single = over_runs(points[points["seed"] == 1])
    assert set(single["spread"]) == {"95% of the mean over sentences"}
    assert (single["high"] - single["mean"]).to_numpy() == pytest.approx(1.96 * 0.05)


def test_a_single_run_prints_its_value_alone_and_the_footnote_says_so(tmp_path):
    run = finished.Run(tmp_path, matrix={"seeds": [1]}, tables={"studies": []})
    assert "±" not in "".join("".join(row) for row in run.rows(MAIN))
    assert "One run (training seed)." in run.text(MAIN)


def test_a_study_of_one_method_has_no_baseline_and_no_gap(tmp_path):
    study = {"one": {"directions": ["en-zh"], "methods": ["ev"]}}
    run = finished.Run(tmp_path, studies=study, tables={"studies": ["one"]})
    _, row = run.rows("tables/one")  # behind the setting
    assert "Entropy-Valley" in row[0] and row[3] == "n/a" and "leaves out runs" not in run.text("tables/one")


def test_a_backbone_with_a_seed_that_the_first_lacks_has_no_difference_over_runs(tmp_path):
    study = {"backbones": ["dream-tiny", "llada-tiny"], "methods": ["ev"], "columns": ["difference"], "seeds": "all"}
    run = finished.Run(tmp_path, studies={"mine": study | {"directions": ["en-zh"]}}, tables={"studies": ["mine"]})
    frame = run.numbers("tables/mine").query("backbone == 'llada-tiny'").set_index("statistic")
    assert frame.difference["run"].isna().tolist() == [False, True]
    assert frame.loc[["mean"], ["difference", "difference_low"]].isna().all(axis=None)


def test_a_transfer_is_tested_under_its_own_step_budget(tmp_path):
    study = {"layout": "transfer", "methods": ["oracle", "ratio", "ev"], "steps": [4]}
    run = finished.Run(tmp_path, studies={"mine": study}, tables={"studies": ["full_pareto", "mine"]})
    text = run.text("tables/mine")
    assert "Reveal order MED, T = 4; a row is one run." in text and "n/a" not in text


class TestSentences:
    """Tables of single sentences: cases, coverage, losses, categories."""

    def test_a_case_that_there_is_not_is_said(self, run):
        for cell in run.cells("tables/cases"):
            run.score(cell, 0.5)
            rows = [row | {"hypothesis": ""} for row in run.read(cell, TRANSLATIONS)]
            run.put(cell, TRANSLATIONS, rows)
        text = run.text("tables/cases")
        assert text.count("there is no such sentence.") >= 2

    def test_the_config_may_choose_the_cases(self, tmp_path):
        run = finished.Run(tmp_path, tables={"cases": ["test-000003", "test-000001"], "studies": []})
        assert list(run.numbers("tables/cases")["id"]) == ["test-000003", "test-000001"]
        text = run.text("tables/cases")
        assert "Chosen by the config." in text and "no such sentence" not in text

    def test_an_id_that_the_test_set_has_not_is_named(self, tmp_path):
        run = finished.Run(tmp_path, tables={"cases": ["test-009999"], "studies": []})
        with pytest.raises(InputError, match=r"tables\.cases: test-009999: no such sentence in grammar"):
            run.make("tables/cases")

    def test_equal_leads_have_no_correlation(self, run):
        for cell in run.cells("tables/negative_order"):
            run.score(cell, 0.5 + 0.1 * (cell.order == "med"))
        made = run.make("tables/negative_order")
        assert pd.read_csv(made["csv"]).query("metric == 'spearman_rho'")["value"].isna().all()
        assert "MED: n/a (LLaDA-tiny" in made["md"].read_text(encoding="utf-8")

    def test_a_small_p_of_a_correlation_is_not_printed_as_zero(self, run):
        main, other = sorted(where(run, "tables/negative_order", method="oracle"), key=lambda cell: cell.order != "med")
        values = {row["id"]: row["concentration"] for row in run.results.diagnostics(main, "sig")}
        ranked = sorted(values, key=values.__getitem__)
        ranked[:2] = ranked[1::-1]
        run.score(main, 0.5)
        run.score(other, *(0.5 + 0.01 * ranked.index(row["id"]) for row in run.read(other, SCORES)))
        (line,) = [line for line in notes_of(run.text("tables/negative_order")) if line.startswith("Spearman")]
        assert "two-sided p = " in line and "p = 0.0000" not in line


class TestChecks:
    def test_another_file_is_no_valley(self, run):
        cell = run.cells("figures/entropy_valley")[0]
        run.replace(Path(cell.run.folder(run.root), "diagnostics.json"), {"sig": {}})
        with pytest.raises(InputError, match=r"diagnostics\.json: has no valley of grammar"):
            run.make("figures/entropy_valley")


class TestInstruct:
    def path(self, run, name):
        return run.root / "en-zh/dream-instruct-plain/seed1/adapter" / name

    @pytest.mark.parametrize("name", ["losses.csv", "adapter.json"])
    def test_a_missing_file_of_the_adapter(self, run, name):
        self.path(run, name).unlink()
        with pytest.raises(InputError, match=f"{name}: file not found|has no {name}"):
            run.make("tables/dream_instruct")


class TestPeople:
    def ratings(self, run, direction):
        return run.root / f"human_evaluation/{direction}/ratings.jsonl"

    def test_a_partial_form_is_said(self, run):
        path = self.ratings(run, "en-zh")
        rows = files.read_jsonl(path)
        run.replace(path, [row for row in rows if row["annotator"] != "B" or row["id"] > rows[4]["id"]])
        assert "Partial: of the 8 sentences of En→Zh were rated by A 8, B 3, C 8." in run.text("tables/human_eval")

    def test_equal_ratings_have_no_correlation_and_print_no_nan(self, run):
        path = self.ratings(run, "en-zh")
        equal = {"first": {"adequacy": 3, "fluency": 3}, "second": {"adequacy": 3, "fluency": 3}}
        run.replace(path, [row | equal for row in files.read_jsonl(path)])
        titles = [axes.get_title() for axes in run.figure("figures/human_eval").axes]
        assert "Spearman's ρ = n/a" in titles and not any("nan" in title for title in titles)

    def test_an_annotator_who_sent_nothing_has_dashes(self, run):
        path = self.ratings(run, "zh-en")
        run.replace(path, [row for row in files.read_jsonl(path) if row["annotator"] == "A"])
        details = run.text("tables/human_eval_details")
        assert "Zh→En were rated by A 8, B 0, C 0" in details
        assert "| Fleiss' κ of preferences | – | – | – | n/a |" in details


class TestSettings:
    def test_copies_of_the_source_are_counted_below(self, run):
        for cell in run.cells("tables/main"):
            run.put(cell, SCORES, copies=3 * (cell.method == "ev" and cell.direction == "en-zh"))
        (note,) = [note for note in notes_of(run.text("tables/main")) if "copy" in note]
        assert note == "Translations that are a copy of their source: EV, LLaDA-tiny, En→Zh 6 of 32."

    def test_another_day_of_latencies_is_another_line(self, run):
        path = run.root / "en-zh/llada-tiny/seed1/latency/grammar/ev/med-T8.json"
        run.replace(path, files.read_json(path) | {"date": "2020-02-02"})
        notes = [
            note for note in notes_of(run.text("tables/direct_length_baselines")) if note.startswith("Latency, with")
        ]
        assert len(notes) == 2 and any(note.endswith("2020-02-02.") for note in notes)


def test_without_a_comet_the_gap_is_judged_by_chrf(tmp_path):
    """BLEU has no scores of sentences, so chrF stands in the place of the main metric."""
    run = finished.Run(tmp_path, scoring={"comet": None})
    finished.fit(run.root, run.experiment)
    numbers = run.numbers("tables/main").query("method == 'ev' and direction == 'en-zh'").set_index("metric")
    assert {*numbers.index} == {"chrf", "bleu"} and numbers["gap_closure_runs"].to_list() == [2, 2]
    assert "chrF: Gap closure | " in run.text("tables/main")
    assert "| System | chrF | EV − system [95 % CI], p |" in run.text("tables/direct_length_baselines")
    assert "tables/paper_comparison" not in tables.configured(run.experiment)  # whose numbers are COMET's


def test_the_main_table_prints_the_metrics_that_are_asked_for(tmp_path):
    run = finished.Run(tmp_path, tables={"metrics": ["chrf", "toy_comet"], "studies": []})
    head = run.text(MAIN).splitlines()[0]
    assert head.index("chrF") < head.index("toy COMET") and "sacreBLEU" not in head
    assert "sacreBLEU" not in run.text(MAIN)


def test_the_number_of_sentences_of_each_direction(run):
    for cell in where(run, MAIN, direction="zh-en"):
        run.put(cell, SCORES, sentences=2037)
    assert "Sentences (N): En→Zh: 16; Zh→En: 2,037." in notes_of(run.text(MAIN))
