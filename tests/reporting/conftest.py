from __future__ import annotations

import shutil
import subprocess

import fake_results
import pytest
from fake_results import matched, params  # noqa: F401 - fixtures

from entropy_valley.reporting import latex


@pytest.fixture
def instruct(tmp_path):
    """The params of six variants of an instruction-tuned backbone, two of them not trained."""
    return fake_results.write_instruct(tmp_path)


@pytest.fixture
def pdflatex(tmp_path):
    """Compile a table fragment with plain pdflatex and return its log; skips where there is none."""
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex")

    def compile_(fragment, landscape=False):
        (tmp_path / "table.tex").write_text(latex.standalone(fragment, landscape), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=60)
        assert result.returncode == 0, result.stdout[-2000:]
        return result.stdout

    return compile_
