import zipfile
from pathlib import Path

import pytest
from run_rule import run_here

from entropy_valley import files
from entropy_valley.data import build, sources
from entropy_valley.errors import InputError
from entropy_valley.experiment.demo.grammar import SOURCES


def spec(source, direction="en-zh", train=20, dev=5, **more):
    return {"direction": direction, "seed": 1, "source": source, "train": train, "dev": dev, **more}


@pytest.fixture
def parallel(tmp_path):
    def write(source: bytes, target: bytes) -> dict[str, str]:
        (tmp_path / "in.en").write_bytes(source)
        (tmp_path / "in.zh").write_bytes(target)
        return {"name": "files", "source": str(tmp_path / "in.en"), "target": str(tmp_path / "in.zh")}

    return write


@pytest.fixture
def sentences(tmp_path):
    """300 sentences of 2 translations each, every translation shared by two neighbouring sentences."""
    rows = [f"sentence {n}\tÜbersetzung {n + k}\tattribution" for n in range(300) for k in (0, 1)]
    (tmp_path / "en-de.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return {"name": "tatoeba", "folder": str(tmp_path), "held_out": 0.1}


def test_embedded_needs_a_limit_and_a_language_it_speaks():
    with pytest.raises(InputError, match="never ends"):
        build.testset({"direction": "en-zh", "seed": 1, "source": {"name": "embedded"}, "limit": None}, SOURCES)
    with pytest.raises(InputError, match="does not speak ru"):
        build.corpus(spec({"name": "embedded"}, direction="en-ru"), SOURCES)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\n\nc\n \u200b\n".encode(), b"a\nb\nc\nd\n", "in.en:2: 2 blank lines: 2, 4. Remove such lines from both"),
        (b"a\nb\n", b"a\nb\nc\n", "in.zh: 3 lines, but .*in.en has 2"),
        (b"a\nb\n", b"c\nd\n", "10 distinct pairs are asked for, the source has 2"),
    ],
)
def test_bad_files(parallel, source, target, message):
    with pytest.raises(InputError, match=message):
        build.corpus(spec(parallel(source, target)))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"name": "wmt23"}, "'tatoeba', 'libreoffice_help', 'mixed', 'files', 'tsv', 'json_lines', 'embedded'"),
        ({"name": "files", "source": "in.en"}, "files.target: it is required"),
        ({"name": "embedded", "sede": 1}, "embedded.sede = 1: unknown key. Did you mean seed?"),
    ],
)
def test_unknown_source_or_setting(source, problem):
    with pytest.raises(InputError) as caught:
        sources.make(source, SOURCES)
    assert caught.value.place.startswith("source {") and problem in caught.value.problem


def test_tatoeba_holds_out_both_sides_and_the_same_in_both_directions(sentences):
    source = sources.make(sentences)
    splits = {name: list(source.pairs("en-de", name, 1)) for name in ("train", "dev", "test")}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        for a, b in zip(zip(*splits[one], strict=True), zip(*splits[other], strict=True), strict=True):
            assert not set(a) & set(b)
    tested = [first for first, _ in splits["test"]]
    assert len(tested) == len(set(tested)) > 0
    assert [pair[::-1] for pair in source.pairs("de-en", "train", 1)] == splits["train"]


def test_a_tatoeba_release_is_read_as_the_same_pairs_in_a_folder(tmp_path, monkeypatch):
    """A line ends with a line feed alone, not with U+2028 in a sentence."""
    rows = [(f"Satz {n}", f"sentence\u2028{n}") for n in range(300)]
    (tmp_path / "de-en.tsv").write_text("".join(f"{first}\t{second}\n" for first, second in rows), encoding="utf-8")
    monkeypatch.setenv("ENTROPY_VALLEY_CACHE", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "tatoeba-de-en.zip", "w") as archive:
        for language, texts in zip(("de", "en"), zip(*rows, strict=True), strict=True):
            archive.writestr(f"Tatoeba.de-en.{language}", "".join(f"{text}\n" for text in texts))
    folder, release = (sources.make({"name": "tatoeba", "folder": where}) for where in (str(tmp_path), None))
    for split in ("train", "dev", "test"):
        pairs = list(release.pairs("en-de", split, 1))
        assert pairs and pairs == list(folder.pairs("en-de", split, 1))


def wmt22_folder(folder: Path, lines: int) -> dict[str, str]:
    for name, word in (("src.en", "word"), ("ref.A.zh", "词")):
        text = "".join(f"{word} {n}\n" for n in range(lines))
        (folder / f"generaltest2022.en-zh.{name}").write_text(text, encoding="utf-8")
    return {"name": "wmt22", "folder": str(folder)}


def test_wmt22_swaps_the_roles_and_draws_a_subset(tmp_path):
    request = {"seed": 1, "source": wmt22_folder(tmp_path, 2037)}
    whole = build.testset({**request, "direction": "zh-en", "limit": None})
    few, more = (build.testset({**request, "direction": "zh-en", "limit": limit}) for limit in (200, 500))
    first = build.testset({**request, "direction": "zh-en", "limit": 200, "subset": "first"})
    assert first == whole[:200] != few
    assert whole[0] == {"id": "test-000001", "source": "词 0", "target": "word 0"}
    assert (len(whole), len(few), len(more)) == (2037, 200, 500)
    assert all(row in more for row in few) and all(row in whole for row in more)
    names = [f"generaltest2022.en-zh.{name}" for name in ("src.en", "ref.A.zh")]
    origin = build.origin({**request, "direction": "zh-en", "limit": None}, "test")
    assert origin == {"origin": {"files": files.digests(tmp_path / name for name in names)}}


