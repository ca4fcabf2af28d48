from __future__ import annotations

import csv
import dataclasses
import re

import fake_results
import pytest
from fake_sets import copied, put
from making import made, one_backbone

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES
from entropy_valley.scoring.metrics import Metric
from entropy_valley.stats.cells import ScoredCell
from entropy_valley.tables import render, terminal
from entropy_valley.tables.crossbb import CrossBackbone, CrossBackboneBleu
from entropy_valley.tables.main import Main


def score(params, value, **key):
    """Give the cells with these coordinates another COMET score."""
    for cell in params["cells"]:
        if all(cell[name] == wanted for name, wanted in key.items()):
            put(cell, SCORES, comet22=value)


def cells_of(table, label):
    group = next(group for section in table.sections for group in section.groups if group.label == label)
    return [[cell.text for cell in row.cells] for row in group.rows]


def test_main_table_has_the_papers_rows(params):
    table, _ = made(Main, one_backbone(params))
    assert [group.label for group in table.sections[0].groups] == ["En→Zh", "Zh→En", "En→De"]
    rows = table.sections[0].groups[1].rows
    assert [row.cells[0].text for row in rows] == ["Oracle length", "Fixed ratio 1.2", "Entropy-Valley"]
    assert [row.shaded for row in rows] == [False, False, True]
    assert [row.cells[2].text for row in rows][:2] == ["100%", "0%"]
    assert re.fullmatch(r"0\.\d{4} ± 0\.\d{4}", rows[2].cells[1].text)
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d%", rows[2].cells[2].text)
    assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", rows[2].cells[3].text)


def test_the_main_table_prints_the_metrics_that_are_asked_for(params):
    for cell in params["cells"]:
        put(cell, SCORES, qe={"oracle": 1.5, "ev": 2.5, "ratio": 3.5}[cell["method"]])
        signatures = ScoredCell(**cell).scores()["signatures"] | {"qe": "qe|version:1"}
        put(cell, SCORES, signatures=signatures)
    qe = dataclasses.asdict(Metric("qe", "MetricX", 1, higher_is_better=False, reference_free=True))
    further = {"metrics": [*params["metrics"], qe], "shown": ["qe", "comet22"]}
    table, numbers = made(Main, one_backbone(params) | further)
    assert [column.over for column in table.columns[2:]] == ["MetricX"] * 2 + ["toy COMET"] * 2
    scores = [(row.cells[1].text, row.cells[2].text, row.cells[1].bold) for row in table.sections[0].groups[0].rows]
    assert scores[1:] == [("3.5 ± 0.0", "0%", False), ("2.5 ± 0.0", "50.0 ± 0.0%", True)]
    assert [note.signature for note in table.notes if note.text == "MetricX:"] == ["qe|version:1"]
    assert set(numbers["metric"]) == {"comet22", "bleu", "chrf", "qe"}


def test_bold_is_the_best_that_can_be_deployed(params):
    score(params, 0.99, backbone="llada-tiny", direction="en-de", method="ratio")
    table, _ = made(Main, one_backbone(params))
    bold = [[row.cells[1].bold for row in group.rows] for group in table.sections[0].groups]
    assert bold == [[False, False, True], [False, False, True], [False, True, False]]


def test_ratio_has_no_closure_over_the_ratio_with_a_slot(tmp_path):
    """It was once printed as −82 %, which is no share of a gap; the CSV keeps it."""
    comet = fake_results.COMET | {"ratio_eos": 0.845}
    table, numbers = made(Main, fake_results.write(tmp_path, directions=("en-zh",), comet=comet))
    texts = {row.cells[0].text: row.cells[3].text for row in table.sections[0].groups[0].rows}
    assert texts["Fixed ratio 0.8"] == "–" and texts["Fixed ratio + EOS slot"] == "0%"
    assert (numbers.loc[numbers["method"] == "ratio", "gap_closure_eos_mean"] < 0).any()


def test_no_gap_prints_as_not_available(params):
    score(params, 0.1, backbone="llada-tiny", direction="en-de", method="oracle")
    table, _ = made(Main, one_backbone(params))
    assert [row[2] for row in cells_of(table, "En→De")] == ["n/a"] * 3


def test_a_single_run_prints_its_value_alone_and_the_footnote_says_so(params):
    table, _ = made(Main, one_backbone(params, "dream-tiny"))
    assert re.fullmatch(r"0\.\d{4}", cells_of(table, "En→Zh")[0][1])
    assert next(note.text for note in table.notes if "run" in note.text) == "One run (training seed)."


