"""Damage of every kind of file: the audit names it, the next job that reads it refuses it, repair makes room for it."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import fake_chain
import pytest

from entropy_valley import digest_cache, files, provenance
from entropy_valley.backbone import adapters, checkpoint
from entropy_valley.backbone.families import find_family
from entropy_valley.canvas.statistics import LengthStatistics
from entropy_valley.engine.made import made
from entropy_valley.errors import InputError, refusal
from entropy_valley.experiment import base_files, load_files, repair
from entropy_valley.experiment.audit import Audit
from entropy_valley.experiment.findings import DAMAGED, DONE
from entropy_valley.experiment.matrix import all_cells
from entropy_valley.reporting import document, terminal
from entropy_valley.reporting import repair as reported
from entropy_valley.store import Store
from entropy_valley.training import resumable

ROOT = Path(__file__).parents[2]
R = Path("results/demo")
RUN = R / "en-zh/llada-tiny/seed1"
OTHER = R / "en-zh/llada-tiny/seed2"
CELL = "grammar/ev/med-T32"
MATRIX = """
matrix: {backbones: [llada-tiny], directions: [en-zh], seeds: [1, 2], methods: [oracle, ratio, ev, cal]}
tables: {studies: []}
"""
# By kind: the file, one of the same kind, and the rule that makes it.
KINDS = {
    "training pairs": (R / "corpus/en-zh/train.jsonl", R / "corpus/en-zh/dev.jsonl", "corpus"),
    "test set": (R / "corpus/en-zh/test/grammar.jsonl", R / "corpus/en-zh/train.jsonl", "testset"),
    "backbone": (R / "backbones/llada-tiny/model.safetensors", RUN / "adapter/adapter_model.safetensors", "pretrain"),
    "adapter": (RUN / "adapter/adapter_model.safetensors", OTHER / "adapter/adapter_model.safetensors", "train"),
    "adapter's settings": (RUN / "adapter/adapter_config.json", OTHER / "adapter/adapter_config.json", "train"),
    "length statistics": (RUN / "length_statistics.json", OTHER / "length_statistics.json", "length_statistics"),
    "canvases": (RUN / "grammar/ev/canvas.jsonl", RUN / "grammar/ratio/canvas.jsonl", "canvas"),
    "translations": (RUN / CELL / "hypotheses.jsonl", OTHER / CELL / "hypotheses.jsonl", "decode"),
    "scores": (RUN / CELL / "scores.jsonl", OTHER / CELL / "scores.jsonl", "score"),
    "system scores": (RUN / CELL / "scores.json", OTHER / CELL / "scores.json", "score"),
    "COMET": (R / "comet/checkpoints/model.ckpt", R / "comet/hparams.yaml", "train_comet"),
    "table": (R / "tables/main.csv", R / "tables/crossbb.csv", "table"),
    "figure": (R / "figures/hero.pdf", R / "figures/hero.png", "figure"),
}
TRAINING, PRETRAINING = R / "work/train/en-zh.llada-tiny.seed1", R / "work/pretrain/llada-tiny"


def truncate(path, other):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path, other):
    path.write_bytes(b"")


def flip(path, other):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit(path, other):
    path.write_bytes(path.read_bytes() + b"{}\n")


def swap(path, other):
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


DAMAGES = (truncate, empty, flip, edit, swap)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A config, and a folder with all its results, tables, a store and trainings that were killed."""
    folder = tmp_path_factory.mktemp("damage")
    with contextlib.chdir(folder):
        Path("mine.yaml").write_text(MATRIX)
        experiment = load_files([*base_files(ROOT), ROOT / "config/demo.yaml", "mine.yaml"])
        fake_chain.write(experiment)
        for rule, names in (("table", ("main", "crossbb")), ("figure", ("hero",))):
            for name in names:
                paths = [R / f"{rule}s" / f"{name}.{ending}" for ending in ("pdf", "png", "csv")]
                with provenance.made(rule, {}, [], paths):
                    for path in paths:
                        files.write_text(path, f"{path}\n")
        files.write_text(TRAINING / "step2/optim.pt", "states\n")
        digests = files.digests([TRAINING / "step2/optim.pt"])
        files.write_json(TRAINING / "last.json", {"tag": "step2", "digests": digests})
        PRETRAINING.mkdir(parents=True)
        (PRETRAINING / "state.pt").write_bytes(resumable.with_digest(b"states"))
        with Store(R / "store/en-zh/llada-tiny/seed1") as store:
            store.put("a", {"tokens": [11, 12]})
            store.put("b", {"tokens": [13]})
        return folder, experiment


@pytest.fixture
def in_place(whole, monkeypatch, request):
    """The config, in the folder itself; the files of a kind are as before in the end."""
    monkeypatch.chdir(whole[0])
    kept = {path: path.read_bytes() for path in KINDS[request.getfixturevalue("kind")][:2]}
    yield whole[1]
    for path, content in kept.items():
        path.write_bytes(content)


