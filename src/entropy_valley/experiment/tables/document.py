"""``report.tex``: a title page, then every table and figure of a config with its caption, in the paper's order."""

from collections.abc import Mapping
from pathlib import Path

from entropy_valley import files
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.tables import formats, render
from entropy_valley.experiment.tables.formats import Names
from entropy_valley.experiment.tables.report import Report

NAME = "report"
PACKAGES = ("graphicx", "caption", "hyperref")


def about(experiment: Experiment) -> dict[str, str]:
    """What the title page says of a config."""
    names, matrix, tables = Names(experiment), experiment.matrix, experiment.tables
    # Directions may share test sets.
    tests: list[str] = []
    for name in matrix.directions:
        tests += experiment.directions[name].tests
    listed = {
        "Results": [experiment.results],
        "Masked diffusion": map(names.backbone, matrix.backbones),
        "Autoregressive": map(names.backbone, experiment.autoregressive.backbones),
        "Directions": map(formats.direction, matrix.directions),
        "Test sets": dict.fromkeys(tests),
        "Length methods": [names.method(name).label for name in matrix.methods],
        "Reveal order": [names.order(tables.order)],
        "Steps": [str(tables.steps)],
        "Training seeds": map(str, matrix.seeds),
        "Metrics": [metric.label for metric in names.metrics],
    }
    return {name: ", ".join(values) for name, values in listed.items()}


def read(configured: Mapping[str, Report]) -> list[str]:
    """What it is made of: the file of each table and figure that LaTeX sets; reports of numbers alone have none."""
    paths = []
    for path, report in configured.items():
        ending = "float.tex" if path.startswith("tables/") else "pdf"
        if ending in report.endings:
            paths.append(f"{path}.{ending}")
    return paths


def write(experiment: Experiment, configured: Mapping[str, Report], out: Path) -> None:
    """Write the document of all reports that wait for nobody; it names its files from its own folder, the results."""
    captions, packages = {}, [*render.LATEX_PACKAGES, *PACKAGES]
    for file in read({path: report for path, report in configured.items() if report.ready}):
        ending = "pdf" if file.endswith(".pdf") else "float.tex"
        path = file.removesuffix(f".{ending}")  # names may have dots
        captions[path] = configured[path].text
        # A table says in its first line which packages it needs.
        if ending != "pdf" and render.CHINESE in files.read_lines(out.parent / file)[0]:
            packages.append(render.CHINESE)
    # Those of the paper in its order, the others in that of the registry.
    of_paper = {path: captions.pop(path) for path in render.PAPER if path in captions}
    parts = {"The paper's tables and figures": of_paper.items(), "Ours": captions.items()}
    text = render.LATEX.get_template("document.tex").render(
        packages=dict.fromkeys(packages), facts=about(experiment), parts=parts, titled=render.title
    )
    files.write_text(out, text)
