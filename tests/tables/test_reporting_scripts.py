"""Every report through the script, and what a new one takes."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from pathlib import Path

import made_up
import pandas as pd
import pytest
from fake_sets import put
from made_up import MADE_UP
from making import drawn, one_backbone
from matplotlib.text import Text
from run_rule import run_here

from entropy_valley import files, tables
from entropy_valley.config import base_files, load_files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS, record_of
from entropy_valley.stats import our_numbers, paper_numbers
from entropy_valley.tables import render, style
from entropy_valley.tables.base import TableReport
from entropy_valley.tables.render import Column, Group, Table, TableCell, TableRow, TableSection


@pytest.fixture
def run(tmp_path):
    """Make a report of some params; the paths of its files by ending."""

    def run(key, params):
        outputs = {ending: tmp_path / f"out.{ending}" for ending in tables.find(key).endings}
        tables.write(params, how(key, tmp_path), list(map(str, outputs.values())))
        return outputs

    return run


def how(key, root, here=None):
    return {"report": key, "caption": "A caption.", "root": str(root), "here": str(here or root)}


@pytest.mark.parametrize("key", ["tables/main", "figures/hero"])
def test_a_report_that_fails_at_its_last_file_leaves_all_finished_ones(run, tmp_path, monkeypatch, key):
    before = {path: path.read_bytes() for path in run(key, MADE_UP[key](tmp_path)).values()}
    other = MADE_UP[key](tmp_path) | {"labels": {"backbones": {"llada-tiny": "Another"}, "directions": {}}}
    monkeypatch.setattr(render, "write_csv", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(key, other)
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("key", tables.REPORTS)
def test_every_report_is_as_its_golden_files(tmp_path, key):
    outputs = made_up.make(key, tmp_path)
    assert all(path.stat().st_size > 100 for path in outputs.values())
    if "md" in made_up.kept(key):
        assert outputs["md"].read_text(encoding="utf-8") == made_up.golden(key, "md").read_text(encoding="utf-8")
    if "csv" in made_up.kept(key):
        frames = (pd.read_csv(path) for path in (outputs["csv"], made_up.golden(key, "csv")))
        pd.testing.assert_frame_equal(*frames, rtol=1e-9)
    if key.startswith("tables/"):
        require_papers_numbers(key, outputs["csv"])


def require_papers_numbers(key, path):
    """Each number of the paper that is compared with a table which this report makes has its columns there."""
    header = path.read_text().splitlines()[0].split(",")
    frame = pd.DataFrame(columns=list(dict.fromkeys([*header, "latency", "mae", "pool"])))
    for name in our_numbers.FUNCTIONS:
        if papers_reports()[f"tables/{name}"].key == key:
            rows = our_numbers.TableRows(frame, {}, "comet22", 32, [1, 2, 3])
            for number in paper_numbers.means():
                if name in our_numbers.TABLES_OF.get(number.label, ()):
                    with contextlib.suppress(paper_numbers.NoRowsError):
                        our_numbers.FUNCTIONS[name](number, rows)


@functools.cache
def papers_reports():
    return tables.configured(load_files(base_files(), tables.problems))


@pytest.mark.parametrize("key", [key for key in tables.REPORTS if key.startswith("figures/")])
def test_a_figure_fits_on_a_page_with_letters_of_seven_points(tmp_path, key):
    figure, _ = drawn(tables.find(key), MADE_UP[key](tmp_path))
    assert figure.get_size_inches()[0] < style.PAGE + 0.001
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert texts and min(text.get_fontsize() for text in texts) >= 7


def test_the_script_reads_results_where_they_are_and_records_all_that_it_read(params, tmp_path):
    """As in a module whose results have a prefix: the params say another folder."""
    params = one_backbone(params) | {"made_from": {"a file": "its digest"}}
    said = json.loads(files.canonical(params).replace(f"{tmp_path}/", "results/"))
    outputs = [tmp_path / f"out.{ending}" for ending in tables.find("tables/main").endings]
    run_here("report", said, output=outputs, how=how("tables/main", "results", tmp_path), rule="table")
    record = record_of(outputs[-1])
    assert (record.rule, record.params) == ("table", said)
    assert record.outputs.keys() == {path.name for path in outputs}
    assert record.facts["length_methods"]["en-zh"] == {"oracle": [{}], "ratio": [{}], "ev": [{}]}
    sets = {Path(cell["path"]) for cell in params["cells"]}
    read = [folder / name for folder in sets for name in ("translations.json", "scores.json", "scores.jsonl")]
    assert {str(path): files.file_digest(path) for path in read} == record.inputs


def test_numbers_that_do_not_compare_leave_the_old_table(run, params, tmp_path):
    params = one_backbone(params)
    outputs = [tmp_path / f"out.{ending}" for ending in ("tex", "csv", "md")]
    for path in outputs:
        path.write_text("before")
    put(params["cells"][1], TRANSLATIONS, signature={})
    with pytest.raises(InputError, match=r"no signature\.decoder"):
        run("tables/main", params)
    assert [path.read_text() for path in outputs] == ["before"] * 3


def typed(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(re.sub(old, new, text, count=1))


def exchanged(path):
    names = {"ev": "ratio", "ratio": "ev"}
    edited = [row | {"method": names.get(row["method"], row["method"])} for row in files.read_jsonl(path)]
    path.write_text("".join(json.dumps(row) + "\n" for row in edited))


def edited_scores(path):
    """Fifty of them, at the same size."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace("0.8", "0.7") if at < 50 else line for at, line in enumerate(lines)))


