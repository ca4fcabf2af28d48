"""The tiny models as they come with the package: whole, small, and what the command in their records makes."""

import copy
import functools
import itertools
import json
import os
import re
from pathlib import Path

import pytest

from entropy_valley import Translator, files, tiny
from entropy_valley.data import build
from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files, methods, params
from entropy_valley.experiment.demo import grammar, pretraining
from entropy_valley.experiment.demo.grammar import SOURCES
from entropy_valley.model import checkpoint
from entropy_valley.shipped import GRAMMAR, HUMAN, newcomer_sentences

CONFIGS = {GRAMMAR: "config/findings.yaml", HUMAN: HUMAN.config}
SENTENCES = {
    "en-de": ("Delete the message.", "Löschen Sie die Nachricht."),
    "en-zh": ("Delete the message.", "删除消息。"),
    "zh-en": ("删除消息。", "Delete the message."),
}
TESTED = 200 if os.environ.get("ENTROPY_VALLEY_NIGHTLY") else 10  # test sentences of a direction; the demo has 200


@pytest.fixture(scope="module", params=CONFIGS, ids=lambda model: model.name)
def model(request):
    return request.param


@pytest.fixture(scope="module")
def experiment(model):
    return load_files([*base_files(), CONFIGS[model]], tables.problems)


def test_its_settings_are_those_of_the_config(model, experiment):
    """If not, `make ship`."""
    made, spec = (
        checkpoint.read_origin(model.checkpoint)["spec"],
        json.loads(params.pretraining(experiment, "llada-tiny", 1)),
    )
    # A job's spec lacks `made_from` today; where a checkpoint has it, it is compared.
    assert {"made_from": spec["made_from"], **made} == spec
    for direction, ratios in model.ratios.items():
        assert ratios == methods.method_settings(experiment, "ev", direction)["ratios"]


def test_its_files_are_those_that_were_made_together(model):
    assert checkpoint.checkpoint_digest(model.checkpoint) == model.origin["digest"]
    for direction in SENTENCES:
        assert files.read_json(model.adapter(direction) / "adapter.json")["backbone_digest"] == model.origin["digest"]
    assert sum(path.stat().st_size for path in model.checkpoint.glob("*.safetensors")) < 8e6


@pytest.fixture
def drawn_once(monkeypatch):
    """The grammar's sentences are drawn once for all directions and splits."""
    drawn = functools.cache(lambda seed, draw=grammar.stream: itertools.tee(draw(seed), 1)[0])
    monkeypatch.setattr(grammar, "stream", lambda seed: copy.copy(drawn(seed)))


@pytest.mark.usefixtures("drawn_once")
def test_the_first_losses_of_its_pretraining_come_out_again(model, experiment, tmp_path):
    """On any CPU, the first within 1e-4 of itself. Five steps later, float32 sums in another order are some 1e-6 apart,
    and products of bfloat16 factors 2e-3."""
    made = checkpoint.read_origin(model.checkpoint)
    if model is HUMAN and not all(Path("data", name).exists() for name in ("tatoeba", "libreoffice")):
        pytest.skip("its sentences are not in the folder data")
    paths = {"train": {}, "dev": {}}
    for direction in made["spec"]["prompts"]:
        pairs = build.corpus(json.loads(params.corpus(experiment, direction)), SOURCES)
        for split, rows in zip(paths, pairs, strict=False):
            paths[split][direction] = tmp_path / f"{direction}.{split}.jsonl"
            files.write_jsonl(paths[split][direction], rows)
    folders = dict.fromkeys(("out", "work", "logs"), tmp_path)
    job = pretraining.PretrainingJob(made["spec"], paths["train"], paths["dev"], **folders, checkpoint_every=1)
    assert job.data == made["data"]
    losses, apart = model.origin["first_losses"], 2e-3 if made["spec"]["pretraining"].get("precision") else 1e-4
    assert pretraining.first_losses(job, len(losses)) == pytest.approx(losses, rel=apart)


def test_the_page_has_its_translations_as_they_come():
    """If not, `python .ci/ship.py llada-tiny-human page docs/translate.md`."""
    table = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", Path("docs/translate.md").read_text(encoding="utf-8"), re.M)
    sources, *columns = zip(*table[1:][:TESTED], strict=True)
    assert table[0] == ("English", "German", "Chinese") and [*sources] == newcomer_sentences("en")[:TESTED]
    for direction, expected in zip(("en-de", "en-zh"), columns, strict=True):
        translations = Translator.load(**tiny(direction)).translate(sources)
        assert [one.text for one in translations] == [*expected]


@pytest.mark.parametrize("direction", SENTENCES)
def test_it_translates_at_once(direction):
    source, expected = SENTENCES[direction]
    (translation,) = Translator.load(**GRAMMAR.arguments(direction)).translate([source])
    assert translation.text == expected


def test_a_direction_that_it_does_not_know():
    with pytest.raises(InputError, match="LLaDA-tiny has no adapter for 'de-fr'"):
        tiny("de-fr")
