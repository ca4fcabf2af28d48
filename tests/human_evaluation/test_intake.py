"""Filled forms: what is accepted, and that every problem is listed with its cell."""

import csv
import dataclasses
import io
import re
import zipfile

import openpyxl
import pytest
from human_evaluation.conftest import SIZES, sentences
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

from entropy_valley.errors import InputError
from entropy_valley.experiment.human_evaluation import forms, pack
from entropy_valley.experiment.human_evaluation.intake import read_forms, unblinded

NAMES = ["A", "B"]


@pytest.fixture
def form(made, filled, tmp_path):
    """A filled form as CSV, whose lines a test changes."""
    path = tmp_path / "en-zh.A.csv"
    forms.write_csv(path, made[0], filled)
    return path


def rated(path, made):
    return {rating.id: rating for rating in read_forms([path], made[0], NAMES)["A"]}


def problems(path, made):
    with pytest.raises(InputError) as found:
        read_forms([path] if not isinstance(path, list) else path, made[0], NAMES)
    return str(found.value)


def edited(path, name="Ratings"):
    book = openpyxl.load_workbook(path)
    return book, book[name]


@pytest.fixture
def sheet(made, filled, tmp_path):
    """A filled form as a spreadsheet: where it is, and a function that changes cells."""
    path = tmp_path / "en-zh.A.xlsx"
    forms.write_xlsx(path, made[0], "A")

    def change(**cells):
        book, ratings = edited(path)
        for number, row in enumerate(made[0].rows, 2):
            for place, value in enumerate(filled.get(row.id, ()), 6):
                ratings.cell(number, place, int(value) if value.isdigit() and place < 10 else value or None)
        for cell, value in cells.items():
            ratings[cell] = value
        book.save(path)
        return path

    return change


def test_both_forms_say_the_same_and_an_open_row_is_left_out(made, filled, form, sheet):
    from_csv, from_sheet = rated(form, made), rated(sheet(), made)
    assert from_csv.keys() == from_sheet.keys() == filled.keys()
    for name, one in from_csv.items():
        assert [str(score) for slot in "ab" for score in one.scores[slot].values()] == list(filled[name][:4])
        assert one.preference == filled[name][4].lower()
        assert dataclasses.replace(one, notes="") == dataclasses.replace(from_sheet[name], notes="")


@pytest.mark.parametrize(("encoding", "separator"), [("utf-8", ";"), ("utf-8-sig", ","), ("utf-8", "\t")])
def test_encodings_and_separators_of_programs(made, filled, form, encoding, separator):
    rows = list(csv.reader(io.StringIO(form.read_text("utf-8-sig"), newline="")))
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    form.write_bytes(out.getvalue().encode(encoding))
    assert rated(form, made).keys() == filled.keys()


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_another_encoding_is_refused(made, form, encoding):
    form.write_bytes(form.read_text("utf-8-sig").encode(encoding))
    assert "is not UTF-8" in problems(form, made)


def test_full_width_digits_decimals_and_case(made, sheet):
    path = sheet(F2="４", G2=3.0, H2="②", I2="5,0", J2="ｔｉｅ")
    one = rated(path, made)[made[0].rows[0].id]
    assert one.scores == {"a": {"adequacy": 4, "fluency": 3}, "b": {"adequacy": 2, "fluency": 5}}
    assert one.preference == "tie"


@pytest.mark.parametrize("text", ["a _x000D_ b", "_x0041_x0042_", "x_x00_"])
def test_a_text_that_looks_like_an_escape_comes_back(made, tmp_path, text):
    own = dataclasses.replace(made[0], rows=[dataclasses.replace(made[0].rows[0], source=text)])
    forms.write_xlsx(tmp_path / "en-zh.A.xlsx", own, "A")
    assert not read_forms([tmp_path / "en-zh.A.xlsx"], own, NAMES)["A"]
    with zipfile.ZipFile(tmp_path / "en-zh.A.xlsx") as archive:
        written = archive.read("xl/worksheets/sheet1.xml").decode()
    assert unescape(re.search(r">([^<]*_x[^<]*)<", written)[1]) == text


@pytest.mark.parametrize("digit", ["٤", "四"])
def test_other_digits_are_no_ratings(made, sheet, digit):
    assert f"F2: Adequacy A (1-5) is '{digit}'; 1, 2, 3, 4, 5 are possible" in problems(sheet(F2=digit), made)


def test_an_empty_workbook_is_no_form(made, tmp_path):
    path = tmp_path / "en-zh.A.xlsx"
    openpyxl.Workbook().save(path)
    assert f"{path}: needs one column each of ID, Source" in problems(path, made)


def test_every_problem_is_listed_with_its_cell(made, sheet):
    last = len(made[0].rows) + 1
    path = sheet(F2=6, G2=None, J3="C", B4="another source", A5=made[0].rows[0].id, **{f"F{last}": 3})
    found = problems(path, made)
    name = path.name
    for cell, text in {
        "F2": "is '6'; 1, 2, 3, 4, 5 are possible",
        "G2": "is empty, and the row is rated",
        "J3": "is 'C'; A, B, Tie are possible",
        "B4": "was changed",
        "A5": "comes twice",
        f"G{last}": "is empty, and the row is rated",
    }.items():
        assert f"{name}:{cell}: " in found and text in found
    assert f"has no row {made[0].rows[3].id}" in found
    assert "10 problems" in found


def test_the_form_of_another_pack(made, filled, tmp_path):
    other, _ = pack.make(sentences(seed=5), "en-zh", SIZES, seed=1)
    forms.write_csv(tmp_path / "en-zh.A.csv", other)
    assert f"is no row of pack {made[0].code}" in problems(tmp_path / "en-zh.A.csv", made)


def test_files_of_nobody_of_two_and_under_another_name(made, form, sheet):
    path = sheet()
    nobody = path.with_name("en-zh.Zoe.xlsx")
    nobody.write_bytes(path.read_bytes())
    renamed = path.with_name("en-zh.B.xlsx")
    renamed.write_bytes(path.read_bytes())
    found = problems([form, path, nobody, renamed], made)
    assert "en-zh.A.xlsx: is a second form of A, beside en-zh.A.csv" in found
    assert "en-zh.Zoe.xlsx: is named after no annotator; there are A, B" in found
    assert "en-zh.B.xlsx: is the form of A, by its sheet Pack" in found


@given(seed=st.integers(0, 1000), flips=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_unblinding_is_exact_under_every_flip(tmp_path_factory, seed, flips):
    """Scores that are given by the text of an output come back as scores of its system."""
    made, behind = pack.make(sentences(seed=seed), "en-zh", SIZES, seed=flips)
    scores = {"first": ("5", "4"), "second": ("2", "1")}
    ratings = {}
    for row in made.rows:
        a, b = (row.a.split()[0], row.b.split()[0])
        ratings[row.id] = (*scores[a], *scores[b], "A" if a == "first" else "B", "")
    path = tmp_path_factory.mktemp("form") / "en-zh.A.csv"
    forms.write_csv(path, made, ratings)
    for row in unblinded(read_forms([path], made, ["A"])["A"], {one["id"]: one for one in behind}):
        assert row["first"] == {"adequacy": 5, "fluency": 4} and row["second"] == {"adequacy": 2, "fluency": 1}
        assert row["preference"] == "first"
