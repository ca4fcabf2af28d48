from __future__ import annotations

import pytest
from fake_results import change
from making import drawn, one_backbone

from entropy_valley.reporting import style
from entropy_valley.reporting.reports.crossbb import CrossBackboneFigure
from entropy_valley.reporting.reports.hero import Hero
from entropy_valley.reporting.style import BACKBONE_COLOURS, METHOD_COLOURS, faint


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_hero_has_a_point_per_method_and_direction(params):
    (axes,) = drawn(Hero, one_backbone(params))[0].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["En→Zh", "Zh→En", "En→De"]
    colours = {container.get_label(): container.lines[0].get_color() for container in axes.containers}
    assert colours == {"Ratio": METHOD_COLOURS["ratio"], "EV": METHOD_COLOURS["ev"], "Oracle": METHOD_COLOURS["oracle"]}
    assert len(texts(axes)) == 3
    assert all("±" in text and text.endswith("%") for text in texts(axes))


def test_panels_are_lettered_when_there_are_several(matched):
    figure, _ = drawn(Hero, matched)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["A", "B"]


def test_reference_panel_sets_ev_against_autoregressive_systems(matched):
    for cell in matched["cells"]:
        if cell["direction"] == "en-de" and cell["method"] in ("ev", "beam4"):
            change(cell["path"], comet22={"ev": 0.5, "beam4": 0.625}[cell["method"]])
    _, axes = drawn(Hero, matched)[0].axes
    colours = [container.lines[0].get_color() for container in axes.containers]
    pale = [faint(METHOD_COLOURS[name]) for name in ("ratio", "oracle")]
    assert colours == [pale[0], METHOD_COLOURS["ev"], pale[1], BACKBONE_COLOURS[0]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["EV", "LLaMA-3-tiny", "EV − AR"]
    assert texts(axes)[2] == "−0.1250"


def test_faint_is_between_the_colour_and_white():
    assert faint("#000000") == pytest.approx((0.65, 0.65, 0.65))
    assert faint("#FFFFFF") == pytest.approx((1, 1, 1))


def test_crossbb_says_where_there_is_no_gap(params):
    for cell in params["cells"]:
        if (cell["backbone"], cell["direction"], cell["method"]) == ("dream-tiny", "en-de", "oracle"):
            change(cell["path"], comet22=0.1)
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
