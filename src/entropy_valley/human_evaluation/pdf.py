"""Guidelines as a PDF: their Markdown on A4 pages, with fonts that have all of their characters."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF
from fpdf.fonts import FontFace, TextStyle
from markdown import markdown

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.fonts import covering
from entropy_valley.late import font_manager

_OWN = "DejaVu Sans"  # it comes with matplotlib
_ONCE = datetime(1980, 1, 1, tzinfo=UTC)


def write(path: Path, text: str) -> None:
    """Write a Markdown text as PDF. Raises :class:`InputError` where no font on the machine has its characters."""
    page = FPDF(format="A4")
    page.set_creation_date(_ONCE)  # the same text gives the same bytes
    page.set_margin(20)
    page.set_auto_page_break(True, margin=18)
    names = _add_fonts(page, text)
    page.set_font(names[0], size=10)
    page.set_fallback_fonts(names[1:], exact_match=False)
    page.add_page()
    page.write_html(_html(text), tag_styles=_styles(names[0]), li_prefix_color="#222222")
    with files.atomic(path) as temporary:
        page.output(str(temporary))


def _add_fonts(page: FPDF, text: str) -> list[str]:
    """The names of fonts that have all characters of the text; only the first has a bold face of its own."""
    found = covering(text, _OWN)
    if found.lacking:
        remedy = "Install one: Debian and Ubuntu have fonts-noto-cjk for Chinese. The Markdown file needs no font."
        raise InputError("fonts", f"no font of this machine has {''.join(sorted(found.lacking)[:8])}", remedy)
    for number, (file, face) in enumerate(found.files):
        bold = file if number else font_manager.findfont(font_manager.FontProperties(family=_OWN, weight="bold"))
        for style, font in (("", file), ("B", bold)):
            page.add_font(f"font{number}", style, font, collection_font_number=face)
    return [f"font{number}" for number in range(len(found.files))]


def _html(text: str) -> str:
    """Code in the font of the text, which has all letters."""
    return re.sub(r"</?code>", "", markdown(text, extensions=["sane_lists"]))


def _styles(font: str) -> dict[str, FontFace]:
    headings = {
        f"h{level}": TextStyle(font, "B", size, color="#1F3A5F", t_margin=margin, b_margin=1.5)
        for level, size, margin in ((1, 15, 0), (2, 11.5, 4))
    }
    return {**headings, "li": TextStyle(font, "", 10, t_margin=0.8), "p": TextStyle(font, "", 10, b_margin=1)}
