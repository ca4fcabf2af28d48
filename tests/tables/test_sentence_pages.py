"""The pages of sentences: which systems are on them, from which files; and data within a page."""

from __future__ import annotations

import json
import re

import fake_pages
import pytest
from fake_sets import put
from run_rule import run_here

from entropy_valley.config import base_files, load_files
from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, record_of
from entropy_valley.tables import pages

PAIRS = [("Take 5, Anna.", "拿五个。"), ("</script>{{ title }}#NAME#", "")]
OUTPUTS = {"ratio": [("拿", 0.5), ("", 0.1)], "ev": [("拿五个。", 0.9), ("#NAME#", 0.2)]}


@pytest.fixture(scope="module")
def demo():
    """The three backbones of demo-full and its autoregressive one, without its studies."""
    full = load_files([*base_files(), "config/demo-full.yaml"])
    return full.model_copy(update={"tables": full.tables.model_copy(update={"studies": []})})


def systems(experiment, place):
    return [(cell.run.backbone, cell.run.seed, cell.system) for cell in pages.cells(experiment)[place]]


def test_a_page_has_the_first_run_of_each_backbone_with_the_methods_of_the_matrix(demo):
    assert list(pages.cells(demo)) == [(name, "grammar") for name in ("en-zh", "zh-en", "en-de")]
    methods = [f"{method}/med-T32" for method in demo.matrix.methods]
    masked = [(name, 1, method) for name in ("llada-tiny", "dream-tiny", "diffullama-tiny") for method in methods]
    assert systems(demo, ("en-zh", "grammar")) == [*masked, ("llama3-tiny", 1, "beam4")]


def test_the_config_names_other_systems(demo):
    asked = demo.pages.model_copy(update={"methods": ["ev", "ratio"], "backbones": ["dream-tiny"]})
    shown = systems(demo.model_copy(update={"pages": asked}), ("en-de", "grammar"))
    assert shown == [("dream-tiny", 1, "ev/med-T32"), ("dream-tiny", 1, "ratio/med-T32")]


def test_a_page_reads_the_sets_of_its_systems(demo):
    read = pages.inputs(demo, ("en-zh", "grammar"))
    assert read[0] == "results/demo-full/corpus/en-zh/test/grammar.jsonl"
    assert "results/demo-full/en-zh/llama3-tiny/seed1/autoregressive/translations.jsonl" in read
    assert "results/demo-full/en-zh/dream-tiny/seed1/matrix/scores.json" in read
    assert len(read) == 1 + 4 * (3 + 1)
    with pytest.raises(
        InputError, match=r"the page en-zh\.dev: the config has no such results\. There is en-zh\.grammar"
    ):
        pages.inputs(demo, ("en-zh", "dev"))


def test_the_script_writes_the_page_and_what_it_was_made_from(tmp_path):
    out = tmp_path / "pages/en-zh.test.html"
    how = {"root": str(tmp_path), "here": str(tmp_path)}
    run_here("page", fake_pages.params(tmp_path, PAIRS, OUTPUTS), output=out, how=how)
    data = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text("utf-8"), re.S)[1])
    assert data["systems"][-1] == ["Beam", "llama3-tiny", "beam4", False]
    name, source, target, categories, items, (_, ev, beam) = data["sentences"][0]
    assert (name, source, target) == ("test-0", *PAIRS[0])
    assert [data["categories"][place] for place in categories] == ["named entities", "numbers"]
    assert dict(zip(data["kinds"], items, strict=True)) == {"placeholder": [], "number": ["5"], "entity": ["Anna"]}
    assert ev == ["拿五个。", 6, [0.9, 90.0], [5, 6, 8], [0.5, 0.25, 0.75]]  # candidates in order
    assert beam[1:] == [6, [0.5, 50.0]]
    assert str(tmp_path / "test.jsonl") in record_of(out).inputs


def test_outputs_of_other_sentences_are_refused(tmp_path):
    params = fake_pages.write(tmp_path, PAIRS, OUTPUTS)
    put(params.cells[0], SCORES, params.cells[0].segments()[:1])
    with pytest.raises(InputError, match=r"scores\.jsonl: test ratio med-T8: not the sentences of .*such as 'test-1'"):
        pages.write_sentences(tmp_path / "page.html", params)
