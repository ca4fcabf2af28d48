"""``report.tex``: a title page, then every table and figure of a config with its caption, in the paper's order; and its
PDF."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from entropy_valley import files
from entropy_valley.config import Experiment
from entropy_valley.config.schema import metrics_of
from entropy_valley.errors import InputError
from entropy_valley.tables import formats, render
from entropy_valley.tables.names import method_names
from entropy_valley.tables.report import Report

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
KINDS = {"tables": "Table", "figures": "Figure"}
PACKAGES = ("graphicx", "caption", "hyperref")
INSTALL = {"pdflatex": "texlive-latex-base", render.CHINESE: "latex-cjk-chinese"}  # Debian's packages; others: the next
EXTRA = "texlive-latex-extra"
HEAD = r"""\setcounter{secnumdepth}{0}\raggedbottom\setlength{\parindent}{0pt}
\hypersetup{hidelinks}\captionsetup{hypcap=false}
% Nothing floats: each stands below its name.
\renewenvironment{table*}[1][]{\par\captionsetup{type=table}\centering}{\par}
\begin{document}
\let\below\caption  % each on the page of what it is below
\renewcommand{\caption}[1]{\par\nopagebreak\parbox{\linewidth}{\medskip\below{#1}}}
"""


class Item(NamedTuple):
    """A table or figure by folder and file, ``tables/main``, with its caption."""

    path: str
    caption: str


def about(experiment: Experiment) -> list[tuple[str, str]]:
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
    return [(name, ", ".join(values)) for name, values in listed.items() if values]


def read(configured: Mapping[str, Report]) -> list[str]:
    """What it is made of: the file of each table and figure that LaTeX sets; reports of numbers alone have none."""
    endings = {path: READ[path.split("/")[0]] for path in configured}
    return [f"{path}.{endings[path]}" for path, report in configured.items() if endings[path] in report.endings]


def items(configured: Mapping[str, Report]) -> list[Item]:
    """The tables and figures of a config, those of the paper first and in its order."""
    paths = [file.split(".")[0] for file in read(configured)]
    ordered = [path for path in PAPER if path in paths] + [path for path in paths if path not in PAPER]
    return [Item(path, configured[path].text) for path in ordered]


def write(experiment: Experiment, configured: Mapping[str, Report], out: Path) -> None:
    """Write the document of all reports that wait for nobody; it names its files from its own folder, the results."""
    ready = {path: report for path, report in configured.items() if report.ready}
    files.write_text(out, to_latex(items(ready), about(experiment), out.parent))


def to_latex(listed: Sequence[Item], facts: Sequence[Sequence[str]], folder: Path) -> str:
    """The whole document; its files are named from ``folder``, the results."""
    needed = dict.fromkeys([*render.LATEX_PACKAGES, *PACKAGES, *_needed(listed, folder)])
    lines = [
        r"\documentclass{article}",
        r"\usepackage[a4paper,textwidth=16cm,textheight=24cm]{geometry}",
        rf"\usepackage{{{','.join(needed)}}}",
        HEAD,
        *_title_page(facts),
        r"\tableofcontents",
    ]
    for title, of_paper in (("The paper's tables and figures", True), ("Ours", False)):
        part = [item for item in listed if (item.path in PAPER) == of_paper]
        lines += [rf"\clearpage\section{{{title}}}", *(line for item in part for line in _item(item))] if part else []
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def typeset(source: Path, out: Path) -> None:
    """Compile ``source``, a file by :func:`to_latex`, where it lies.

    Raises :class:`InputError` that says what to install where LaTeX or a package is not there.
    """
    if missing := list(_missing(source)):
        packages = " ".join(dict.fromkeys(INSTALL.get(name, EXTRA) for name in missing))
        remedy = f"Install it (Debian: apt install {packages}), or compile {source} elsewhere."
        raise InputError(out, f"needs {', '.join(missing)} of LaTeX", remedy)
    with tempfile.TemporaryDirectory() as work:
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={work}", source.name]
        for _ in range(2):  # the second one knows the pages of the contents
            done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, errors="replace")
        if done.returncode:
            errors = "\n".join(re.findall(r"^!.*(?:\n.*){0,4}", done.stdout, re.M)) or done.stdout[-500:]
            raise InputError(source, f"pdflatex cannot set it:\n{errors}", "Mend what it names, or compile it by hand.")
        with files.atomic(out) as new:
            shutil.copyfile(Path(work, source.stem + ".pdf"), new)


def _needed(listed: Sequence[Item], folder: Path) -> Iterator[str]:
    """The packages that the tables say they need."""
    for item in listed:
        if item.path.startswith("tables/"):
            yield from _packages(files.read_lines(folder / f"{item.path}.float.tex")[:1])


def _packages(lines: Sequence[str]) -> Iterator[str]:
    for names in re.findall(r"\\usepackage(?:\[.*?\])?\{(.*?)\}", "\n".join(lines)):
        yield from names.split(",")


def _missing(source: Path) -> Iterator[str]:
    if not shutil.which("pdflatex"):
        yield "pdflatex"
        return
    for name in _packages(files.read_lines(source)):
        if subprocess.run(["kpsewhich", f"{name}.sty"], capture_output=True).returncode:
            yield name


def _title_page(facts: Sequence[Sequence[str]]) -> list[str]:
    rows = (rf"{render.escape(name)} & {render.escape(value)} \\" for name, value in facts)
    return [
        r"\begin{titlepage}\centering\vspace*{4cm}",
        r"{\LARGE\bfseries Length-adaptive decoding for\\ masked diffusion machine translation\par}\bigskip",
        r"{\Large Tables and figures\par}\vspace{2cm}",
        r"\begin{tabulary}{.85\linewidth}{lL}\toprule",
        *rows,
        r"\bottomrule\end{tabulary}",
        r"\end{titlepage}",
    ]


def _item(item: Item) -> list[str]:
    kind, name = item.path.split("/")
    heading = rf"\subsection{{{KINDS[kind]}: {render.escape(render.title(name))}}}"
    if kind == "tables":
        return [heading, rf"\input{{{item.path}.float.tex}}"]
    return [
        *(heading, r"\begingroup\centering\captionsetup{type=figure}"),
        rf"\adjustbox{{max width=\linewidth}}{{\includegraphics{{{item.path}.pdf}}}}",
        rf"\caption{{{render.escape(item.caption)}}}\label{{fig:{name}}}",
        r"\par\endgroup",
    ]