def test_wmt22_counts_lines_and_knows_its_directions(tmp_path):
    source = wmt22_folder(tmp_path, 2000)
    with pytest.raises(InputError, match=f"2000 lines instead of 2037.*delete {tmp_path}"):
        build.testset({"direction": "en-zh", "seed": 1, "source": source, "limit": None})
    with pytest.raises(InputError, match="no reference A"):
        build.testset({"direction": "de-fr", "seed": 1, "source": source, "limit": None})


@pytest.fixture
def tsv(tmp_path):
    def make(content, columns, **more):
        path = tmp_path / "pairs.tsv"
        path.write_text(content, encoding="utf-8")
        return sources.make({"name": "tsv", "file": str(path), "columns": columns, **more})

    return make


def pairs_of(source, direction="de-en"):
    return list(source.pairs(direction, "train", 1))


def test_tsv_columns_by_number_and_in_both_directions(tsv):
    source = tsv('Hallo\t5\t Hello \n"Ja"!\t6\tYes\t\n', {"de": 1, "en": 3})
    assert pairs_of(source) == [("Hallo", "Hello"), ('"Ja"!', "Yes")]
    assert pairs_of(source, "en-de") == [("Hello", "Hallo"), ("Yes", '"Ja"!')]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("Hallo\tHello\nJa\n", {"de": 1, "en": 2}, r"tsv:2: no text in column 1 or 2 \(`blank: drop` leaves it out\)"),
        ('a\tb\na\tb\tc\n"a"\tb\n', {"de": 1, "en": 2}, r"tsv:2: more than 2 columns between tabs. Correct"),
        ("de\ten\tde\na\tb\tc\n", {"de": "de", "en": "en"}, r"pairs.tsv:1: 2 columns are called 'de'; .* Correct"),
        ('a\tb\n"x, y"\tc\n', {"de": 1, "en": 2}, r"tsv:2: a cell in quotation marks: .*`quoted: true`"),
        ("German\tEnglish\n", {"de": 1, "en": "english"}, r"0 columns are called 'english'; did you mean English\? b"),
        (f"a\t{'x' * 100_001}\n", {"de": 1, "en": 2}, r"pairs.tsv:1: 100,001 characters, more than"),
        ("a\tb\n", {"de": 1, "en": 1}, r"tsv.columns = .*: repeats 1; name each once"),
        ("Hallo\tHello\n", {"de": 1}, r"has no entry of en under `columns`"),
    ],
)
def test_what_a_tsv_file_has_not_is_named(tsv, content, columns, message):
    with pytest.raises(InputError, match=message):
        pairs_of(tsv(content, columns))


SAVED = 'de\ten\n"Ja, ""so""."\tYes\n"zwei\nZeilen\tTab"\ttwo\n'


def test_quotation_marks_are_those_of_a_spreadsheet_or_of_the_text(tsv):
    columns = {"de": "de", "en": "en"}
    saved = tsv(SAVED, columns, quoted=True)
    assert pairs_of(saved) == [('Ja, "so".', "Yes"), ("zwei\nZeilen\tTab", "two")]
    with pytest.raises(InputError, match=r"pairs.tsv:6: not a row of quoted cells .*`quoted: false`"):
        pairs_of(tsv(f'{SAVED}a\tb\n"open\tc\nd\te\n', columns | {"de": 1}, quoted=True))
    assert pairs_of(tsv('"Ja"\tYes\n', {"de": 1, "en": 2}, quoted=False)) == [('"Ja"', "Yes")]


def test_lines_without_a_text_may_be_dropped_and_are_counted(tsv):
    content = "".join(f"Wort {n}\tword {n}\n" for n in range(30)) + "\tword\nWort\t\u200b\nWort\n"
    source = tsv(content, {"de": 1, "en": 2}, blank="drop").settings("de-en")
    train, dev, _, facts = build.corpus(spec(source, direction="de-en"))
    assert (len(train), len(dev), facts["dropped"]) == (20, 5, {"de": {"blank": 1}, "en": {"blank": 2}})


def test_a_test_set_without_a_sentence_is_refused(tmp_path):
    """A header alone."""
    path = tmp_path / "pairs.tsv"
    path.write_text("en\tde\n", encoding="utf-8")
    source = {"name": "tsv", "file": str(path), "columns": {"en": "en", "de": "de"}}
    with pytest.raises(InputError, match=r"pairs.tsv: no sentence pair, or only such with a blank side"):
        build.testset({"direction": "en-de", "seed": 1, "source": source, "limit": None})


# --- The scripts of the workflow.


def test_overlap_script_warns_of_test_sentences_in_training(tmp_path, capsys):
    rows = [{"id": str(n), "source": f"{n}", "target": f"zu {n}"} for n in range(4)]
    read = {name: tmp_path / f"{name}.jsonl" for name in ("testset", "train")}
    files.write_jsonl(read["testset"], rows)
    files.write_jsonl(read["train"], rows[1:])
    run_here("overlap", {"revision": 1}, read, tmp_path / "out.json")
    warning = f"warning: {read['testset']}: 3 of 4 sources occur in the training pairs"
    assert capsys.readouterr().err.startswith(warning)
