"""Downloads of COMET checkpoints: a folder for each, pinned and checked."""

from __future__ import annotations

import shutil

import pytest
import yaml
from fake_hub import serve
from run_rule import run_here

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.scoring import comet, comet_checkpoint
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT, HPARAMS
from entropy_valley.scoring.metrics import ScoringJob

OLD, NEW = "a" * 40, "b" * 40
MODEL = "someone/model"


@pytest.fixture
def released(comet_folder):
    """A checkpoint as a repository; its encoder's files are in the same one."""
    encoder = {path.name: path.read_bytes() for path in (comet_folder / "encoder").iterdir()}
    hparams = yaml.safe_load((comet_folder / HPARAMS).read_text()) | {"pretrained_model": MODEL}
    checkpoint = {str(CHECKPOINT): (comet_folder / CHECKPOINT).read_bytes(), HPARAMS: yaml.safe_dump(hparams).encode()}
    return {"README.md": b"a model", **encoder, **checkpoint}


@pytest.fixture
def fetch(tmp_path, reach):
    """Ask for ``someone/model``; its folder. The hub has it at two commits, which differ in the weights."""

    def run(server, revision=None, confirm=False):
        reach(server.url)
        spec, how = {"repository": MODEL, "revision": revision}, {"folder": tmp_path / "models" / "model"}
        run_here("fetch_comet", spec, (), tmp_path / "model.json", how | {"metric": "comet", "confirm": confirm})
        return how["folder"]

    return run


def scorer(folder, checkpoint, **settings):
    metric = comet.Comet(checkpoint=checkpoint, **settings)
    metric.prepare(ScoringJob("zh", folder))
    return metric


def test_a_download_is_of_one_commit_and_scores(fetch, released, tmp_path, monkeypatch, segments):
    moved_on = {**released, str(CHECKPOINT): released[str(CHECKPOINT)][:-1] + b"x"}
    with serve({OLD: released, NEW: moved_on}) as server:
        monkeypatch.setitem(comet_checkpoint.PINNED, MODEL, OLD)
        folder = fetch(server)
    found = files.read_json(tmp_path / "model.json")
    assert found["revision"] == found["encoder_revision"] == OLD
    assert found["digest"] == files.file_digest(folder / CHECKPOINT)
    assert scorer(folder, MODEL).segment_scores(*zip(*segments[:2], strict=True))


def test_without_a_pin_the_newest_commit_is_fetched(fetch, released, tmp_path):
    with serve({OLD: released, NEW: {**released, "README.md": b"another"}}) as server:
        folder = fetch(server)
        with pytest.raises(InputError, match=f"holds revision {NEW}, not {OLD}. Name it in the config"):
            fetch(server, revision=OLD)
        shutil.rmtree(folder)
        fetch(server, revision=OLD)
    assert files.read_json(tmp_path / "model.json")["revision"] == OLD


@pytest.mark.parametrize("named", [None, 3, "", "../../etc", "a/b/c", "https://somewhere"])
def test_a_checkpoint_that_names_no_encoder(tmp_path, named):
    (tmp_path / HPARAMS).write_text(
        yaml.safe_dump({"class_identifier": "regression_metric", "pretrained_model": named})
    )
    with pytest.raises(
        InputError, match=r"hparams.yaml: `pretrained_model` is .*, not the name of an encoder on the hub"
    ):
        comet_checkpoint.encoder_of(tmp_path)


def test_a_revision_is_of_a_repository():
    with pytest.raises(ValueError, match="`revision` is the commit of a `checkpoint` on the hub"):
        comet.MainComet(checkpoint="my/model.ckpt", revision=OLD)


def test_a_manifest_of_others_is_one_error(tmp_path):
    (tmp_path / comet_checkpoint.MANIFEST).write_text("[]")
    with pytest.raises(InputError, match=r"comet\.json: must be a block of keys"):
        comet_checkpoint.check(tmp_path, "Unbabel/wmt22-comet-da", None)
