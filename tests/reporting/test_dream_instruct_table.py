from __future__ import annotations

import re

import pytest
from fake_sets import put
from making import made

from entropy_valley import files
from entropy_valley.reporting import latex, tables, terminal
from entropy_valley.reporting.reports.dream_instruct import DreamInstruct
from entropy_valley.results import SCORES, TRANSLATIONS

HEADER = "step,loss,cross_entropy,learning_rate,gradient_norm\n"
NO_LOSSES = "–: no losses here: not trained, or a given adapter."


def built(params):
    return made(DreamInstruct, params)[0]


def rows_of(table):
    """Heading, label and the row's texts, for every variant."""
    return [
        (section.heading, group.label, [cell.text for cell in row.cells])
        for section in table.sections
        for group in section.groups
        for row in group.rows
    ]


@pytest.fixture
def worked(instruct):
    """The first variant with a cross-entropy above log|V| = log 16 = 2.77 at its end, below it at step 2."""
    files.write_text(
        f"{instruct['variants']['sft-plain-unshifted']['adapter']}/losses.csv",
        HEADER + "1,9,4,0,0\n2,1,2,0,0\n3,8,3,0,0\n",
    )
    for variant in instruct["variants"].values():
        if variant["adapter"]:
            files.write_json(f"{variant['adapter']}/adapter.json", {"vocabulary": 16})
    return instruct


def test_a_row_per_variant_with_and_without_the_shift(instruct):
    rows = [(heading, label) for heading, label, _ in rows_of(built(instruct))]
    labels = ("LoRA-SFT, plain prompt", "LoRA-SFT, chat template", "zero-shot")
    headings = ("Logits not shifted", "Logits shifted by one slot, as the checkpoint was trained")
    assert rows == [(heading, label) for heading in headings for label in labels]


def test_a_cross_entropy_above_that_of_a_uniform_guess_is_marked(worked):
    (_, _, texts), *_ = rows_of(built(worked))
    assert texts[:4] == ["3.00*", "1.08", "3.00 ± 1.00*", "2.00 (2)"]


def test_what_is_not_trained_has_no_loss(instruct):
    table = built(instruct)
    untrained = [texts for _, label, texts in rows_of(table) if label == "zero-shot"]
    assert [texts[:4] for texts in untrained] == [["–"] * 4] * 2
    assert NO_LOSSES in [note.text for note in table.notes]


def test_given_adapters_have_no_losses_to_show_and_no_note_explains_any(instruct):
    for variant in instruct["variants"].values():
        variant["adapter"] = None
    table = built(instruct)
    assert [texts[:4] for _, _, texts in rows_of(table)] == [["–"] * 4] * 6
    texts = [note.text for note in table.notes]
    assert NO_LOSSES in texts
    assert not any("uniform" in text for text in texts)


def test_where_all_is_trained_no_dash_is_explained(instruct):
    cells = [cell for cell in instruct["cells"] if instruct["variants"][cell["backbone"]]["adapter"]]
    assert NO_LOSSES not in [note.text for note in built(instruct | {"cells": cells}).notes]


def test_outputs(worked):
    cell = next(c for c in worked["cells"] if (c["backbone"], c["method"]) == ("sft-plain-unshifted", "ev"))
    put(cell, TRANSLATIONS, [{"id": f"t{i}", "hypothesis": "ab" if i < 10 else ""} for i in range(40)])
    put(cell, SCORES, comet22=0.25)
    (_, _, texts), *_ = rows_of(built(worked))
    assert texts[7:10] == ["75.0%", "0.50", "0.2500"]


def test_footnote(worked):
    table = built(worked)
    text = "\n".join(note.text for note in table.notes)
    assert "En→Zh, 40 sentences; reveal order med, T = 8; training seed 1." in text
    assert "log|V| = 2.77 (|V| = 16)" in text
    assert "the references have 25.00" in text
    signatures = {note.text: note.signature for note in table.notes if note.signature}
    assert signatures["logits:"].startswith("sft-plain-unshifted:unshifted|")
    assert signatures["adapters:"].startswith("4|")


def test_a_method_that_was_not_run_has_dashes(instruct):
    cells = [cell for cell in instruct["cells"] if cell["method"] != "oracle"]
    assert all(texts[-3:] == ["–"] * 3 for _, _, texts in rows_of(built(instruct | {"cells": cells})))


def test_markdown_and_terminal(worked, tmp_path, capsys):
    files.write_text(tmp_path / "table.md", tables.to_markdown(built(worked)))
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    terminal.show(tmp_path / "table.md")
    shown = capsys.readouterr().out
    assert "3.00*" in shown
    assert "*: worse than a uniform guess" in shown
    assert "\\" not in shown


def test_variants_have_no_rule_between_them(instruct):
    text = latex.to_latex(built(instruct))
    assert text.count(r"\midrule") == 2 * text.count(r"\toprule")  # one above each section
