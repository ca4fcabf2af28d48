"""The pages of sentences: which systems are on them, and from which files."""

import json
import re

import pytest

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.experiment.config import base_files, load_files
from entropy_valley.experiment.tables import pages

PLACE = ("en-zh", "grammar")


@pytest.fixture(scope="module")
def demo():
    """The three backbones of demo-full and its autoregressive one, without its studies."""
    full = load_files([*base_files(), "config/demo-full.yaml"])
    return full.model_copy(update={"tables": full.tables.model_copy(update={"studies": []})})


def systems(experiment, place):
    return [(cell.run.backbone, cell.run.seed, cell.system) for cell in pages.cells(experiment)[place]]


def test_the_config_names_other_systems(demo):
    asked = demo.pages.model_copy(update={"methods": ["ev", "ratio"], "backbones": ["dream-tiny"]})
    shown = systems(demo.model_copy(update={"pages": asked}), ("en-de", "grammar"))
    assert shown == [("dream-tiny", 1, "ev/med-T32"), ("dream-tiny", 1, "ratio/med-T32")]


def test_a_page_reads_the_sets_of_its_systems(demo):
    read = pages.inputs(demo, PLACE)
    assert read[0] == "results/demo-full/corpus/en-zh/test/grammar.jsonl"
    assert "results/demo-full/en-zh/llama3-tiny/seed1/autoregressive/translations.jsonl" in read
    assert "results/demo-full/en-zh/dream-tiny/seed1/matrix/scores.json" in read
    assert len(read) == 1 + 4 * (3 + 1)
    with pytest.raises(InputError, match=r"page en-zh\.dev: the config has no such results\. There is en-zh\.grammar"):
        pages.inputs(demo, ("en-zh", "dev"))


def test_texts_are_data_within_a_page(run):
    """What would end the script or the template stays a text."""
    path = run.root / "corpus/en-zh/test/grammar.jsonl"
    first, *rows = files.read_jsonl(path)
    run.replace(path, [{**first, "target": "</script>{{ title }}"}, *rows])
    out = run.make_page(PLACE)
    data = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text("utf-8"), re.DOTALL)[1])
    assert data["sentences"][0][2] == "</script>{{ title }}"
