"""A record says what a result was made from; jobs that read the result check it."""

from __future__ import annotations

import json

import pytest

from entropy_valley import files
from entropy_valley.errors import InputError, refusal
from entropy_valley.provenance import code, made, record_of, record_path, require_as_made, require_whole

SPEC = {"selector": {"ratios": [0.7, 0.8]}, "revision": 4}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text("{}\n")
    return path


@pytest.fixture
def canvas(tmp_path, source):
    """A result with its record."""
    path = tmp_path / "ev" / "canvas.jsonl"
    with made("canvas", SPEC, [source], [path], known={"models/llada": "a" * 32, "adapter": None}):
        files.write_text(path, "one\n")
    return path


def test_a_record_has_rule_params_inputs_and_outputs(canvas, source):
    assert files.read_json(canvas.with_name("canvas.made.json")) == {
        "rule": "canvas",
        "params": SPEC,
        "inputs": {str(source): files.file_digest(source), "models/llada": "a" * 32},
        "outputs": {"canvas.jsonl": {"digest": files.file_digest(canvas), "bytes": 4}},
        "facts": {"code": files.digest(code())},
    }


def test_params_are_compared_as_values_or_text(canvas):
    record = record_of(canvas)
    assert record.matches(SPEC) and record.matches(json.dumps(SPEC))
    assert not record.matches(SPEC | {"revision": 5})


def test_the_record_of_a_second_output_is_that_of_the_first(tmp_path):
    paths = [tmp_path / "hypotheses.jsonl", tmp_path / "decoding.json"]
    with made("decode", SPEC, [], paths) as record:
        for path in paths:
            files.write_text(path, path.name)
        record.facts["settings"] = 1
    assert record_of(paths[1]) == record_of(paths[0])
    assert record_of(paths[1]).facts["settings"] == 1


def test_a_folder_is_described_file_by_file(tmp_path):
    with made("train", SPEC, [], [tmp_path / "adapter" / "adapter.json"], whole_folder=True):
        files.write_text(tmp_path / "adapter" / "adapter.json", "{}")
        files.write_text(tmp_path / "adapter" / "parts" / "weights", "x")
        files.write_text(tmp_path / "adapter" / "README.md", "a card, which its owner may edit")
    assert record_of(tmp_path / "adapter" / "adapter.json").outputs.keys() == {"adapter.json", "parts/weights"}


def test_a_changed_input_is_refused(canvas, tmp_path):
    canvas.write_text("two\n")
    with pytest.raises(
        InputError, match=r"canvas\.jsonl: not as the rule canvas wrote it: .* Remove .*canvas\.jsonl and run again"
    ):
        require_as_made(canvas)
    with (
        pytest.raises(InputError, match="not as the rule canvas wrote it"),
        made("decode", SPEC, [canvas], [tmp_path / "out"]),
    ):
        pytest.fail("it ran")


def test_a_result_without_a_record_is_read_as_it_is(canvas):
    record_path(canvas).unlink()
    canvas.write_text("two\n")
    assert require_as_made(canvas) == files.file_digest(canvas)


def test_a_missing_input_is_said(tmp_path):
    with pytest.raises(InputError, match="file not found"):
        require_as_made(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"rule": "canvas"}', "[" * 9999, '{"outputs": {"a": {}}}'])
def test_a_damaged_record_is_named(canvas, content):
    record_path(canvas).write_text(content)
    with pytest.raises(InputError, match=r"canvas\.made\.json: is no record"):
        require_as_made(canvas)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-2])


def flip(path):
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def lose(path):
    path.unlink()


@pytest.mark.parametrize("damage", [truncate, flip, lose])
def test_what_has_several_files_is_refused_if_one_is_damaged(tmp_path, damage):
    paths = [tmp_path / "adapter.json", tmp_path / "weights"]
    with made("train", SPEC, [], paths):
        for path in paths:
            files.write_text(path, path.name)
    require_whole(paths[0])
    damage(paths[1])
    assert refusal(require_whole, paths[0]).endswith(f"Remove {paths[0]} and run again")


def test_a_copy_of_development_pairs_has_the_record_of_what_it_was_copied_from(tmp_path):
    dev, copy = tmp_path / "dev.jsonl", tmp_path / "test" / "dev.jsonl"
    with made("corpus", {}, [], [tmp_path / "train.jsonl", dev]):
        files.write_text(tmp_path / "train.jsonl", "{}\n")
        files.write_text(dev, "{}\n")
    files.write_text(copy, "{}\n")
    require_as_made(copy)
    copy.write_text("[]\n")
    with pytest.raises(InputError, match=r"test/dev\.jsonl: not as the rule corpus wrote it"):
        require_as_made(copy)


@pytest.mark.parametrize(("written", "holds"), [("one\n", True), ("two\n", False)])
def test_what_a_failed_job_leaves_is_read_only_if_it_is_whole(canvas, written, holds):
    with pytest.raises(RuntimeError), made("canvas", {}, [], [canvas]):
        canvas.write_text(written)
        raise RuntimeError
    assert record_of(canvas).matches(SPEC)
    assert (refusal(require_as_made, canvas) is None) == holds


def test_a_failed_first_try_leaves_no_record(tmp_path):
    with pytest.raises(RuntimeError), made("canvas", SPEC, [], [tmp_path / "canvas.jsonl"]):
        raise RuntimeError
    assert not list(tmp_path.iterdir())
