"""The table of a study, on made-up results: what is compared, what is bold, what a column says."""

from __future__ import annotations

import math
from dataclasses import replace

import fake_results
import numpy as np
import pytest
from fake_sets import put
from scipy import stats

from entropy_valley import tables
from entropy_valley.config import base_files, load_files
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import Params, ScoredCell
from entropy_valley.stats.significance import bootstrap_means
from entropy_valley.tables.systems import SystemRow, Systems, study
from entropy_valley.tables.transfer import Transfer

COLUMNS = ["candidates", "ratios", "mae", "bleu", "comet", "closure", "lead", "cost", "calls", "passes", "untouched"]
GRIDS = {"en-zh": {"ratio": 0.8, "ev": [0.7, 0.8, 0.9], "oracle": None}}


@pytest.fixture
def given(tmp_path):
    def given(seeds=(1,), **changed):
        made_up = fake_results.write(tmp_path, backbones={"llada-tiny": seeds}, directions=("en-zh",))
        study = {"columns": COLUMNS, "against": ["ev", "med", 8], "grids": GRIDS}
        return Params(made_up | study | changed)

    return given


def rows(params):
    table, _ = Systems().made(params)
    (section,) = table.sections
    return {group.label: [cell.text for cell in group.rows[0].cells] for group in section.groups}, table


def test_the_lead_is_the_mean_of_sentence_differences(given):
    params = given()
    frame = study(params).query("statistic == 'run'").set_index("method")
    assert math.isclose(frame.lead["ratio"], frame.comet["ev"] - frame.comet["ratio"], abs_tol=1e-12)
    assert frame.ci_low["ratio"] < frame.lead["ratio"] < frame.ci_high["ratio"]
    assert math.isnan(frame.lead["ev"])
    scores = [[row["comet22"] for row in cell.segments()] for cell in params.cells if cell.method in ("ev", "ratio")]
    assert frame.wilcoxon_p["ratio"] == pytest.approx(stats.wilcoxon(*scores, zero_method="pratt").pvalue)


def test_the_lowest_length_error_is_bold_but_for_upper_bounds(given):
    params = given(columns=["mae"])
    for cell in params["cells"]:
        put(cell, TRANSLATIONS, length_mae={"oracle": 0.0, "ratio": 2.0, "ev": 1.5}[cell["method"]])
    bold = [group.label for group in Systems().made(params)[0].sections[0].groups if group.rows[0].cells[0].bold]
    assert bold == ["Entropy-Valley"]


def test_runs_with_pools_stand_apart(tmp_path):
    """Each is compared with the methods of its own pool; their adapters differ, and no run is averaged with another."""
    params = Params(
        fake_results.write_pools(tmp_path) | {"columns": ["comet", "closure", "lead"], "against": ["ev", "med", 8]}
    )
    table, numbers = Systems().made(params)
    assert [section.heading for section in table.sections] == [
        f"LLaDA-tiny, En→Zh, pool of {pool} training pairs, N = 60" for pool in ("50k", "200k")
    ]
    runs = numbers.query("statistic == 'run' and method != 'ev'")
    ev = numbers.query("statistic == 'run' and method == 'ev'").set_index("pool")["comet"]
    assert list(runs["lead"]) == pytest.approx([ev[row.pool] - row.comet for row in runs.itertuples()])
    assert ev["200k"] < ev["50k"] - 0.05
    assert set(numbers["runs"]) == {1}


def test_a_transfer_has_a_row_for_each_pool_and_two_tests_of_the_lead_over_ratio(tmp_path):
    params = Params(fake_results.write_pools(tmp_path) | {"columns": [], "against": ["ev", "med", 8]})
    table, numbers = Transfer().made(params)
    assert [column.title for column in table.columns[3:6]] == ["Oracle", "Ratio", "EV"]
    runs = numbers.query("statistic == 'run'").set_index(["pool", "method"])
    (group,) = table.sections[0].groups
    for row in group.rows:
        pool, seed, oracle, ratio, ev, lead, p, wilcoxon_p = (cell.text for cell in row.cells)
        tested = runs.loc[(pool, "ratio")]
        assert (seed, float(ev), float(ratio)) == ("1", round(runs.comet[pool, "ev"], 4), round(tested["comet"], 4))
        assert float(lead.split()[0]) == round(tested["lead"], 4) and float(oracle) > float(ev)
        assert wilcoxon_p.startswith(f"{tested['wilcoxon_p']:.1e}"[:3]) and p == "< 0.01"
    assert [row.cells[0].text for row in group.rows] == ["50k", "200k"]


