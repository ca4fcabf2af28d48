"""Length error beside score: what the table says of the claim, and where the figure's points are."""

from __future__ import annotations

import fake_results
import numpy as np
import pytest
from fake_texts import LENGTHS, TRUE, add_canvases
from making import drawn, made, one_backbone

from entropy_valley.reporting.reports.dissociation import Dissociation, DissociationFigure
from entropy_valley.reporting.style import METHOD_COLOURS


def notes_of(table):
    return {note.text.partition(":")[0]: note.text for note in table.notes}


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ({**LENGTHS, "ev": LENGTHS["ratio"]}, "holds in 6 of 6 runs (En→Zh 3 of 3, En→De 3 of 3), refuted in 0"),
        ({**LENGTHS, "ev": TRUE}, "holds in 0 of 6 runs (En→Zh 0 of 3, En→De 0 of 3), refuted in 6"),
        (dict.fromkeys(LENGTHS, TRUE), "holds in 0 of 6 runs (En→Zh 0 of 3, En→De 0 of 3), refuted in 0"),
    ],
    ids=["no nearer to the reference", "the reference's lengths", "no gap"],
)
def test_the_text_says_in_how_many_runs_the_claim_holds(tmp_path, lengths, said):
    params = fake_results.write(tmp_path, directions=("en-zh", "en-de"), sentences=200)
    table, _ = made(Dissociation, add_canvases(params, lambda cell, _: lengths[cell["method"]]))
    text = notes_of(table)["Over Ratio"]
    assert text.startswith(f"Over Ratio: {said} (interval below 0)")
    assert text.endswith("6 without a gap.") == (len(set(lengths.values())) == 1)
    assert "over 3 runs" in table.notes[1].text


def test_the_fair_baseline_has_a_line_of_its_own(tmp_path):
    params = fake_results.write(tmp_path, comet=fake_results.COMET | {"ratio_eos": 0.84})
    table, numbers = made(
        Dissociation, add_canvases(params, lambda cell, _: {**LENGTHS, "ratio_eos": 7}[cell["method"]])
    )
    assert {"Over Ratio", "Over Ratio + EOS"} < notes_of(table).keys()
    assert [column.over for column in table.columns[2:]] == ["Length error"] * 3 + ["toy COMET"] * 3
    ours = numbers[(numbers["metric"] == "length_mae") & (numbers["method"] == "ev")]
    assert ours["gap_closure_mean"].to_list() == [0.5] * 3
    assert ours["gap_closure_eos_mean"].to_list() == pytest.approx([1 / 3] * 3)


def test_the_figure_has_a_mean_for_each_method_among_its_sentences(params, tmp_path):
    figure, numbers = drawn(DissociationFigure, add_canvases(one_backbone(params)))
    assert [axes.get_title() for axes in figure.axes] == ["En→Zh", "Zh→En", "En→De"]
    assert (numbers["id"].notna().sum(), numbers["id"].isna().sum()) == (3 * 3 * 60, 3 * 3 * 2)
    for axes in figure.axes:
        means = {line.get_color(): line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1}
        errors = {"oracle": 0, "ratio": 4, "ev": 2}
        assert {METHOD_COLOURS[name]: error for name, error in errors.items()}.items() <= means.items()
        assert [text.get_text() for text in axes.texts] == ["4.00", "2.00", "0.00"]
        assert np.ptp(axes.collections[0].get_offsets()[:, 0]) < 1  # one error, spread a little
