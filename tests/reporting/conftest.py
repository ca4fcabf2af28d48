from __future__ import annotations

import shutil
import subprocess

import fake_results
import pytest
from fake_results import matched, params  # noqa: F401 - fixtures

from entropy_valley.reporting import latex


def standalone(fragment: str, landscape: bool = False) -> str:
    """A minimal article that holds the fragment and nothing else, for plain pdflatex."""
    page = "a4paper,margin=20mm" + (",landscape" if landscape else "")
    packages = "".join(f"\\usepackage{{{name}}}\n" for name in latex.PACKAGES)
    return (
        f"\\documentclass{{article}}\n\\usepackage[{page}]{{geometry}}\n"
        f"{packages}\\pagestyle{{empty}}\n\\begin{{document}}\n\\noindent\n{fragment}\\end{{document}}\n"
    )


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
        (tmp_path / "table.tex").write_text(standalone(fragment, landscape), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=60)
        assert result.returncode == 0, result.stdout[-2000:]
        return result.stdout

    return compile_
