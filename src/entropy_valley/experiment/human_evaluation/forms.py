"""The form that annotators fill in, as CSV, as a spreadsheet and as a page, and the guidelines that they read.

Columns, scales and choices are those of the paper's appendix, "Form schema". All files hold the same texts; nothing in
them depends on which system an output is of.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader
from markdown import markdown
from openpyxl import Workbook
from openpyxl.styles import Alignment, Font, Protection
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation

from entropy_valley import files
from entropy_valley.experiment.human_evaluation.pack import LANGUAGES, Pack, PackRow
from entropy_valley.texts import base_language, guarded

TEXTS = ("ID", "Source", "Reference", "System A", "System B")
RATINGS = ("Adequacy A (1-5)", "Fluency A (1-5)", "Adequacy B (1-5)", "Fluency B (1-5)")
PREFERENCE, NOTES = "Preference (A/B/Tie)", "Notes"
COLUMNS = (*TEXTS, *RATINGS, PREFERENCE, NOTES)
GRADES, CHOICES = ("1", "2", "3", "4", "5"), ("A", "B", "Tie")
SHEET, ABOUT = "Ratings", "Pack"  # the sheets
_WIDTHS = dict(zip(COLUMNS, (14, 44, 44, 44, 44, 11, 11, 11, 11, 13, 30), strict=True))  # in characters
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # XML has no such characters
_HERE = Path(__file__).parent


def texts(row: PackRow) -> tuple[str, ...]:
    """What the form shows of a row, in the order of TEXTS; characters that no spreadsheet can hold become U+FFFD."""
    return tuple(_CONTROL.sub("\ufffd", text) for text in astuple(row))


def write_csv(path: Path, pack: Pack, ratings: Mapping[str, Sequence[str]] = {}) -> None:
    """The form as CSV: UTF-8 with a byte order mark, which Excel needs. ``ratings`` fills the last columns of rows."""
    empty = [""] * len(COLUMNS[len(TEXTS) :])
    rows = [[*texts(row), *ratings.get(row.id, empty)] for row in pack.rows]
    form = pd.DataFrame(rows, columns=COLUMNS).map(guarded)
    files.write_text(path, "\ufeff" + form.to_csv(index=False, lineterminator="\r\n"))


def write_xlsx(path: Path, pack: Pack, annotator: str) -> None:
    """The form as a spreadsheet: texts are locked, ratings chosen from lists, the header stays in view.

    A second sheet names the pack and the annotator.
    """
    book = Workbook()
    sheet = book.active
    sheet.title = SHEET
    sheet.append(COLUMNS)
    for cell in sheet[1]:
        cell.font, cell.alignment = Font(bold=True), Alignment(wrap_text=True, vertical="center")
        sheet.column_dimensions[cell.column_letter].width = _WIDTHS[cell.value]
    for number, row in enumerate(map(texts, pack.rows), 2):  # whose heights spreadsheet programs fit to wrapped texts
        for place, name in enumerate(COLUMNS, 1):
            cell = sheet.cell(number, place)
            cell.protection = Protection(locked=name in TEXTS)
            cell.alignment = Alignment(wrap_text=True, vertical="top")  # a text's first letter says where it begins
            if name in TEXTS:
                # A text stays one, whatever it begins with; spreadsheets read a plain _x000D_ as a carriage return.
                cell.value, cell.data_type = re.sub("_(?=x[0-9a-fA-F]{4}_)", "_x005F_", row[place - 1]), "s"
    sheet.freeze_panes = "B2"
    sheet.protection.enable()
    sheet.protection.formatColumns = sheet.protection.formatRows = False  # columns may be made wider
    for name in (*RATINGS, PREFERENCE):
        values = CHOICES if name == PREFERENCE else GRADES
        letter = get_column_letter(COLUMNS.index(name) + 1)
        rule = DataValidation("list", formula1=f'"{",".join(values)}"', allow_blank=True, showErrorMessage=True)
        rule.add(f"{letter}2:{letter}{len(pack.rows) + 1}")
        sheet.add_data_validation(rule)
    about = book.create_sheet(ABOUT)
    for line in (("Pack", pack.code), ("Direction", pack.direction), ("Annotator", annotator)):
        about.append(line)
    about.protection.enable()
    with files.atomic(path) as temporary:
        book.save(temporary)


# --- The guidelines, and the page that annotators may fill their form in on.
#
# Scales and rules of the guidelines are those of the paper's appendix and of its authors' guidelines, in our own words:
# what the scales mean, how to choose, special cases; in English and Chinese.
#
# The page is one HTML file without a server and without a network. Its texts are data of a script block and are set as
# text, never as HTML. It saves the same CSV as the form's.


def guidelines(pack: Pack, language: str) -> str:
    """The guidelines of a pack as Markdown, in one of LANGUAGES, with the hints for the language of its outputs."""
    words = json.loads((_HERE / "guidelines/texts.json").read_text(encoding="utf-8"))[language]
    codes = pack.direction.split("-")
    source, target = (words["languages"].get(code, code) for code in codes)
    hints = "\n".join(f"- {hint}" for hint in words["hints"].get(base_language(codes[1]), [words["no_hints"]]))
    template = (_HERE / f"guidelines/{language}.md").read_text(encoding="utf-8")
    return template.format(
        direction=f"{source} → {target}",
        source=source,
        target=target,
        file=f"{pack.direction}.…",
        rows=len(pack.rows),
        hints=hints,
    )


def write_page(path: Path, pack: Pack, annotator: str) -> None:
    """Write the page of an annotator, with both guidelines."""
    content = {
        "pack": pack.code,
        "direction": pack.direction,
        "annotator": annotator,
        "columns": COLUMNS,
        "grades": GRADES,
        "choices": CHOICES,
        "rows": [texts(row) for row in pack.rows],
        "file": f"{pack.direction}.{annotator}.csv",
    }
    sections = {  # as HTML, their headings below those of the page
        name: markdown(guidelines(pack, name), extensions=["sane_lists"]).replace("h2>", "h3>").replace("h1>", "h2>")
        for name in LANGUAGES
    }
    template = Environment(loader=FileSystemLoader(_HERE), autoescape=True).get_template("page.html")
    title = f"Translations {pack.direction}, annotator {annotator}"
    files.write_text(path, template.render(title=title, data=content, guidelines=sections))
