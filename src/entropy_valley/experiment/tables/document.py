"""``report.tex``: a title page, then every table and figure of a config with its caption, in the paper's order; and its
PDF."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.schema import metrics_of
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.names import method_names
from entropy_valley.experiment.tables.report import Report

NAME = "report"
PAPER = (  # the labels of the paper in its order, as our files
    "figures/cases", "figures/method", "figures/hero", "tables/main", "tables/ar_reference", "figures/crossbb",
    "figures/dissociation", "tables/faithfulness_summary", "tables/human_eval", "tables/hyperparams",
    "tables/candidate_range", "tables/ratio_sweep", "tables/multi_candidate", "tables/direct_length_baselines",
    "figures/pareto", "tables/full_pareto", "tables/full_significance", "tables/fwdcount_control", "tables/coverage",
    "tables/failure_buckets", "tables/order_sweep_summary", "tables/negative_order", "tables/crossbb",
    "tables/crossbb_bleu", "tables/defr_transfer", "figures/human_eval", "tables/human_eval_details",
)  # fmt: skip
READ = {"tables": "float.tex", "figures": "pdf"}  # which file of an item is set
PACKAGES = ("graphicx", "caption", "hyperref")
REMEDY = "Install what is missing (Debian: apt install texlive-latex-extra latex-cjk-chinese), or compile {} elsewhere."


def about(experiment: Experiment) -> dict[str, str]:
    """What the title page says of a config."""
    matrix, tables, autoregressive = experiment.matrix, experiment.tables, experiment.autoregressive.backbones
    tests = dict.fromkeys(name for direction in matrix.directions for name in experiment.directions[direction].tests)
    listed = {
        "Results": [experiment.results],
        "Masked diffusion": [experiment.backbones[name].label for name in matrix.backbones],
        "Autoregressive": [experiment.backbones[name].label for name in autoregressive],
        "Directions": map(formats.direction, matrix.directions),
        "Test sets": tests,
        "Length methods": [method_names(experiment, name).label for name in matrix.methods],
        "Reveal order": [formats.ORDERS.get(tables.order, tables.order)],
        "Steps": [str(tables.steps)],
        "Training seeds": map(str, matrix.seeds),
        "Metrics": [metric.label for metric in metrics_of(experiment.scoring)],
    }
    return {name: ", ".join(values) for name, values in listed.items()}


def read(configured: Mapping[str, Report]) -> list[str]:
    """What it is made of: the file of each table and figure that LaTeX sets; reports of numbers alone have none."""
    endings = {path: READ[path.split("/")[0]] for path in configured}
    return [f"{path}.{endings[path]}" for path, report in configured.items() if endings[path] in report.endings]


def write(experiment: Experiment, configured: Mapping[str, Report], out: Path) -> None:
    """Write the document of all reports that wait for nobody; it names its files from its own folder, the results."""
    ready = {path: report for path, report in configured.items() if report.ready}
    paths = [file.split(".")[0] for file in read(ready)]
    of_paper = [path for path in PAPER if path in paths]
    parts = {"The paper's tables and figures": of_paper, "Ours": [path for path in paths if path not in PAPER]}
    packages = dict.fromkeys([*render.LATEX_PACKAGES, *PACKAGES])
    for path in [*of_paper, *parts["Ours"]]:
        if path.startswith("tables/"):  # the first line of a table says which packages it needs
            (line,) = files.read_lines(out.parent / f"{path}.float.tex")[:1]
            packages |= dict.fromkeys(re.findall(r"[\w-]+", line.partition(r"\usepackage{")[2].partition("}")[0]))
    text = render.LATEX.get_template("document.tex").render(
        packages=packages,
        facts=about(experiment),
        parts={title: [_item(ready[path], path) for path in some] for title, some in parts.items()},
    )
    files.write_text(out, text)


def _item(report: Report, path: str) -> dict[str, str]:
    folder, name = path.split("/")
    kind = "Table" if folder == "tables" else "Figure"
    return {"kind": kind, "path": path, "name": name, "title": render.title(name), "caption": report.text}


def typeset(source: Path, out: Path) -> None:
    """Compile ``source``, a file by :func:`write`, where it lies; InputError says what is missing or wrong."""
    if not shutil.which("pdflatex"):
        raise InputError(out, "needs pdflatex of LaTeX", REMEDY.format(source))
    with tempfile.TemporaryDirectory() as work:
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={work}", source.name]
        for _ in range(2):  # the second one knows the pages of the contents
            done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, errors="replace")
        if done.returncode:
            errors = "\n".join(re.findall(r"^!.*(?:\n.*){0,4}", done.stdout, re.M)) or done.stdout[-500:]
            remedy = REMEDY.format(source) if "not found" in errors else "Correct what it names, or compile it by hand."
            raise InputError(source, f"pdflatex cannot set it:\n{errors}", remedy)
        with files.atomic(out) as new:
            shutil.copyfile(Path(work, source.stem + ".pdf"), new)
