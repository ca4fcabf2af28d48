from __future__ import annotations

import fake_orders
import fake_results
import numpy as np
import pytest
from fake_sets import put, rows
from making import drawn, made, one_backbone
from matplotlib.colors import to_rgb
from test_order_tables import SWEEP

from entropy_valley.reporting import style
from entropy_valley.reporting.reports.ar_reference import ArReference
from entropy_valley.reporting.reports.crossbb import CrossBackboneFigure
from entropy_valley.reporting.reports.hero import Hero
from entropy_valley.reporting.reports.method import Method
from entropy_valley.reporting.style import BACKBONE_COLOURS, METHOD_COLOURS, faint
from entropy_valley.results import SCORES


def points(axes):
    """The lines of points, without those of error bars."""
    return [line for line in axes.lines if not line.get_label().startswith("_")]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_hero_has_a_point_per_method_and_direction(params):
    (axes,) = drawn(Hero, one_backbone(params))[0].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["En→Zh", "Zh→En", "En→De"]
    colours = {line.get_label(): line.get_color() for line in points(axes)}
    assert colours == {"Ratio": METHOD_COLOURS["ratio"], "EV": METHOD_COLOURS["ev"], "Oracle": METHOD_COLOURS["oracle"]}
    assert len(texts(axes)) == 3
    assert all("±" in text and text.endswith("%") for text in texts(axes))


def test_panels_are_lettered_when_there_are_several(matched):
    figure, _ = drawn(Hero, matched)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["A", "B"]


def test_reference_panel_sets_ev_against_autoregressive_systems(matched):
    """Over the seeds 1 and 2, that both have: the third of EV counts in panel A alone."""
    for cell in matched["cells"]:
        if cell["direction"] == "en-de" and cell["method"] in ("ev", "beam4"):
            put(cell, SCORES, comet22={"ev": 0.5 if cell["seed"] < 3 else 0.9, "beam4": 0.625}[cell["method"]])
    figure, numbers = drawn(Hero, matched)
    _, axes = figure.axes
    pale = [faint(METHOD_COLOURS[name]) for name in ("ratio", "oracle")]
    found = [line.get_color() for line in points(axes)]
    assert found == [pale[0], METHOD_COLOURS["ev"], pale[1], BACKBONE_COLOURS[0]]
    labels = ["Ratio", "EV", "Oracle", "LLaMA-3-tiny", "EV − AR"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
    assert texts(axes)[2] == "−0.1250"
    assert numbers.groupby("panel")["runs"].unique().map(list).to_dict() == {"A": [3], "B": [2]}


def test_hero_and_the_table_give_the_same_differences(matched):
    for cell in matched["cells"]:  # as a scorer writes it: a system's score is the mean of its sentences'
        scores = rows(cell, SCORES)
        put(cell, SCORES, comet22=sum(row["comet22"] for row in scores) / len(scores))
    shown = texts(drawn(Hero, matched)[0].axes[1])
    table, _ = made(ArReference, matched)
    assert [cell.text for cell in table.sections[2].groups[0].rows[0].cells] == shown


def test_a_single_run_has_no_error_bar(tmp_path):
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1, 2)}, autoregressive={"llama3-tiny": (1,)})
    first, second = drawn(Hero, params)[0].axes
    assert (len(first.containers), len(second.containers)) == (3, 0)
    assert {type(handle).__name__ for handle in first.get_legend().legend_handles[:3]} == {"Line2D"}


def test_order_panel_sets_the_span_of_lengths_against_that_of_orders(tmp_path):
    """Worked by hand: the lengths lie between 0.3 and 0.5; the orders by source at 0.51 and 0.45; random counts not."""
    sweep = fake_orders.write(tmp_path / "sweep", SWEEP, seeds=(1, 2))
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1,)}) | {"sweep": sweep}
    figure, numbers = drawn(Hero, params)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["A", "B"]  # no autoregressive system
    axes = figure.axes[1]
    assert texts(axes) == ["0.2000", "0.0600"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Length\n(MED)", "Order\n(Oracle)"]
    rows = numbers[numbers["panel"] == "C"]
    assert rows["seed"].unique().tolist() == [1]
    assert set(rows.loc[rows["method"] == "", "metric"]) == {"length_span", "source_guided_span"}


def test_no_text_lies_over_a_point(matched):
    figure, _ = drawn(Hero, matched)
    figure.draw_without_rendering()
    for axes in figure.axes:
        for text in axes.texts:
            box, names = text.get_window_extent(), axes.get_legend().get_window_extent()
            assert not box.overlaps(names)
            for line in points(axes):
                centres = axes.transData.transform(line.get_xydata())
                reach = line.get_markersize() / 2 * figure.dpi / 72
                clear = (centres < np.array(box.min) - reach) | (centres > np.array(box.max) + reach)
                assert clear.any(axis=1).all()


def test_faint_is_between_the_colour_and_white():
    assert faint("#000000") == pytest.approx((0.65, 0.65, 0.65))
    assert faint("#FFFFFF") == pytest.approx((1, 1, 1))


def test_crossbb_says_where_there_is_no_gap(params):
    for cell in params["cells"]:
        if (cell["backbone"], cell["direction"], cell["method"]) == ("dream-tiny", "en-de", "oracle"):
            put(cell, SCORES, comet22=0.1)
    (axes,) = drawn(CrossBackboneFigure, params)[0].axes
    assert texts(axes).count("n/a") == 1
    assert len(texts(axes)) == 6


def test_files_are_the_same_each_time(params, tmp_path):
    for name in "ab":
        figure, _ = drawn(Hero, one_backbone(params))
        style.save(figure, pdf=tmp_path / f"{name}.pdf", png=tmp_path / f"{name}.png")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


def test_method_has_the_lengths_of_the_candidates():
    """Of 20 tokens: ⌊0.55 · 20⌋ + 1 = 12, 13, 17."""
    figure, numbers = drawn(Method, {"ratios": [0.55, 0.62, 0.80], "steps": 32})
    assert numbers["slots"].tolist() == [12, 13, 17]
    assert numbers["chosen"].tolist() == [False, True, False]
    assert numbers.loc[numbers["drawn_entropy"].idxmin(), "chosen"]
    (axes,) = figure.axes
    rows = [len(container) for container in axes.containers]
    assert rows == [20, 12, 13, 17, 13, 13, 13, 13, 13]  # source, candidates, canvas, four steps
    blue = [sum(bar.get_facecolor()[:3] == to_rgb(METHOD_COLOURS["ev"]) for bar in row) for row in axes.containers]
    assert blue[5:] == [3, 6, 10, 13]


def test_the_method_of_one_candidate_chooses_it():
    assert drawn(Method, {"ratios": [0.8], "steps": 8})[1]["chosen"].tolist() == [True]


@pytest.mark.parametrize(
    ("panels", "width", "size"), [(2, 2.1, (4.2, 1)), (3, 2.1, (6.3, 1)), (3, 3.15, (6.3, 2)), (2, 5, (5, 2))]
)
def test_a_row_has_the_panels_that_fit_on_a_page(panels, width, size):
    figure = style.draw(*[lambda axes: axes.plot([0, 1])] * panels, width=width, height=1)
    assert tuple(figure.get_size_inches()) == pytest.approx(size)
    assert len(figure.axes) == panels