@pytest.fixture
def experiment(whole, monkeypatch, tmp_path):
    """The config, in a copy of the folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    return whole[1]


def found(experiment):
    """What is damaged, by rule."""
    audit = Audit(experiment)
    damages = [*repair.of_results(audit, all_cells(experiment)).values(), *repair.beside(audit)]
    return {one.rule: one for one in damages}


def read_text(path):
    """As a table's job reads it."""
    record = provenance.Record("table", {}, {}, {})
    with files.watched(record.read), contextlib.suppress(UnicodeDecodeError):
        files.read_lines(path)


def read_input(path):
    """As the jobs read it that name it on their command line."""
    job = SimpleNamespace(spec={}, identity=SimpleNamespace(backbone_digest="x", adapter_digest=None))
    options = argparse.Namespace(backbone=Path("none"), adapter=None, testset=path, out=Path("made/out.jsonl"))
    with made("canvas", job, options):
        files.write_text(options.out, "made\n")


READ = {
    "backbone": lambda path: checkpoint.checkpoint_digest(path.parent),
    "adapter": lambda path: adapters.adapter_digest(path.parent, find_family("llada"), "x"),
    "adapter's settings": lambda path: adapters.adapter_digest(path.parent, find_family("llada"), "x"),
    "COMET": lambda path: provenance.require_whole(path.parents[1] / "comet.json"),
    "scores": read_text,
    "system scores": read_text,
    "table": terminal.show,
    "figure": lambda path: document.to_latex([document.Item("figures/hero", "")], R),
    "length statistics": LengthStatistics.read,
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_names_it_and_its_reader_refuses_it(in_place, kind, damage):
    path, other, rule = KINDS[kind]
    damage(path, other)
    named = found(in_place)
    assert {str(path), str(other)} & set(named[rule].remove)
    assert len(named) == 1 or damage is swap, named
    error = refusal(READ.get(kind, read_input), path)
    assert error and "Remove" in error


def test_what_is_whole_is_read(experiment):
    assert found(experiment) == {}
    for kind in ("training pairs", "canvases", "scores", "table", "COMET"):
        READ.get(kind, read_input)(KINDS[kind][0])
    resumable.require_whole(TRAINING)
    assert resumable.without_digest(PRETRAINING / "state.pt") == b"states"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"rule": "decode"}', "[" * 9999, '{"outputs": {"a": {}}}'])
def test_a_record_that_is_none_is_named(experiment, content):
    record = RUN / CELL / "hypotheses.made.json"
    text = record.read_text()
    record.write_text(content or "")
    assert found(experiment)["decode"].why == "its record hypotheses.made.json cannot be read"
    assert "is no record" in refusal(provenance.require_as_made, KINDS["translations"][0])
    record.write_text(text.replace('"bytes":', '"bytes":"1","old":'))
    assert set(found(experiment)) == {"decode"}
    shutil.copy(OTHER / CELL / "hypotheses.made.json", record)
    assert set(found(experiment)) == {"decode"}


@pytest.mark.parametrize("damage", [truncate, empty, flip, edit], ids=lambda one: one.__name__)
def test_checkpoints_of_trainings_are_looked_at_before_they_are_loaded(experiment, damage):
    damage(TRAINING / "step2/optim.pt", None)
    damage(PRETRAINING / "state.pt", None)
    named = found(experiment)
    assert [one.remove for one in named.values()] == [(str(TRAINING),), (str(PRETRAINING),)]
    assert "the training then starts anew" in refusal(resumable.require_whole, TRAINING)
    assert "the training then starts anew" in refusal(resumable.without_digest, PRETRAINING / "state.pt")


def test_a_missing_file_of_a_checkpoint_is_named_and_a_checkpoint_of_old_is_read(experiment):
    (TRAINING / "step2/optim.pt").unlink()
    with pytest.raises(InputError, match=r"optim\.pt: file not found"):
        resumable.require_whole(TRAINING)
    files.write_json(TRAINING / "last.json", {"tag": "step2"})
    (PRETRAINING / "state.pt").write_bytes(b"PK of old")
    assert found(experiment) == {}


@pytest.mark.parametrize(
    ("old", "new"), [(b"12", b"13"), (b'"a"', b'"c"'), (b'"a"', b'"\xff'), (b'","sum', b"'','sum")]
)
def test_a_damaged_line_of_the_store_is_named_until_a_job_has_computed_it_again(experiment, old, new):
    (shard,) = (R / "store").rglob("*.jsonl")
    shard.write_bytes(shard.read_bytes().replace(old, new, 1))
    assert (found(experiment)["store"].remove, found(experiment)["store"].lines) == ((str(shard),), (1,))
    with Store(shard.parent) as store:
        assert store.get("a") is None and store.get("b") == {"tokens": [13]}
        store.put("a", {"tokens": [11, 12]})
    if new == b"13":  # else nobody knows of what the line was
        assert found(experiment) == {}
    reported.report(experiment, delete=True)
    assert found(experiment) == {}
    assert Store(shard.parent).get("a") == {"tokens": [11, 12]} and Store(shard.parent).get("b") == {"tokens": [13]}


