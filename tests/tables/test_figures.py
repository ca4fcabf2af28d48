import itertools

import finished
import numpy as np
import pytest
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from entropy_valley.experiment import tables
from entropy_valley.experiment.tables import style
from entropy_valley.experiment.tables.method import snapshots


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    return finished.Run(tmp_path_factory.mktemp("finished"))


def texts(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("key", [key for key in tables.REPORTS if key.startswith("figures/")])
def test_a_figure_fits_on_a_page_with_letters_of_seven_points(unchanged, key):
    name = next(name for name, report in tables.configured(unchanged.experiment).items() if report.key == key)
    figure = unchanged.figure(name)
    assert figure.get_size_inches()[0] < style.PAGE + 0.001
    figure.draw_without_rendering()
    printed = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert printed and min(text.get_fontsize() for text in printed) >= 7


def test_a_single_run_has_no_error_bar(tmp_path):
    figure = finished.Run(tmp_path, matrix={"seeds": [1]}).figure("figures/hero")
    assert not [bars for axes in figure.axes for bars in axes.containers]


def test_no_text_lies_over_a_point(unchanged):
    figure = unchanged.figure("figures/hero")
    figure.draw_without_rendering()
    for axes in figure.axes:
        lines = [line for line in axes.lines if not line.get_label().startswith("_")]  # not those of error bars
        for text in axes.texts:
            box, names = text.get_window_extent(), axes.get_legend().get_window_extent()
            assert not box.overlaps(names)
            for line in lines:
                centres = axes.transData.transform(line.get_xydata())
                reach = line.get_markersize() / 2 * figure.dpi / 72
                clear = (centres < np.array(box.min) - reach) | (centres > np.array(box.max) + reach)
                assert clear.any(axis=1).all()


def test_crossbb_says_where_there_is_no_gap(run):
    for cell in run.cells("figures/crossbb"):
        if (cell.run.direction, cell.method) == ("zh-en", "oracle"):
            run.score(cell, 0.1)
    (axes,) = run.figure("figures/crossbb").axes
    assert texts(axes).count("n/a") >= 2 and len(texts(axes)) == 4


@pytest.mark.parametrize("name", ["figures/entropy_valley", "figures/selector_checks"])
def test_names_around_valleys_are_whole_and_apart(unchanged, name):
    figure = unchanged.figure(name)
    figure.draw_without_rendering()
    names = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    around = [one for one in names if one.get_text()] + figure.texts + figure.legends
    boxes = [one.get_window_extent() for one in (*around, *figure.axes)]
    for box in boxes:
        assert (np.array(box.min) >= 0).all() and (np.array(box.max) <= figure.bbox.size + 1).all()
    assert not any(Bbox.intersection(*pair) for pair in itertools.combinations(boxes, 2))


def test_files_are_the_same_each_time(unchanged):
    first = {ending: path.read_bytes() for ending, path in unchanged.make("figures/hero").items()}
    assert {ending: path.read_bytes() for ending, path in unchanged.make("figures/hero").items()} == first
    assert b"CreationDate" not in first["pdf"]


def test_a_users_settings_go_before_ours(unchanged, tmp_path):
    own = tmp_path / "matplotlibrc"
    own.write_text("font.size: 15\nfont.family: DejaVu Serif\n")
    drawn = unchanged.report("figures/pareto").shown(unchanged.results).draw(str(own))
    label = drawn.axes[0].yaxis.label
    assert label.get_fontfamily() == ["DejaVu Serif"] and drawn.axes[0].get_xticklabels()[0].get_fontsize() > 10


def test_the_method_is_denoised_by_the_schedule_that_runs():
    assert snapshots(13, 32, "llada") == {4: 4, 7: 7, 10: 10, 13: 13}
    assert snapshots(13, 32, "floors") == {10: 4, 18: 7, 25: 10, 32: 13}
    assert snapshots(21, 2, "llada") == {1: 11, 2: 21}


@pytest.mark.parametrize("name", ["dissociation", "hero"])
def test_directions_come_as_the_config_has_them(tmp_path, name):
    over = {"matrix": {"directions": ["zh-en", "en-zh"]}, "tables": {"studies": []}}
    drawn = finished.Run(tmp_path, **over).figure(f"figures/{name}")
    texts = [text.get_text() for axes in drawn.axes for text in (axes.title, *axes.get_xticklabels(), *axes.texts)]
    legends = [text.get_text() for axes in drawn.axes if axes.get_legend() for text in axes.get_legend().get_texts()]
    shown = [text for text in (*texts, *legends) if text in ("En→Zh", "Zh→En")]
    assert shown[:2] == ["Zh→En", "En→Zh"]


def test_the_legend_has_the_systems_from_the_best_one_down(unchanged):
    figure, plotted = unchanged.figure("figures/lengths"), unchanged.numbers("figures/lengths")
    methods, axes = [*plotted.sort_values("mean", ascending=False).method], figure.axes[0]
    names = texts(axes.get_legend())
    assert len(names) == len(methods) and names.index("EV") == methods.index("ev")
    figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().y0 >= 0


def test_all_formats_have_one_layout(unchanged, tmp_path):
    saved, one = (unchanged.figure("figures/pareto") for _ in range(2))
    style.save(saved, {kind: tmp_path / f"a.{kind}" for kind in style.UNDATED})
    with style.look():
        one.draw_without_rendering()
        one.savefig(tmp_path / "b.pdf")
    places = [[axes.get_position().bounds for axes in figure.axes] for figure in (saved, one)]
    assert places[0] == places[1]
