"""Hostile texts in tables, pages, figures, and CSV files."""

import csv
import zipfile
from html.parser import HTMLParser

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from matplotlib import figure

from entropy_valley import files
from entropy_valley.data.build import overlap
from entropy_valley.data.sources import published
from entropy_valley.errors import InputError
from entropy_valley.experiment.tables import render, style
from entropy_valley.experiment.tables.render import Bold, Column, Row, Shown
from entropy_valley.scoring.sets import read_outputs
from entropy_valley.texts import shown, unguarded

# Marks of LaTeX, Markdown and HTML that stay text in tables and pages.
MARKUP = (
    r"\input{/etc/passwd}", r"\write18{rm x}", r"\end{tabular}", r"\\ & x \hline", "^^5cinput", "100 % of it", "a & b",
    "$5 and $6", "x_1 and _y_", "{open", "close}", "~ and ~~struck~~", "# 1", '"quoted"', r"C:\new\table", "*a* **b**",
    "`code` ``more``", "a | b || c", r"a \| b", "[text](javascript:alert(1))", "![image](http://example.org/x.png)",
    "[x]: http://example.org", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "<!-- x",
    "&lt;b&gt; &#60;", "<http://example.org>", "first\nsecond", "- item", "1. item", "> said", "--- | ---", "\x1b[2J",
    "\u202eabc", "\x07\x08\x7f", "{src} {metric} {wildcard}",
)  # fmt: skip
# Texts that a spreadsheet would compute.
FORMULAS = (
    "=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "=cmd|' /C calc'!A0", '=HYPERLINK("http://example.org")', "\t=1", "\r=1",
    "'=1", "''-x",
)  # fmt: skip


def table(text):
    """A table that has the text everywhere."""
    columns, rows = [Column(""), Column(text), Column(text)], [Row([text, text, Bold(text)], text)]
    return Shown(pd.DataFrame(), columns, rows, signatures=[(text, f"x{text}x"), (f"{text}:", "y")])


class Texts(HTMLParser):
    """The texts of a page, and its elements."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.elements = [], set()
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)


@pytest.mark.parametrize("text", MARKUP)
def test_a_text_stays_one_in_a_page(text):
    page, plain = Texts(render.to_text("html", table(text), text)), Texts(render.to_text("html", table("x"), "x"))
    assert page.elements == plain.elements
    assert page.texts.count(shown(text)) == plain.texts.count("x")


def hostile_examples(test):
    for text in MARKUP:
        test = example(text)(test)
    return test


@hostile_examples
@settings(max_examples=30)
@given(st.text("\\|*_`$~<>&;#[]()!-+=.1a/ \n\"'{}:", min_size=1).filter(str.strip))
def test_any_text_stays_one_in_markdown(text):
    columns, rows = [Column("k"), Column(text)], [Row(["x", text])]
    written = Shown(pd.DataFrame(), columns, rows, [text], signatures=[("n:", text)])
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(render.to_text("md", written))
    inline = {part.type for token in tokens for part in token.children or ()}
    assert inline <= {"text", "text_special", "strong_open", "strong_close", "code_inline"}
    blocks = {"heading_open", "blockquote_open", "bullet_list_open", "ordered_list_open", "code_block"}
    assert not blocks & {token.type for token in tokens}
    said = ["".join(part.content for part in token.children) for token in tokens if token.type == "inline"]
    text = shown(text)
    assert said[:5] == ["k", text.strip(), "x", text.strip(), text.strip()] and said[5].split() == f"n: {text}".split()


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_is_no_formula(tmp_path, text):
    render.write_csv(tmp_path / "t.csv", pd.DataFrame({"id": [1], "text": [text], "value": [-0.5], "said": ["+0.5%"]}))
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["text"].replace("\n", "\r") == f"'{text}" and unguarded(f"'{text}") == text
    assert (row["value"], row["said"]) == ("-0.5", "+0.5%")


def test_a_figure_reads_no_formula():
    with style.look():
        assert not figure.Figure().text(0, 0, r"$\frac{$").get_parse_math()


def rows(*pairs):
    return [{"id": str(number), "source": source, "target": target} for number, (source, target) in enumerate(pairs)]


def test_odd_sentences_are_counted():
    test = rows(("a", "A"), ("b", "B"), ("a", "C"), ("same", "same"), ("\u200b", "x"))
    train = rows(("a", "A"), ("a", "D"), ("z", "B"), ("q", "\u200b"))
    assert overlap(test) == {"sentences": 5, "repeated": 1, "copied": 1, "invisible": 1, "hidden": 1}
    training = {"pairs": 4, "source": 2, "target": 2, "pair": 1, "copied": 0, "invisible": 1, "hidden": 1}
    assert overlap(test, train) == overlap(test) | {"training": training}


def test_test_sentences_in_training_reach_the_footnote(run):
    pairs = rows(("a", "A"), ("b", "B"), ("b", "\u200b"))
    run.replace(run.root / "corpus/en-zh/overlap/grammar.json", overlap(pairs, rows(("a", "A"), ("c", "c"))))
    said = run.text("tables/main")
    assert "Test sentences that occur in training: En→Zh 1 source, 1 reference, 1 pair; Zh→En none." in said
    odd = ["1 with the source of an earlier one", "1 with a side without visible characters"]
    odd += ["1 with characters that cannot be seen", "1 training pair with the source as translation"]
    odd = "; En→Zh: ".join(odd)
    assert f"Odd sentences: En→Zh: {odd}." in said


def outputs(tmp_path, ids, hypothesis):
    files.write_jsonl(tmp_path / "t.jsonl", [{"id": name, "source": "a", "target": "b"} for name in ids])
    return read_outputs(tmp_path / "t.jsonl", [{"id": name, "hypothesis": hypothesis} for name in ids], "h.jsonl")


@pytest.mark.parametrize("value", [None, 1, ["a"]])
def test_a_hypothesis_is_a_text(tmp_path, value):
    with pytest.raises(InputError, match=r"h\.jsonl: hypothesis of .1. is .*, not a text"):
        outputs(tmp_path, ["1"], value)


@pytest.mark.parametrize("content", [b"x" * 1001, b"\xff\n", None], ids=["large", "not UTF-8", "no archive"])
def test_an_archive_beyond_measure_is_not_unpacked(tmp_path, monkeypatch, content):
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path))
    monkeypatch.setattr(published, "TATOEBA_MOST", 1000)
    (tmp_path / "tatoeba-de-en.zip").write_bytes(b"PK")
    if content:
        with zipfile.ZipFile(tmp_path / "tatoeba-de-en.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for language in ("de", "en"):
                archive.writestr(f"Tatoeba.de-en.{language}", content)
    with pytest.raises(InputError, match="is not a Tatoeba release that can be read"):
        next(published.Tatoeba(name="tatoeba").pairs("de-en", "test", 1))


def test_a_link_is_replaced_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "result").symlink_to(tmp_path / "elsewhere")
    files.write_text(tmp_path / "result", "new")
    assert (tmp_path / "elsewhere").read_text() == "mine" and (tmp_path / "result").read_text() == "new"
    assert not (tmp_path / "result").is_symlink()
