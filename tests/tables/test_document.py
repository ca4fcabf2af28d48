"""The document of all tables and figures: what is in it, in which order, and how it is set."""

from types import SimpleNamespace

import pytest
from matplotlib import figure

from entropy_valley import files
from entropy_valley.experiment.tables import document
from entropy_valley.experiment.tables.render import to_text

MINE = "50% of <&>"


@pytest.fixture
def source(run, tmp_path):
    """The document of a table and a figure."""
    table = run.table("tables/main")
    files.write_text(tmp_path / "tables/main.float.tex", to_text("float.tex", table, "", MINE, "tab:main"))
    (tmp_path / "figures").mkdir()
    figure.Figure(figsize=(9, 2)).savefig(tmp_path / "figures/hero.pdf")
    reports = {
        path: SimpleNamespace(ready=True, text=MINE, endings=[ending])
        for path, ending in (("tables/main", "float.tex"), ("figures/hero", "pdf"))
    }
    document.write(run.experiment, reports, tmp_path / "report.tex")
    return tmp_path / "report.tex"


def test_a_table_may_have_a_dot_in_its_name(run, tmp_path):
    files.write_text(tmp_path / "tables/ratios_0.8.float.tex", "%\n")
    reports = {"tables/ratios_0.8": SimpleNamespace(ready=True, text=MINE, endings=["float.tex"])}
    document.write(run.experiment, reports, tmp_path / "report.tex")
    assert r"\input{tables/ratios_0.8.float.tex}" in (tmp_path / "report.tex").read_text()


def test_it_has_each_part_with_its_title_and_caption(source):
    text = source.read_text()
    assert text.index("figures/hero.pdf") < text.index(r"\input{tables/main.float.tex}")
    assert r"\section{Ours}" not in text
    assert r"\caption{50\% of \textless{}\&\textgreater{}}\label{fig:hero}" in text
    assert r"\subsection{Figure: The results at a glance}" in text and r"\subsection{Table: Main results}" in text
