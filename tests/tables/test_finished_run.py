"""Every table, figure and page of a finished run, as they were before."""

import os
import re
import shutil
from pathlib import Path

import finished
import pytest
from forging import changed, edited, sealed
from run_rule import run_here
from test_latex import NASTY

from entropy_valley import files
from entropy_valley.experiment import tables
from entropy_valley.experiment.tables.render import to_text
from entropy_valley.experiment.tables.report import Report, Results
from entropy_valley.experiment.verification import products, verify
from entropy_valley.results import CONFIG


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return finished.Run(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def shown():
    """What each report shows, by the report, once it is made."""
    return {}


@pytest.fixture(scope="module")
def made(run, shown, tmp_path_factory):
    """The texts of all that is made, each report in a folder that has only the files that it declares."""
    show = Report.shown

    def from_declared_files(report, results):
        if report.rule != "comparison":  # which reads the other tables
            results = Results(tmp_path_factory.mktemp(report.name))
            for path in (*report.inputs(), *map(str, finished.all_records(run.root))):
                place = Path(results.root, Path(path).relative_to(run.root))
                place.parent.mkdir(parents=True, exist_ok=True)
                if not place.exists():
                    os.link(path, place)
            # The times of jobs, which no rule declares.
            Path(results.root, "benchmarks").symlink_to(run.root / "benchmarks")
        shown[report] = show(report, results)
        return shown[report]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Report, "shown", from_declared_files)
        return finished.make_all(run)


GOLDEN = finished.golden()


@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_is_as_it_was(made, name):
    assert made[name] == GOLDEN[name]


def test_every_report_and_layout_is_there(run, made):
    assert made.keys() >= GOLDEN.keys()  # what a new table prints is kept by the next run of finished.py
    assert {report.key for report in tables.configured(run.experiment).values()} == tables.REPORTS.keys()


@pytest.fixture
def every_table(made, shown):
    """Each table by its report."""
    return {report: table for report, table in shown.items() if "float.tex" in report.endings}


def test_every_table_compiles_and_fits_into_a_paper(every_table, pdflatex):
    parts = []
    for report, table in every_table.items():
        parts.append(rf"\typeout{{table {report.key}}}" + to_text("tex", table))
        parts.append(to_text("float.tex", table, "", NASTY, "tab:a_b"))
    body = "\\clearpage\n".join(parts)
    log = pdflatex(body)
    assert not re.search(r"Overfull.*|Float too large.*", log)


def test_the_fonts_have_every_character_and_scores_have_one_scale(every_table):
    for report, table in every_table.items():
        assert r"\texttt{U+" not in to_text("float.tex", table, "", report.text, "tab:it"), report.key
        of_paper = report.key == "tables/ar_reference"  # as in the paper
        assert bool(re.search("× ?100", to_text("md", table))) == of_paper, report.key


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex")
def test_the_document_of_all_is_set(run, made):
    run_here("pdf", {}, {"tex": run.root / "report.tex", "parts": []}, run.root / "report.pdf")
    assert (run.root / "report.pdf").stat().st_size > 1e5


# --- `entropy-valley verify` finds what is changed of them, and nothing else.


def without(*endings):
    """Remove files beside one."""
    return lambda path: [path.with_suffix(ending).unlink() for ending in endings]


def text(pattern, replacement):
    return lambda path: changed(path, edited(pattern, replacement))


def last_byte(path):
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(content)


def line_more(path):
    path.write_text(path.read_text(encoding="utf-8") + path.read_text(encoding="utf-8").splitlines()[-1] + "\n")


ALL = (".tex", ".float.tex", ".md", ".html", ".csv")
NUMBER = text(r"(,0\.)\d\d", r"\g<1>0505")
MADE = {  # a file, its change, and what a line about it says
    "a number in Markdown": ("tables/main.md", text(r"(\d)\.(\d)", r"\g<1>7.\2"), "row 3 ("),
    "a number in LaTeX": ("tables/coverage.tex", text(r"0\.(\d)", r"9.\1"), " → "),
    "a page of sentences": ("pages/en-zh.grammar.html", text("test-000002", "test-000003"), "test-000003"),
    "a PDF": ("figures/cases.pdf", last_byte, "content: "),
    "a number of a figure": ("figures/entropy_valley.csv", NUMBER, " → "),
    "a setting": ("tables/hyperparams.csv", text("learning_rate,0.01", "learning_rate,0.02"), "value: 0.02 → 0.01"),
    "a mean": ("tables/matrix.csv", NUMBER, "mean: 0.0505"),
    "a column": ("tables/ar_reference.csv", text("ci_low", "low"), '"low" → "ci_low"'),
    "a row more": ("tables/dissociation.csv", line_more, "number of rows: "),
    "no table": ("tables/readings.md", without(*ALL), "file not found"),
    "no figure": ("figures/pareto.png", without(".png", ".svg", ".pdf", ".csv"), "file not found"),
}
UNCHANGED = ("tables/ceiling.csv", text(r"(,0\.\d{10}),", r"\g<1>4,"))  # in the eleventh digit


@pytest.fixture(scope="module")
def differences(run, made):
    """The lines about each table, figure or page, after all the changes. Of the others there is none: it takes as long
    to make them again, and the smallest demo does."""
    kept = {stem(file) for file, *_ in (*MADE.values(), UNCHANGED)}
    for folder in products.FOLDERS:
        for path in (run.root / folder).iterdir():
            if stem(f"{folder}/{path.name}") not in kept:
                path.unlink()
    files.write_json(run.root / CONFIG, finished.config() | {"results": str(run.root)})
    (run.root / "tables/mine.csv").write_text("1\n")
    for file, change, *_ in (*MADE.values(), UNCHANGED):
        change(run.root / file)
    sealed(run.root, str(run.root))
    recorded = files.read_json(run.root / "en-zh/llada-tiny/seed1/matrix/translations.json")["facts"]["machine"]
    of_config = products._products

    def of_kept(*given):
        return [(name, made) for name, made in of_config(*given) if stem(name) in kept]

    with pytest.MonkeyPatch.context() as patched:
        # As on the machine of the run: figures of another one are not checkable.
        patched.setattr(products.machine, "description", lambda: recorded)
        patched.setattr(products, "_products", of_kept)
        report = verify(run.root)
    assert report.unchecked["tables, figures and pages"] == {products.FURTHER: 1}
    assert len(report.same) > 12 and report.same.total() > 5_000
    lines = {}
    for _, line in report.differences:
        lines.setdefault(stem(line.partition(": ")[0]), []).append(line)
    return lines


def stem(file):
    """A table, figure or page by one of its files."""
    return file.rpartition("/")[0] + file.rpartition("/")[2].partition(".")[0]


@pytest.mark.parametrize("name", MADE)
def test_a_changed_table_figure_or_page_is_found(differences, name):
    file, _, problem = MADE[name]
    assert any(problem in line for line in differences.get(stem(file), ()))


def test_nothing_else_is_found(differences):
    assert differences.keys() == {stem(file) for file, *_ in MADE.values()}
