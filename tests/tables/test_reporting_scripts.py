"""Reports through the script of their rule, and what a new one takes."""

import re

import finished
import pytest

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.stats import paper_numbers
from entropy_valley.experiment.tables import render
from entropy_valley.experiment.tables.render import Column, Row, Shown
from entropy_valley.experiment.tables.report import table
from entropy_valley.experiment.tables.scores import main_cells


@pytest.mark.parametrize("name", ["tables/main", "figures/crossbb"])
def test_a_report_that_fails_at_its_last_file_leaves_all_finished_ones(run, monkeypatch, name):
    before = {path: path.read_bytes() for path in run.make(name).values()}
    for cell in run.cells(name):
        run.score(cell, 0.5)
    monkeypatch.setattr(render, "write_csv", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.make(name)
    assert {path: path.read_bytes() for path in before} == before
    assert not list((run.root / name.split("/")[0]).glob(".*"))


def test_each_number_of_the_paper_that_is_compared_has_its_columns(run):
    """Of the tables as test_finished_run.py keeps them."""
    configured, kept = tables.configured(load_files(base_files(), tables.problems)), finished.golden()
    mine = {report.key: name for name, report in tables.configured(run.experiment).items()}
    for number in paper_numbers.numbers().values():
        if number.table and number.table != paper_numbers.CONFIG:
            key = configured[f"tables/{number.table}"].key
            header = kept[f"{mine[key]}.csv"].splitlines()[0].split(",")
            columns = re.findall(r"\b[a-z]\w*", f"{number.column} {re.sub('=[^;]*', ' ', number.where)}")
            wanted = {finished.METRIC if column == "comet" else column for column in columns}
            assert wanted <= {*header, "latency", "mae", "pool"}, number


@table("Cells of each method.", main_cells)
def counted(data):
    """How many cells each method has: a table is this function, and its line in the registry."""
    numbers = data.cells["method"].value_counts().reset_index()
    rows = [Row([row.method, str(row.count)]) for row in numbers.itertuples(index=False)]
    return Shown(numbers, [Column("Method", align="l"), Column("Cells")], rows)


def test_a_new_table_is_a_function_and_a_line_in_the_registry(run, monkeypatch):
    monkeypatch.setitem(tables.REPORTS, "tables/counted", counted)
    outputs = run.make("tables/counted")
    assert set(outputs["csv"].read_text().split()) == {"method,count", "ev,4", "oracle,4", "ratio,4", "ratio_eos,4"}
    assert "decoder" in outputs["md"].read_text()  # what the numbers were made by stands below every table
