from __future__ import annotations

import itertools

import fake_orders
import fake_results
import numpy as np
import pytest
from fake_sets import put, rows
from making import drawn, made, one_backbone
from matplotlib.transforms import Bbox

from entropy_valley.results import SCORES
from entropy_valley.tables import formats, style
from entropy_valley.tables.ar_reference import ArReference
from entropy_valley.tables.crossbb import CrossBackboneFigure
from entropy_valley.tables.hero import Hero
from entropy_valley.tables.method import MethodFigure, snapshots
from entropy_valley.tables.selector_checks import SelectorChecksFigure
from entropy_valley.tables.valley_figure import EntropyValleyFigure


def points(axes):
    """The lines of points, without those of error bars."""
    return [line for line in axes.lines if not line.get_label().startswith("_")]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_hero_and_the_table_give_the_same_differences(matched):
    for cell in matched["cells"]:  # as a scorer writes it: a system's score is the mean of its sentences'
        scores = rows(cell, SCORES)
        put(cell, SCORES, comet22=sum(row["comet22"] for row in scores) / len(scores))
    shown = texts(drawn(Hero, matched)[0].axes[1])
    table, _ = made(ArReference, matched)
    leads = [cell.text for cell in table.sections[2].groups[0].rows[0].cells[2:]]  # × 100
    assert leads == [formats.signed(100 * float(text.replace("−", "-")), 2) for text in shown]


def test_the_span_of_lengths_is_that_of_the_mean_over_runs_and_of_the_run_of_the_orders(tmp_path):
    """The paper's span of lengths is that of three runs, its span of orders that of one."""
    scores = {("oracle", "med"): 0.86, ("ratio", "med"): 0.83, ("ev", "med"): 0.85, ("oracle", "sig_first"): 0.87}
    orders = fake_orders.write(tmp_path / "orders", {system: [score] * 5 for system, score in scores.items()})
    params = fake_results.write(tmp_path, directions=("en-zh",)) | {"sweep": orders}
    figure, numbers = drawn(Hero, params)
    spans = numbers[numbers["metric"] == "length_span"].set_index("runs")["mean"]
    means = numbers[numbers["panel"] == "A"].set_index("method")["mean"]
    assert spans.to_dict() == pytest.approx({3: means["oracle"] - means["ratio"], 1: 0.03})
    names = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert names == ["Length\n3 runs", "Length\nseed 1", "Order\nseed 1"]
    single = fake_results.write(tmp_path / "single", backbones={"llada-tiny": (1,)}, directions=("en-zh",))
    assert len(drawn(Hero, single | {"sweep": orders})[0].axes[1].get_xticks()) == 2


def test_a_single_run_has_no_error_bar(tmp_path):
    params = fake_results.write(tmp_path, backbones={"llada-tiny": (1, 2)}, autoregressive={"llama3-tiny": (1,)})
    first, second = drawn(Hero, params)[0].axes
    assert (len(first.containers), len(second.containers)) == (3, 0)
    assert {type(handle).__name__ for handle in first.get_legend().legend_handles[:3]} == {"Line2D"}


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


def test_crossbb_says_where_there_is_no_gap(params):
    for cell in params["cells"]:
        if (cell["backbone"], cell["direction"], cell["method"]) == ("dream-tiny", "en-de", "oracle"):
            put(cell, SCORES, comet22=0.1)
    (axes,) = drawn(CrossBackboneFigure, params)[0].axes
    assert texts(axes).count("n/a") == 1
    assert len(texts(axes)) == 6


@pytest.mark.parametrize("directions", [("en-zh",), ("en-zh", "zh-en", "en-de")])
@pytest.mark.parametrize("kind", [EntropyValleyFigure, SelectorChecksFigure])
def test_names_around_valleys_are_whole_and_apart(tmp_path, kind, directions):
    params = fake_results.write_selector_checks(tmp_path)
    params["cells"] = [cell for cell in params["cells"] if cell["direction"] in directions]
    figure, _ = drawn(kind, params)
    figure.draw_without_rendering()
    names = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    around = [name for name in names if name.get_text()] + figure.texts + figure.legends
    boxes = [one.get_window_extent() for one in (*around, *figure.axes)]
    for box in boxes:
        assert (np.array(box.min) >= 0).all() and (np.array(box.max) <= figure.bbox.size + 1).all()
    assert not any(Bbox.intersection(*pair) for pair in itertools.combinations(boxes, 2))


def test_files_are_the_same_each_time(params, tmp_path):
    for name in "ab":
        figure, _ = drawn(Hero, one_backbone(params))
        style.save(figure, pdf=tmp_path / f"{name}.pdf", png=tmp_path / f"{name}.png")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


def test_the_method_of_one_candidate_chooses_it():
    params = {"ratios": [0.8], "steps": 8, "schedule": "llada"}
    assert drawn(MethodFigure, params)[1]["chosen"].tolist() == [True]


def test_the_method_is_denoised_by_the_schedule_that_runs():
    assert snapshots(13, 32, "llada") == {4: 4, 7: 7, 10: 10, 13: 13}
    assert snapshots(13, 32, "floors") == {10: 4, 18: 7, 25: 10, 32: 13}
    assert snapshots(21, 2, "llada") == {1: 11, 2: 21}


@pytest.mark.parametrize(
    ("panels", "width", "size"), [(2, 2.1, (4.2, 1)), (3, 2.1, (6.3, 1)), (3, 3.15, (6.3, 2)), (2, 5, (5, 2))]
)
def test_a_row_has_the_panels_that_fit_on_a_page(panels, width, size):
    figure = style.draw(*[lambda axes: axes.plot([0, 1])] * panels, width=width, height=1)
    assert tuple(figure.get_size_inches()) == pytest.approx(size)
    assert len(figure.axes) == panels
