from pathlib import Path

import pytest

from entropy_valley import files
from entropy_valley.data import build, sources
from entropy_valley.errors import InputError

HELP = "usr/share/libreoffice/help"
ENGLISH = """<h1 id="hd_1" dir="auto"><a name="bm"></a>Tables &amp; Lists</h1>
<p id="par_1" class="paragraph" dir="auto">Click <span class="emph">Insert</span>,
 then <a href="x">Table</a>.</p><p id="par_2" class="paragraph">LibreOffice</p><p id="par_3" class="code">print(1)</p>
<p id="par_4" class="paragraph">Press <span class="switchinline"><span hidden="true">Command</span>Ctrl</span>.</p>"""
GERMAN = """<h1 id="hd_1">Tabellen &amp; Listen</h1><p id="par_1" class="p">Wählen Sie Einfügen und dann Tabelle.</p>
<p id="par_2" class="paragraph">LibreOffice</p><p id="par_3" class="code">drucke(1)</p><p id="par_4">Strg.</p>"""


@pytest.fixture
def unpacked(tmp_path):
    """The help of two languages: a file with all that is left out, and one with 300 paragraphs, each twice."""

    def write(language: str, name: str, text: str) -> None:
        path = tmp_path / HELP / language / "text" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    write("en-US", "guide.html", ENGLISH)
    write("de", "guide.html", GERMAN)
    write("de", "only_german.html", '<p id="par_9">Nur deutsch.</p>')
    for language, word in (("en-US", "Sentence"), ("de", "Satz")):
        rows = (f'<p id="par_{n}{again}" class="paragraph">{word} {n}.</p>' for again in "ab" for n in range(300))
        write(language, "many.html", "\n".join(rows))
    return {"name": "libreoffice_help", "folder": str(tmp_path), "held_out": 0.1}


def all_pairs(source, direction="en-de"):
    return {split: list(source.pairs(direction, split, 1)) for split in ("train", "dev", "test")}


def test_paragraphs_are_paired_by_file_and_id(unpacked):
    pairs = [pair for part in all_pairs(sources.make(unpacked)).values() for pair in part]
    assert len(pairs) == len(set(pairs)) == 302
    assert ("Tables & Lists", "Tabellen & Listen") in pairs
    assert ("Click Insert, then Table.", "Wählen Sie Einfügen und dann Tabelle.") in pairs


def test_a_language_that_is_not_unpacked_is_named(unpacked):
    source = sources.make(unpacked)
    with pytest.raises(InputError, match=r"zh-CN: has no help. Run apt-get download libreoffice-help-zh-cn"):
        list(source.pairs("en-zh", "train", 1))
    assert source.refused("en-fr", "train") == "has no fr, but en, de, zh"


def test_a_page_in_another_encoding_is_named(unpacked):
    folder = Path(unpacked["folder"], "usr/share/libreoffice/help/de")
    page = next(folder.rglob("*.html"))
    page.write_bytes('<p id="a">für</p>'.encode("latin-1"))
    with pytest.raises(InputError, match=rf"{page.name}:1: not UTF-8"):
        list(sources.make(unpacked).pairs("en-de", "train", 1))


def test_a_mixture_trains_on_no_sentence_that_a_part_of_it_holds_out(unpacked, tmp_path):
    """Half of the second source's targets are those of the first, with other sources and so in other splits."""
    rows = (f"Another sentence {n}.\tSatz {n}.\n" for n in range(150, 450))
    (tmp_path / "en-de.tsv").write_text("".join(rows), encoding="utf-8")
    parts = [unpacked, {"name": "tatoeba", "folder": str(tmp_path), "held_out": 0.1}]
    mixed = {"name": "mixed", "sources": parts}
    train, dev, _, facts = build.corpus({"direction": "en-de", "seed": 1, "source": mixed, "train": 999, "dev": 99})
    assert {row["source"].split()[0] for row in train} >= {"Sentence", "Another"}
    assert facts["origin"]["tatoeba"] == {"files": files.digests([Path(tmp_path, "en-de.tsv")])}
    trained, held_out = ({row["target"] for row in rows} for rows in (train, dev))
    tested = {pair[1] for part in parts for pair in sources.make(part).pairs("en-de", "test", 1)}
    assert tested and held_out and not trained & (held_out | tested) and not held_out & tested


def test_both_directions_have_the_same_split(unpacked):
    source = sources.make(unpacked)
    backward = {split: [pair[::-1] for pair in part] for split, part in all_pairs(source, "de-en").items()}
    assert all(backward.values()) and backward["train"] == all_pairs(source)["train"]
