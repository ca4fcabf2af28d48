"""The document of all tables and figures: what is in it, in which order, and how it is set."""

from __future__ import annotations

import re
import shutil
from types import SimpleNamespace

import pytest
from matplotlib import figure

from entropy_valley import files
from entropy_valley.errors import InputError
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


def test_it_is_set(source, pdflatex):
    text = source.read_text()
    assert text.index("figures/hero.pdf") < text.index(r"\input{tables/main.float.tex}")
    assert r"\section{Ours}" not in text
    assert r"\caption{50\% of \textless{}\&\textgreater{}}\label{fig:hero}" in text
    assert r"\subsection{Figure: The results at a glance}" in text and r"\subsection{Table: Main results}" in text
    document.typeset(source, source.with_suffix(".pdf"))
    assert source.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert {path.name for path in source.parent.glob("report*")} == {"report.tex", "report.pdf"}


def test_what_latex_cannot_set_is_named(source, pdflatex):
    files.write_text(source.parent / "tables/main.float.tex", "% needs \\usepackage{booktabs}\n\\nobody\n")
    with pytest.raises(
        InputError, match=r"report\.tex: pdflatex cannot set it:\n! Undefined control sequence\.\n.*nobody"
    ):
        document.typeset(source, source.with_suffix(".pdf"))


def test_without_latex_it_says_what_to_install(source, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"report\.pdf: needs pdflatex of LaTeX.*apt install texlive-latex-extra"):
        document.typeset(source, source.with_suffix(".pdf"))


def test_a_package_that_is_not_there_is_named(source, pdflatex):
    text = source.read_text()
    files.write_text(source, re.sub(r"colortbl", "no-such-package", text))
    with pytest.raises(InputError, match=r"(?s)no-such-package.sty' not found.*apt install texlive-latex-extra"):
        document.typeset(source, source.with_suffix(".pdf"))
