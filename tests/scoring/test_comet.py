import random
import shutil
from functools import partial

import pytest
import torch
import yaml
from fake_hub import serve
from forging import Hostile
from run_rule import run_here

from entropy_valley import files, machine
from entropy_valley.errors import InputError
from entropy_valley.scoring import comet, comet_checkpoint
from entropy_valley.scoring.comet_checkpoint import CHECKPOINT, HPARAMS
from entropy_valley.scoring.metrics import ScoringJob
from entropy_valley.store import Store


def ready(folder, name="toy", store=None, **settings):
    metric = comet.Comet(checkpoint=name, **settings)
    metric.prepare(ScoringJob("zh", folder, store=Store(None) if store is None else store))
    return metric


def scores(folder, segments, store=None, **settings):
    return ready(folder, store=store, **settings).segment_scores(*zip(*segments, strict=True))


def copy(folder, to):
    return shutil.copytree(folder, to / "moved")


def test_scores_are_those_of_predict(comet_folder, segments, tmp_path):
    """Of a folder that was moved, too."""
    samples = [{"src": source, "mt": hypothesis, "ref": reference} for source, hypothesis, reference in segments]
    expected = comet.load(comet_folder).predict(samples, batch_size=7, gpus=0, progress_bar=False)["scores"]
    assert scores(copy(comet_folder, tmp_path), segments) == pytest.approx(expected, abs=1.5e-6)


def test_a_gpu_keeps_its_scores_apart(comet_folder, segments, tmp_path, monkeypatch):
    """The CPU stands for the GPU, whose model is in the store's keys and not in the signature of the scores."""
    load, loaded = comet.load, []
    monkeypatch.setattr(comet, "load", lambda path, device: loaded.append(device) or load(path, "cpu"))

    def job(gpu):
        monkeypatch.setattr(machine, "nvidia_smi", lambda: f"0, GPU-0, {gpu}\n")
        with Store(tmp_path) as store:
            metric = comet.Comet(checkpoint="toy")
            metric.prepare(ScoringJob("zh", comet_folder, "cuda", store=store))
            assert metric.signature.endswith("|device:cuda|batch:1|rows:64")
            return metric.segment_scores(*zip(*segments, strict=True))

    whole = job("NVIDIA H100 80GB HBM3")
    assert job("NVIDIA H100 80GB HBM3") == whole and len(loaded) == 1
    assert job("NVIDIA A100-SXM4-80GB") == whole and len(loaded) == 2


def note_pass(passes, module, arguments, inputs):
    """The rows and the length of what an encoder gets; nothing is padded."""
    assert inputs["attention_mask"].all()
    passes.append(tuple(inputs["input_ids"].shape))