@pytest.mark.parametrize(
    ("file", "manipulate"),
    [
        ("scores.json", lambda path: typed(path, '"bleu": ', '"bleu": 9')),
        ("scores.jsonl", exchanged),
        ("scores.jsonl", edited_scores),
        ("translations.json", lambda path: typed(path, '"calls": ', '"calls": 1')),
    ],
)
def test_no_table_is_made_of_what_was_edited(run, params, tmp_path, file, manipulate):
    params = one_backbone(params)
    folder = Path(params["cells"][0]["path"])
    read = {str(folder / name): "a digest" for name in ("translations.jsonl", "scores.jsonl")}
    run("tables/main", params | {"made_from": read})
    manipulate(folder / file)
    with pytest.raises(InputError, match=rf"{file}.* was edited: its digest is") as error:
        run("tables/main", params | {"made_from": read})
    assert str(folder) in error.value.place


def test_the_main_metric_of_a_system_is_the_mean_of_its_rows(run, params):
    """A header that was made of other rows, with a record that fits."""
    params = one_backbone(params)
    put(params["cells"][1], SCORES, comet22=0.99)
    with pytest.raises(InputError, match=r"scores\.json: test \w+ med-T8: comet22 is 0\.99, but the mean of its"):
        run("tables/main", params)


def test_a_report_that_is_not_there(run):
    with pytest.raises(InputError, match=r"tables/nobody: is no report.*tables/main, tables/crossbb"):
        run("tables/nobody", {})


class Counted(TableReport):
    """How many cells each method has: a report is this class, and its line in the registry."""

    caption = "Cells of each method."

    def cells(self, experiment):
        return []

    def numbers(self, params):
        return pd.DataFrame({"method": [cell.method for cell in params.cells]}).value_counts().reset_index()

    def table(self, params, numbers):
        groups = tuple(Group(row.method, (TableRow((TableCell(str(row.count)),)),)) for row in numbers.itertuples())
        return Table((Column("Method", align="l"), Column("Cells")), (TableSection(groups),))


def test_a_new_report_is_a_class_and_a_line_in_the_registry(run, monkeypatch, params):
    monkeypatch.setitem(tables.REPORTS, "tables/counted", Counted)
    outputs = run("tables/counted", params)
    assert outputs["csv"].read_text() == "method,count\nev,12\noracle,12\nratio,12\n"
    assert "decoder" in outputs["md"].read_text()  # what the numbers were made by stands below every table