def test_a_whole_folder_of_another_run_is_named(experiment):
    """Its files are as their records say, but these are of another adapter."""
    one, other = RUN / "grammar", OTHER / "grammar"
    one.rename("aside")
    other.rename(one)
    Path("aside").rename(other)
    assert set(found(experiment)) == {"canvas", "decode"}
    assert "it was made from results/demo/en-zh/llada-tiny/seed1/adapter/" in found(experiment)["decode"].why


def test_results_in_a_folder_that_was_renamed_are_whole(experiment):
    R.rename("results/new")
    moved = experiment.model_copy(update={"results": "results/new"})
    assert found(moved) == {} and {one.state for one in Audit(moved).cells()} == {DONE}


def test_what_a_later_job_has_made_again_is_whole(experiment):
    paths = [R / "tables" / f"main.{ending}" for ending in ("pdf", "png", "csv")]
    with provenance.made("table", {"more": 1}, [], paths):
        for path in paths:
            files.write_text(path, "again\n")
    with Store(R / "store/en-zh/llada-tiny/seed1") as store:
        store.put("a", {"tokens": [11, 12]})
    assert found(experiment) == {}


def test_a_copy_of_development_pairs_has_the_record_of_what_it_was_copied_from(tmp_path):
    dev, copy = tmp_path / "dev.jsonl", tmp_path / "test" / "dev.jsonl"
    with provenance.made("corpus", {}, [], [tmp_path / "train.jsonl", dev]):
        files.write_text(tmp_path / "train.jsonl", "{}\n")
        files.write_text(dev, "{}\n")
    files.write_text(copy, "{}\n")
    provenance.require_as_made(copy)
    copy.write_text("[]\n")
    with pytest.raises(InputError, match=r"test/dev\.jsonl: not as the rule corpus wrote it"):
        provenance.require_as_made(copy)


def test_a_downloaded_checkpoint_is_as_its_manifest_says(tmp_path):
    folder, said = tmp_path / "llada", tmp_path / "llada.json"
    for name in ("model.safetensors", "config.json"):
        files.write_text(folder / name, name)
    files.write_json(said, checkpoint.manifest(folder))
    checkpoint.require_same(folder, said)
    (folder / "model.safetensors").write_text("model.safetensorz")
    with pytest.raises(InputError, match=r"llada: not as .*llada\.json says: model\.safetensors\. Restore it"):
        checkpoint.require_same(folder, said)
    folder.rename(tmp_path / "moved")
    checkpoint.require_same(folder, said)


def test_repair_deletes_what_a_damaged_result_consists_of_and_nothing_else(experiment, capsys):
    path = KINDS["adapter"][0]
    names = ("adapter.json", "adapter_config.json", "adapter_model.safetensors", "adapter.made.json")
    flip(path, None)
    before = set(R.rglob("*"))
    reported.report(experiment, delete=False)
    said = capsys.readouterr().out
    assert said.startswith(f"train: {path.parent}/adapter.json: adapter_model.safetensors is not what was written")
    assert f"\n    {path}\n" in said and "Nothing was deleted." in said
    assert before <= set(R.rglob("*"))
    reported.report(experiment, delete=True)
    assert before - set(R.rglob("*")) == {path.with_name(name) for name in names}
    again = str(path.with_name("adapter.json"))
    assert repair.to_make_again(str(R), lambda: {again, "another"}) == [again]
    assert repair.to_make_again(str(R), lambda: {"of another config"}) == []
    assert found(experiment) == {}
    reported.report(experiment, delete=False)
    assert capsys.readouterr().out.endswith("Nothing is damaged.\n")


def test_repair_deletes_nothing_while_snakemake_runs(experiment):
    flip(KINDS["scores"][0], None)
    files.write_text(".snakemake/locks/0.input.lock", "")
    with pytest.raises(InputError, match="Snakemake runs in this folder"):
        reported.report(experiment, delete=True)
    assert KINDS["scores"][0].exists()


def test_what_has_not_changed_is_read_once(experiment, monkeypatch):
    read, digest = [], files.file_digest
    monkeypatch.setattr(digest_cache, "SETTLED", -1)
    monkeypatch.setattr(files, "file_digest", lambda path: read.append(path) or digest(path))
    reported.report(experiment, delete=False)
    first, read[:] = len(read), []
    reported.report(experiment, delete=False)
    assert first > 50 and not [path for path in read if "work" not in str(path)]
    reported.report(experiment, delete=False, verify=True)
    assert len(read) >= first


def test_the_cell_of_a_damaged_result_is_damaged(experiment):
    flip(KINDS["canvases"][0], None)
    states = {one.cell.method: one.state for one in Audit(experiment).cells() if one.cell.run.seed == 1}
    assert states["ev"] == DAMAGED and states["ratio"] == DONE
