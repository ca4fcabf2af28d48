import shutil
import subprocess

import finished
import pytest

from entropy_valley.experiment.tables import render


@pytest.fixture
def run(tmp_path):
    """A finished run, whose results a test may change."""
    return finished.Run(tmp_path)


@pytest.fixture(scope="session")
def pdflatex(tmp_path_factory):
    """Compile the body of an article that is 16 cm wide with plain pdflatex and return its log; skips where there is
    none, or no Chinese font."""
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex")

    def compile_(body):
        folder = tmp_path_factory.mktemp("latex")
        page = r"\usepackage[a4paper,textwidth=16cm,textheight=24cm]{geometry}\pagestyle{empty}"
        used = rf"\usepackage{{{','.join([*render.LATEX_PACKAGES, render.CHINESE])}}}"
        text = f"\\documentclass{{article}}{page}{used}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
        (folder / "table.tex").write_text(text, encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=60)
        if "CJKutf8.sty' not found" in done.stdout:
            pytest.skip("no latex-cjk-chinese")
        assert done.returncode == 0, done.stdout[-2000:]
        return done.stdout

    return compile_