class TestUnpadded:
    @pytest.fixture
    def company(self, segments):
        """Segments of several systems of one test set: equal sources, and hypotheses in all combinations of a few."""
        return [(source, other, reference) for source, _, reference in segments for _, other, _ in segments[:3]]

    @pytest.fixture(params=["regression", "referenceless", "unified 2", "unified 3", "xcomet 2", "xcomet 3"])
    def case(self, request, comet_folder, other_folders, company):
        """A model of each class in each use, and what it reads of the segments."""
        kind, _, texts = request.param.partition(" ")
        texts = int(texts or 2 + (kind == "regression"))
        model = comet.load({"regression": comet_folder, **other_folders}[kind])
        return model, list(dict.fromkeys(segment[:texts] for segment in company))

    def test_on_a_cpu_each_score_has_the_bits_of_comet_on_one_segment(self, case):
        model, asked = case
        alone = {segment: comet.batch_scores(model, [segment])[0] for segment in asked}
        assert len(set(alone.values())) > len(alone) / 2
        assert dict(comet.unpadded_scores(model, asked)) == alone

    @pytest.mark.parametrize(
        ("case", "tokens"),
        [
            *[(name, comet.TOKENS) for name in ("regression", "unified 3", "xcomet 3")],
            *[(name, 400) for name in ("regression", "referenceless", "unified 2", "xcomet 2")],
        ],
        indirect=["case"],
    )
    def test_in_the_shapes_of_a_gpu_a_score_does_not_depend_on_company(self, case, tokens, monkeypatch):
        """Bit by bit; here on a CPU, whose kernels are others."""
        (model, asked), passes, draws = case, [], random.Random(1)
        one_row = dict(comet.unpadded_scores(model, asked))
        monkeypatch.setitem(comet.ROWS, "cpu", 64)
        monkeypatch.setattr(comet, "TOKENS", tokens)
        model.encoder.model.register_forward_pre_hook(partial(note_pass, passes), with_kwargs=True)
        whole = dict(comet.unpadded_scores(model, asked))
        assert whole == pytest.approx(one_row, abs=1.5e-6)
        for size in (1, 7, 65):
            some = draws.sample(asked, size)
            assert dict(comet.unpadded_scores(model, some)) == {segment: whole[segment] for segment in some}
        shapes = dict(map(reversed, passes))
        assert set(passes) == {(rows, length) for length, rows in shapes.items()}  # one for each length
        assert (set(shapes.values()) == {64}) == (tokens > 10_000)

    def test_a_killed_job_keeps_finished_chunks(self, comet_folder, company, tmp_path, monkeypatch):
        whole = scores(comet_folder, company)
        monkeypatch.setitem(comet.CHUNK, "cpu", 20)
        real, chunks = comet._score_embedded, []

        def breaking(model, segments, rows):
            chunks.append(segments)
            if len(chunks) == 3:
                raise KeyboardInterrupt
            return real(model, segments, rows)

        monkeypatch.setattr(comet, "_score_embedded", breaking)
        with pytest.raises(KeyboardInterrupt), Store(tmp_path) as store:
            scores(comet_folder, company, store)
        with Store(tmp_path) as store:
            assert len(store) == 40
            assert scores(comet_folder, company, store) == whole
        assert sum(map(len, chunks)) == len(set(company)) + 20  # only the broken chunk was scored twice


def test_signature(comet_folder):
    signature = ready(comet_folder).signature
    assert signature.startswith("comet:2.2.7|model:toy|digest:")
    assert signature.endswith("|precision:fp32|device:cpu|batch:1")
    assert ready(comet_folder).digest[:16] in signature
    own = comet_folder / comet_checkpoint.CHECKPOINT
    assert f"model:{comet_folder.name}|" in ready(own, name=str(own)).signature


class TestOtherClasses:
    """CometKiwi's classes and XCOMET, with references and without."""

    def test_without_references_no_score_depends_on_them(self, other_folders, segments, tmp_path, monkeypatch):
        others = [(source, hypothesis, "another reference") for source, hypothesis, _ in segments]
        with Store(tmp_path) as store:
            first = scores(other_folders["kiwi"], segments, store, reference_free=True)
            monkeypatch.setattr(comet, "load", lambda *_: pytest.fail("loaded the model"))
            assert scores(other_folders["kiwi"], others, store, reference_free=True) == first

    def test_with_and_without_references_are_two_metrics(self, other_folders, segments):
        both = [ready(other_folders["xcomet"], reference_free=free) for free in (True, False)]
        assert both[0].signature == both[1].signature + "|references:no"
        one, other = (metric.segment_scores(*zip(*segments, strict=True)) for metric in both)
        assert one != other

    @pytest.mark.parametrize("kind", ["referenceless", "kiwi"])
    def test_a_reference_free_checkpoint_must_be_named_so(self, other_folders, kind):
        with pytest.raises(InputError, match=r"reads no reference.*`reference_free: true`"):
            ready(other_folders[kind])

    def test_a_checkpoint_that_needs_references_is_refused_as_reference_free(self, other_folders, comet_folder):
        for folder in (other_folders["needs_reference"], comet_folder):
            with pytest.raises(InputError, match=r"cannot score without a reference.*Remove `reference_free`"):
                ready(folder, reference_free=True)

    def test_a_class_that_scores_no_translation_is_refused(self, comet_folder, tmp_path):
        folder = copy(comet_folder, tmp_path)
        text = (folder / comet_checkpoint.HPARAMS).read_text().replace("regression_metric", "ranking_metric")
        (folder / comet_checkpoint.HPARAMS).write_text(text)
        with pytest.raises(InputError, match=r"its class is 'ranking_metric'.*regression_metric, referenceless"):
            ready(folder)