def test_single_runs_beside_several_are_told_apart(params):
    table, _ = made(CrossBackbone, params)
    assert "±" in cells_of(table, "LLaDA-tiny")[0][1]
    assert "±" not in cells_of(table, "Dream-tiny")[0][1]
    texts = [note.text for note in table.notes]
    assert "Mean ± sample standard deviation over 1 to 3 runs (training seeds)." in texts
    assert "A score without ± is of one run." in texts


def test_a_fixed_ratio_has_the_number_of_its_direction(params):
    params = one_backbone(params) | {"ratios": params["ratios"] | {"half": {"en-zh": 0.4, "zh-en": 0.6}}}
    params["cells"] = [copied(cell, method="half") if cell["method"] == "ev" else cell for cell in params["cells"]]
    table, _ = made(Main, params)
    labels = [[row.cells[0].text for row in group.rows] for group in table.sections[0].groups]
    assert [texts[-1] for texts in labels] == ["Fixed 0.4", "Fixed 0.6", "half"]
    assert [texts[1] for texts in labels] == ["Fixed ratio 0.8", "Fixed ratio 1.2", "Fixed ratio 1.8"]


def test_main_table_is_one_backbones(params):
    with pytest.raises(InputError, match="llada-tiny, dream-tiny"):
        made(Main, params)


def test_one_order_and_budget_a_table(params):
    other = [copied(cell, steps=16) for cell in params["cells"] if cell["seed"] == 1]
    with pytest.raises(InputError, match="med T = 8, med T = 16"):
        made(CrossBackbone, params | {"cells": params["cells"] + other})


@pytest.mark.parametrize(
    ("kind", "shown", "heading", "delta"),
    [(CrossBackbone, "comet22", "toy COMET", "+0.0"), (CrossBackboneBleu, "bleu", "sacreBLEU", "+2.")],
)
def test_crossbb_tables_have_a_metric_each_for_all_backbones(params, kind, shown, heading, delta):
    table, numbers = made(kind, params | {"shown": [shown]})
    (section,) = table.sections
    assert section.heading == heading
    assert [group.label for group in section.groups] == ["LLaDA-tiny", "Dream-tiny"]
    assert [row[0] for row in cells_of(table, "Dream-tiny")] == ["En→Zh", "Zh→En", "En→De"]
    assert cells_of(table, "LLaDA-tiny")[0][4].startswith(delta)
    assert shown in set(numbers["metric"]) and {"bleu", shown} - set(numbers["metric"]) == set()
    assert all(note.text.startswith(heading) for note in table.notes if note.text.startswith(("toy", "sacre")))


def test_footnote_carries_the_signatures(params):
    table, _ = made(Main, one_backbone(params))
    signatures = {note.text: note.signature for note in table.notes if note.signature}
    assert "tok:zh" in signatures["sacreBLEU En→Zh:"]
    assert "tok:13a" in signatures["sacreBLEU Zh→En, En→De:"]
    assert signatures["adapters:"].startswith("9|")
    assert signatures["decoder:"].startswith("engine r1|med")


def test_csv_is_tidy(params, tmp_path):
    _, summary = made(Main, one_backbone(params, "dream-tiny"))
    render.write_csv(tmp_path / "t.csv", summary)
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert len(rows) == 3 * 3 * 3
    assert {"direction", "method", "metric", "mean", "std", "runs", "gap_closure_mean", "gap_closure_std"} <= rows[
        0
    ].keys()
    assert {row["method"] for row in rows} == {"oracle", "ratio", "ev"}
    assert {row["std"] for row in rows} == {""}


def test_markdown_and_terminal(params, tmp_path, capsys):
    table, _ = made(Main, one_backbone(params))
    files.write_text(tmp_path / "main.md", render.to_markdown(table))
    lines = (tmp_path / "main.md").read_text().splitlines()
    assert len({line.count("|") for line in lines[:11]}) == 1
    terminal.show(tmp_path / "main.md")
    shown = capsys.readouterr().out
    assert "**" not in shown
    assert all(text in shown for row in cells_of(table, "En→Zh") for text in row)
    assert table.notes[0].text in shown


def test_terminal_shows_a_csv(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("method,mean\nev,0.85\n")
    terminal.show(tmp_path / "t.csv")
    assert "0.85" in capsys.readouterr().out
