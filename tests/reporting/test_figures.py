from __future__ import annotations

import pytest
from fake_results import change

from entropy_valley import files
from entropy_valley.analysis.scores import collect
from entropy_valley.analysis.spec import Spec
from entropy_valley.analysis.summary import summarise
from entropy_valley.reporting import style
from entropy_valley.reporting.crossbb_figure import closure_panel
from entropy_valley.reporting.hero import length_panel, reference_panel
from entropy_valley.reporting.style import BACKBONE_COLOURS, METHOD_COLOURS, faint


@pytest.fixture
def panel(spec):
    """Build a panel from the results of a backbone, or of all."""

    def build(make, backbone=None):
        cells = [cell for cell in spec["cells"] if backbone in (None, cell["backbone"])]
        parsed = Spec.parse(files.canonical(spec | {"cells": cells}))
        return make(parsed, summarise(collect(parsed.cells)))

    return build


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_hero_has_a_point_per_method_and_direction(panel):
    (axes,) = style.draw(panel(length_panel, "llada-tiny")).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["En→Zh", "Zh→En", "En→De"]
    colours = {container.get_label(): container.lines[0].get_color() for container in axes.containers}
    assert colours == {"Ratio": METHOD_COLOURS["ratio"], "EV": METHOD_COLOURS["ev"], "Oracle": METHOD_COLOURS["oracle"]}
    assert len(texts(axes)) == 3
    assert all("±" in text and text.endswith("%") for text in texts(axes))


def test_panels_are_lettered_when_there_are_several(panel):
    figure = style.draw(panel(length_panel, "llada-tiny"), panel(closure_panel))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["A", "B"]


def test_reference_panel_sets_ev_against_autoregressive_systems(matched):
    for cell in matched["cells"]:
        if cell["direction"] == "en-de" and cell["method"] in ("ev", "beam4"):
            change(cell["path"], comet22={"ev": 0.5, "beam4": 0.625}[cell["method"]])
    parsed = Spec.parse(files.canonical(matched))
    (axes,) = style.draw(reference_panel(parsed, summarise(collect(parsed.cells)))).axes
    colours = [container.lines[0].get_color() for container in axes.containers]
    pale = [faint(METHOD_COLOURS[name]) for name in ("ratio", "oracle")]
    assert colours == [pale[0], METHOD_COLOURS["ev"], pale[1], BACKBONE_COLOURS[0]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["EV", "LLaMA-3-tiny", "EV − AR"]
    assert texts(axes)[2] == "−0.1250"


def test_faint_is_between_the_colour_and_white():
    assert faint("#000000") == pytest.approx((0.65, 0.65, 0.65))
    assert faint("#FFFFFF") == pytest.approx((1, 1, 1))


def test_crossbb_says_where_there_is_no_gap(spec, panel):
    for cell in spec["cells"]:
        if (cell["backbone"], cell["direction"], cell["method"]) == ("dream-tiny", "en-de", "oracle"):
            change(cell["path"], comet22=0.1)
    (axes,) = style.draw(panel(closure_panel)).axes
    assert texts(axes).count("n/a") == 1
    assert len(texts(axes)) == 6


def test_files_are_the_same_each_time(panel, tmp_path):
    for name in "ab":
        figure = style.draw(panel(length_panel, "llada-tiny"))
        style.save(figure, pdf=tmp_path / f"{name}.pdf", png=tmp_path / f"{name}.png")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()