class TestBadCheckpoints:
    def test_absent(self, tmp_path):
        for place in (tmp_path, "Unbabel/wmt22-comet-da"):
            with pytest.raises(InputError, match=r"not a COMET checkpoint.*hf download Unbabel/wmt22-comet-da.*\.ckpt"):
                ready(place)

    @pytest.mark.parametrize(
        "text", ["class_identifier: [", "- a list\n", "\0", "!!python/name:os.system", "", b"\xff"]
    )
    def test_broken_hparams(self, comet_folder, tmp_path, text):
        path = copy(comet_folder, tmp_path) / comet_checkpoint.HPARAMS
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(InputError, match=rf"{path}: .*\. Copy the whole checkpoint again"):
            ready(path.parent)
        with pytest.raises(InputError, match=rf"{path}: .*\. Copy the whole checkpoint again"):
            comet.load(path.parent)

    def test_a_pickle_that_would_run_code(self, comet_folder, tmp_path):
        path = copy(comet_folder, tmp_path) / comet_checkpoint.CHECKPOINT
        torch.save({**torch.load(path), "more": Hostile(tmp_path / "made")}, path)
        with pytest.raises(InputError, match=r"is not a COMET checkpoint that can be read .*Weights only"):
            comet.load(path)
        assert not (tmp_path / "made").exists()

    def test_not_whole(self, comet_folder, tmp_path):
        path = copy(comet_folder, tmp_path) / comet_checkpoint.CHECKPOINT
        path.write_bytes(path.read_bytes()[:-5000])
        with pytest.raises(InputError, match="is not a COMET checkpoint that can be read"):
            comet.load(path)
        (path.parents[1] / comet_checkpoint.HPARAMS).unlink()
        with pytest.raises(InputError, match=r"hparams\.yaml: is not a YAML file"):
            comet.load(path.parents[1])

    def test_without_its_encoder(self, comet_folder, tmp_path, monkeypatch):
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        folder = copy(comet_folder, tmp_path)
        shutil.rmtree(folder / "encoder")
        with pytest.raises(InputError, match=r"is not a COMET checkpoint that can be read.*xlm-roberta-large"):
            comet.load(folder)

    def test_missing_tensors(self, comet_folder, tmp_path):
        path = copy(comet_folder, tmp_path) / comet_checkpoint.CHECKPOINT
        checkpoint = torch.load(path)
        del checkpoint["state_dict"]["estimator.ff.0.weight"]
        torch.save(checkpoint, path)
        with pytest.raises(InputError, match=r"1 tensors are missing, estimator\.ff\.0\.weight first"):
            comet.load(path)


# --- Downloads of COMET checkpoints: a folder for each, pinned and checked.

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


def test_a_download_is_of_one_commit_and_scores(fetch, released, tmp_path, monkeypatch, segments):
    moved_on = {**released, str(CHECKPOINT): released[str(CHECKPOINT)][:-1] + b"x"}
    with serve({OLD: released, NEW: moved_on}) as server:
        monkeypatch.setitem(comet_checkpoint.PINNED, MODEL, OLD)
        folder = fetch(server)
    found = files.read_json(tmp_path / "model.json")
    assert found["revision"] == found["encoder_revision"] == OLD
    assert found["digest"] == files.file_digest(folder / CHECKPOINT)
    assert ready(folder, MODEL).segment_scores(*zip(*segments[:2], strict=True))


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
    files.write_json(tmp_path / HPARAMS, {"class_identifier": "regression_metric", "pretrained_model": named})
    with pytest.raises(InputError, match=r"hparams.yaml: `pretrained_model` is .*, not the name of an encoder on the"):
        comet_checkpoint.encoder_of(tmp_path)