def test_the_caps_are_those_of_the_methods_that_have_one():
    experiment = load_files(base_files())
    params = tables.configured(experiment)["tables/fwdcount_control"].params(experiment)
    assert params["probes"]["en-zh"] == {"ratio": 0, "ev": 5}
    assert not {"oracle"} & {cell["method"] for cell in params["cells"]}
    keys = [{"direction": "en-zh", "method": method} for method in ("ratio", "ev")]
    rows = [SystemRow(Params(params), key, mean={}, std={}, runs=[]) for key in keys]
    assert [(row.probe_cap(), row.probe_cap(32)) for row in rows] == [("0", "32"), ("≤ 5", "≤ 37")]


def test_a_fixed_ratio_by_direction_has_another_number_in_each_section(tmp_path):
    """By direction it was once printed with the last direction's number everywhere."""
    directions, comet = ("en-zh", "zh-en"), fake_results.COMET | {"half": 0.83}
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1,)}, directions=directions, comet=comet)
    study = {"columns": ["comet"], "against": ["ev", "med", 8], "ratios": {"half": {"en-zh": 0.71, "zh-en": 1}}}
    table, _ = Systems().made(Params(params | study))
    labels = [[group.label for group in section.groups] for section in table.sections]
    assert [texts[-1] for texts in labels] == ["Fixed 0.71", "Fixed 1"]


def test_every_metric_of_the_config_can_be_a_column(given):
    texts, table = rows(given(columns=["chrf", "comet"]))
    assert [column.title for column in table.columns] == ["System", "chrF", "toy COMET"]
    assert texts["Entropy-Valley"][0] == "50.00"


def test_upper_bounds_are_never_bold(given):
    _, table = rows(given())
    bold = [[cell.bold for cell in group.rows[0].cells[3:5]] for group in table.sections[0].groups]
    assert not any(bold[0])
    assert any(bold[2])


def test_another_budget_is_measured_by_the_main_ones_oracle(given, tmp_path):
    """Without an Oracle of its own T, a system closes the gap of the table's T; with the same scores, as much of it."""
    params = given()
    (ratio,) = (cell for cell in params.cells if cell.method == "ratio")
    other = replace(ratio, steps=40)
    put(other, SCORES, ratio.segments(), **ratio.scores())
    put(other, TRANSLATIONS, ratio.translations(), **ratio.decoding())
    cells = [vars(cell) for cell in (*params.cells, other)]
    frame = study(given(cells=cells)).query("statistic == 'run'").set_index(["method", "steps"])
    assert frame.closure["ratio", 40] == frame.closure["ratio", 8] == 0
    assert frame.cost["ratio", 40] == 1


def test_tokens_and_changed_texts_are_read_where_they_are_asked_for(tmp_path):
    """Of the second backbone one text in four is another one; the first is what it is compared with."""
    backbones = {"llada-tiny": (1, 2), "dream-tiny": (1,)}
    made_up = fake_results.write(tmp_path, backbones=backbones, directions=("en-zh",), sentences=8)
    for cell in made_up["cells"]:
        other = cell["backbone"] == "dream-tiny"
        texts = [f"文 {number}" + "!" * (other and number % 4 == 1) for number in range(8)]
        outputs = [{"id": f"t{n}", "hypothesis": text} for n, text in enumerate(texts)]
        decoder = f"engine r1|med|T8|float32|llada{'|prompt cache 4' * other}"
        made_by = ScoredCell(**cell).decoding()["signature"] | {"decoder": decoder}
        put(cell, TRANSLATIONS, outputs, run_tokens=8 * (100 + other), signature=made_by)
    asked = {"columns": ["comet", "changed", "tokens"], "against": ["ev", "med", 8]}
    params = Params(made_up | asked)
    table, _ = Systems().made(params)
    found = [[[cell.text for cell in group.rows[0].cells[1:]] for group in part.groups] for part in table.sections]
    assert found == [[["–", "100.0 ± 0.0"]] * 3, [["25.0%", "101.0"]] * 3]
    said = [note.text for note in table.notes if note.text.startswith("Approximate")]
    assert said == [
        "Approximate, prompt cache 4: the prompt's keys and values are renewed every 4 passes over a sentence."
    ]


def test_closure_over_the_best_fixed_ratio_is_the_papers(tmp_path):
    """Zh→En of the paper's ratio sweep: (0.8453 − 0.8390) / (0.8568 − 0.8390) = 35.4 %; not over one with a slot."""
    comet = {"oracle": 0.8568, "ratio": 0.8298, "ratio_1.30": 0.8372, "ratio_1.40": 0.8390}
    comet |= {"ratio_eos": 0.84, "ev": 0.8453}
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1,)}, directions=("zh-en",), comet=comet)
    for cell in params["cells"]:
        put(cell, SCORES, comet22=comet[cell["method"]])
    study = {"columns": ["closure", "closure_best", "closure_eos"], "against": ["ev", "med", 8]}
    fixed = {"fixed": ["ratio", "ratio_1.30", "ratio_1.40"]}
    texts, _ = rows(Params(params | study | fixed))
    assert texts["Oracle length"] == ["100.0%"] * 3
    assert texts["ratio_1.40"] == ["34.1%", "–", "–"]
    assert texts["Fixed ratio + EOS slot"] == ["37.8%", "5.6%", "0.0%"]
    assert texts["Entropy-Valley"] == ["57.4%", "35.4%", "31.5%"]


