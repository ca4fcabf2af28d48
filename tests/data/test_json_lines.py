"""Given files of pairs: from a folder as they are, and from a hub, of one commit, which the results name."""

import json

import pytest

from entropy_valley import files
from entropy_valley.data import build, sources
from entropy_valley.data.dataset import HubFiles
from entropy_valley.errors import InputError

OLD, NEW = "a" * 40, "b" * 40
NAMES = {"en-zh": {"train": "enzh_train.jsonl", "dev": "enzh_dev.jsonl", "test": "sets/enzh_test.jsonl"}}
ROWS = {"train": 40, "dev": 6, "test": 9}
SIZES = {"train": 40, "dev": 6}


def content(split: str, count: int) -> bytes:
    """Rows with blanks, a repetition, a key that nobody asked for; and a pair of which one side is blank."""
    texts = [(f" {split} {number % (count - 1)}", f"{split} 词{number % (count - 1)} ") for number in range(count)]
    texts[3] = (texts[3][0], " ") if split == "train" else texts[3]
    rows = [{"zh": chinese, "en": english, "idx": 1} for english, chinese in texts]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


RELEASED = {name: content(split, ROWS[split]) for split, name in NAMES["en-zh"].items()} | {"README.md": b"a data set"}


@pytest.fixture
def folder(tmp_path):
    for name, written in RELEASED.items():
        path = tmp_path / "given" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written)
    return tmp_path / "given"


@pytest.fixture
def source(folder):
    return {"name": "json_lines", "folder": str(folder), "files": NAMES, "rows": ROWS}


def spec(source, direction="en-zh", **more):
    return {"direction": direction, "seed": 1, "source": source, **SIZES, "filters": {}, **more}


def pairs(rows):
    return [(row["source"], row["target"]) for row in rows]


def test_train_and_dev_are_the_files_as_they_are(source):
    train, dev, report, _ = build.corpus(spec(source))
    expected = [json.loads(line) for line in RELEASED["enzh_train.jsonl"].decode().splitlines()]
    assert pairs(train) == [(row["en"].strip(), row["zh"].strip()) for row in expected]
    assert train[0]["source"] == train[-1]["source"] == "train 0"  # neither sorted nor without repetitions
    assert pairs(dev)[1] == ("dev 1", "dev 词1")
    assert report["counts"] == {"read": 46, "filtered": 0, "train": 40, "dev": 6}
    assert build.corpus(spec(source, train=10))[0] == train[:10]


def test_the_reverse_direction_has_them_with_swapped_roles(source):
    there, back = (build.corpus(spec(source, direction)) for direction in ("en-zh", "zh-en"))
    for one, other in zip(there[:2], back[:2], strict=True):
        assert pairs(other) == [pair[::-1] for pair in pairs(one)]
    tests = [build.testset(spec(source, direction, limit=None)) for direction in ("en-zh", "zh-en")]
    assert len(tests[0]) == 9 and pairs(tests[1]) == [pair[::-1] for pair in pairs(tests[0])]


def test_keys_may_be_nested_and_rows_left_out(source, folder, capsys):
    rows = [{"translation": {"en": f"en {n}", "zh": f"zh {n}"}, "bad": n == 1} for n in range(3)]
    files.write_jsonl(folder / "sets/enzh_test.jsonl", rows)
    keys = {language: f"translation.{language}" for language in ("en", "zh")}
    read = build.testset(spec(source | {"keys": keys, "without": {"bad": True}, "rows": {"test": 3}}, limit=None))
    assert [row["source"] for row in read] == ["en 0", "en 2"]
    assert "enzh_test.jsonl: 1 of 3 rows are left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rows": ROWS | {"train": 41}}, r"enzh_train.jsonl: 40 rows instead of 41"),
        ({"keys": {"zh": "chinese"}}, r"enzh_train.jsonl:1: no chinese"),
        ({"keys": {"zh": "idx"}}, r"enzh_train.jsonl:1: idx is \d+, not a text"),
        ({"keys": {"zh": "en.zh"}}, r"enzh_train.jsonl:1: no en.zh"),
        ({"without": {"bad": True}}, r"enzh_train.jsonl:1: no bad"),
        ({"files": {"en-de": NAMES["en-zh"]}}, "has no train file of en-zh"),
        ({"folder": None, "dataset": "a/b"}, "data set a/b: is not downloaded yet"),
    ],
)
def test_what_does_not_fit_is_named(source, change, problem):
    with pytest.raises(InputError, match=problem):
        build.corpus(spec(source | change))


def test_a_source_needs_an_origin_and_gives_at_most_what_it_has(source, capsys):
    with pytest.raises(InputError, match="give `dataset` or `folder`"):
        sources.make({"name": "json_lines", "files": NAMES})
    assert len(build.corpus(spec(source, train=41))[0]) == 40
    assert "the source has 40 of at most 41 pairs of train" in capsys.readouterr().err


def test_a_job_depends_on_the_files_of_its_splits_alone(source):
    hub = sources.make(source | {"files": NAMES | {"en-de": {"test": "ende_test.jsonl"}}})
    assert hub.settings("zh-en", "test")["files"] == {"en-zh": {"test": "sets/enzh_test.jsonl"}}
    assert hub.settings("zh-en", "test")["rows"] == {"test": 9}
    assert hub.refused("de-en", "test") is None
    assert hub.refused("en-de", "train", "dev") == "has no train and no dev file of en-de; name it under `files`"
    assert hub.own_files("zh-en", "dev") == [f"{source['folder']}/enzh_dev.jsonl"]


def test_another_commit_is_another_folder():
    names = [HubFiles("a/b", revision, ["*"]).folder for revision in (None, OLD, NEW, "refs/x")]
    assert names == ["a--b", "a--b@aaaaaaaa", "a--b@bbbbbbbb", "a--b@refs--x"]
    assert HubFiles("a/b", OLD, ["*"], "zh-en train").folder == "a--b--zh-en--train@aaaaaaaa"
