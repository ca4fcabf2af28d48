"""A record says what a result was made from."""

import contextlib
import importlib.metadata
import json

import pytest

from entropy_valley import files, machine
from entropy_valley.errors import InputError
from entropy_valley.results import ABSENT, code_digest, differences, made, record_of, record_path, systems

SPEC = {"method": {"ratios": [0.7, 0.8]}, "revision": 4}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text("{}\n")
    return path


@pytest.fixture
def canvas(tmp_path, source):
    """A result with its record."""
    path = tmp_path / "ev" / "canvas.jsonl"
    with made("canvas", SPEC, [source], [path], digests={"models/llada": "a" * 32, "adapter": None}):
        files.write_text(path, "one\n")
    return path


def test_a_record_has_rule_params_inputs_and_outputs(canvas, source):
    written = files.read_json(canvas.with_name("canvas.made.json"))
    assert written.pop("digest") == files.digest(written)
    assert written == {
        "rule": "canvas",
        "path": str(canvas),
        "params": SPEC,
        "inputs": {str(source): files.file_digest(source), "models/llada": "a" * 32},
        "outputs": {"canvas.jsonl": {"digest": files.file_digest(canvas)}},
        "facts": {"code": code_digest(), "machine": machine.description()},
    }


def test_a_record_says_on_which_cpu(tmp_path, monkeypatch):
    """Its instruction sets, and the variables by which libraries use fewer."""
    info = "processor: 0\nmodel name\t: Any CPU @ 2.0GHz\nflags\t\t: fpu avx2 fma avx512f_not\n"
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    for name in ("processor", "description"):  # each is read once a process
        monkeypatch.setattr(machine, name, getattr(machine, name).__wrapped__)
    machine.CPUINFO.write_text(info)
    for variable in machine.FEWER:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    with made("canvas", SPEC, [], [tmp_path / "canvas.jsonl"]):
        files.write_text(tmp_path / "canvas.jsonl", "one\n")
    described = record_of(tmp_path / "canvas.jsonl").facts["machine"]
    assert described.pop("torch") == importlib.metadata.version("torch")
    assert described == {"cpu": "Any CPU @ 2.0GHz", "instructions": ["avx2", "fma"], "ATEN_CPU_CAPABILITY": "default"}


def test_the_record_of_a_second_output_is_that_of_the_first(tmp_path):
    paths = [tmp_path / "hypotheses.jsonl", tmp_path / "decoding.json"]
    with made("decode", SPEC, [], paths) as record:
        for path in paths:
            files.write_text(path, path.name)
        record.facts["settings"] = 1
    assert record_of(paths[1]) == record_of(paths[0])
    assert record_of(paths[1]).facts["settings"] == 1


def test_a_folder_is_described_file_by_file(tmp_path):
    names = ["adapter.json", "parts/weights", "README.md", "adapter.made.json"]
    with made("train", SPEC, [], [tmp_path / "adapter" / name for name in names]):
        for name in names[:3]:  # the third is a card, which its owner may edit; the last is the header itself
            files.write_text(tmp_path / "adapter" / name, "x")
    assert record_of(tmp_path / "adapter" / "adapter.json").outputs.keys() == {"adapter.json", "parts/weights"}


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "\ud800"},
        {"path": None},
        {"inputs": {"a": 5}},
        {"outputs": {"a": None}},
        {"facts": {"loss": float("nan")}},
        {"more": 1},
    ],
    ids=str,
)
def test_a_record_of_others_may_hold_anything(canvas, change):
    """Its digest may be right, and a table or an audit that reads it says in one line what is wrong."""
    content = json.loads(record_path(canvas).read_text()) | change
    del content["digest"]
    with contextlib.suppress(ValueError, RecursionError):
        content["digest"] = files.digest(content)
    record_path(canvas).write_text(json.dumps({"digest": "a" * 32} | content))
    with pytest.raises(InputError, match=r"canvas\.made\.json: is not a header of a result[^\n]{,200}\. Remove"):
        record_of(canvas)


@pytest.mark.parametrize(
    ("old", "new"), [('"rule": "canvas"', '"rule": "other"'), ('"digest": "', '"digest": "0'), ("0.7", "0.6")]
)
def test_an_edited_record_is_named(canvas, old, new):
    place = record_path(canvas)
    place.write_text(place.read_text().replace(old, new))
    with pytest.raises(InputError, match=r"canvas\.made\.json: was edited: its digest is [0-9a-f]{12}, .* was written"):
        record_of(canvas)


def test_rows_that_were_edited_are_not_read(tmp_path):
    """So that a job computes nothing from them."""
    path = tmp_path / "translations.jsonl"
    row = {"testset": "wmt", "method": "ev", "order": "med", "steps": 4, "id": "1", "hypothesis": "one"}
    with made("translate", SPEC, [], [path]):
        files.write_jsonl(path, [row])
    assert len(systems(path)) == 1
    path.write_text(path.read_text().replace("one", "two"))
    with pytest.raises(InputError, match=r"translations\.jsonl was edited: its digest is .* remove what was edited"):
        systems(path)


def test_no_job_computes_from_a_result_that_was_edited(tmp_path):
    """It ends before its own work."""
    corpus, out = [tmp_path / "train.jsonl", tmp_path / "dev.jsonl"], tmp_path / "canvas.jsonl"
    with made("corpus", SPEC, [], corpus):
        for path in corpus:
            files.write_text(path, "one\n")
    corpus[1].write_text("two\n")
    remedy = r"`entropy-valley audit` lists what to make again; remove what was edited or copied, and run again"
    with (
        pytest.raises(InputError, match=rf"dev.jsonl was edited: its digest is .* {remedy}"),
        made("canvas", SPEC, [corpus[1]], [out]),
    ):
        files.write_text(out, "three\n")
    assert not out.exists()


def test_a_failed_job_leaves_the_old_record_or_none(canvas, tmp_path):
    for path in (canvas, tmp_path / "new" / "canvas.jsonl"):
        with pytest.raises(RuntimeError), made("canvas", {}, [], [path]):
            raise RuntimeError
    assert record_of(canvas).params == SPEC
    assert not (tmp_path / "new").exists()


def test_keys_are_paths_and_lists_are_compared_whole():
    before = {"a": {"b": [1, 2], "c": 1}, "d": 1}
    after = {"a": {"b": [1, 3], "c": 1}, "e": None}
    assert list(differences(before, after)) == [("a.b", [1, 2], [1, 3]), ("d", 1, ABSENT), ("e", ABSENT, None)]


def test_long_values_are_cut_to_where_they_differ():
    before, after = ([{"backbone": name, "path": "x" * 40} for name in names] for names in ("aab", "aac"))
    (line,) = map(str, differences({"rows": before}, {"rows": after}))
    value = '…"backbone":"{}","path":"' + "x" * 37 + "…"
    assert line == f"rows: {value.format('b')} → {value.format('c')}"