def two_backbones(tmp_path, seeds, second):
    """Two backbones whose sentence scores differ by ``second(sentence, seed)``, and what is asked of them."""
    backbones = {"llada-tiny": (1, 2, 3), "dream-tiny": seeds}
    made_up = fake_results.write(tmp_path, backbones=backbones, directions=("en-zh",))
    scores = {
        (cell["seed"], cell["method"]): ScoredCell(**cell).segments()
        for cell in made_up["cells"]
        if cell["backbone"] == "llada-tiny"
    }
    for cell in (cell for cell in made_up["cells"] if cell["backbone"] == "dream-tiny"):
        rows = scores[cell["seed"], cell["method"]]
        changed = [row | {"comet22": row["comet22"] + second(n, cell["seed"])} for n, row in enumerate(rows)]
        put(cell, SCORES, changed)
    asked = {"columns": ["difference", "closure_interval"], "against": ["ev", "med", 8]}
    return Params(made_up | asked)


def test_a_difference_is_that_of_means_over_runs_sentence_by_sentence(tmp_path):
    """Two runs whose changes cancel out in each sentence differ by nothing in the mean, and much in each run."""
    params = two_backbones(tmp_path, (1, 2), lambda sentence, seed: (0.1 if seed == 1 else -0.1) * (sentence % 3))
    frame = study(params).query("backbone == 'dream-tiny' and method == 'ev'").set_index("statistic")
    assert frame.difference["mean"] == pytest.approx(0, abs=1e-12)
    assert frame.difference_high["mean"] - frame.difference_low["mean"] < 1e-12
    assert list(frame.difference["run"]) == pytest.approx([0.1, -0.1])
    assert frame.difference_low["run"].iloc[0] > 0.05
    assert frame.difference_p["run"].iloc[0] == 0
    texts = [group.rows[0].cells[0].text for part in Systems().made(params)[0].sections for group in part.groups]
    assert texts[:3] == ["–"] * 3
    assert texts[3][1:9] == "0.0000 ["


def test_a_backbone_with_a_seed_that_the_first_lacks_has_no_difference_over_runs(tmp_path):
    params = two_backbones(tmp_path, (1, 2), lambda *_: 0.01)
    cells = [cell for cell in params["cells"] if (cell["backbone"], cell["seed"]) != ("llada-tiny", 2)]
    frame = study(Params(params | {"cells": cells})).query("backbone == 'dream-tiny' and method == 'ev'")
    assert list(frame.difference.round(4).fillna(-1)) == [0.01, -1, -1, -1]  # two runs, mean, deviation


def test_a_closure_interval_is_that_of_the_same_resamples_of_three_systems(given):
    params = given(seeds=(1, 2), columns=["closure", "closure_interval"])
    frame = study(params).query("statistic == 'mean'").set_index("method")
    drawn = {}
    for method in ("oracle", "ratio", "ev"):
        runs = [cell.segments() for cell in params.cells if cell.method == method]
        scores = np.mean([[row["comet22"] for row in rows] for rows in runs], axis=0)
        drawn[method] = bootstrap_means(scores, params.how.resamples, params.how.seed)
    closures = (drawn["ev"] - drawn["ratio"]) / (drawn["oracle"] - drawn["ratio"])
    limits = [frame.closure_low["ev"], frame.closure_high["ev"]]
    assert limits == pytest.approx(np.quantile(closures, [0.025, 0.975]))
    assert limits[0] < frame.closure["ev"] < limits[1]
    texts, _ = rows(params)
    assert texts["Oracle length"][1] == texts["Fixed ratio 0.8"][1] == "–"
    assert texts["Entropy-Valley"][1] == f"[{100 * limits[0]:.1f}%, {100 * limits[1]:.1f}%]"


def test_a_gap_that_may_be_chance_has_no_closure_interval(given):
    params = given(columns=["closure_interval"])
    oracle, ratio = (next(cell for cell in params.cells if cell.method == name) for name in ("oracle", "ratio"))
    even = [row | {"comet22": row["comet22"] + (-1) ** n * 0.01} for n, row in enumerate(ratio.segments())]
    put(oracle, SCORES, even)
    assert {text for (text,) in rows(params)[0].values()} == {"–"}
