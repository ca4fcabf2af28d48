from __future__ import annotations

import fake_results
import pytest
from fake_sets import put

from entropy_valley.errors import InputError
from entropy_valley.results import SCORES, TRANSLATIONS
from entropy_valley.stats.cells import Params
from entropy_valley.stats.signatures import provenance

METRICS = fake_results.METRICS[:2]


@pytest.fixture
def cells(params):
    return Params(params).cells


def test_facts(cells):
    facts = provenance(cells, METRICS)
    assert [fact.subject for fact in facts] == [
        "toy COMET",
        "sacreBLEU",
        "sacreBLEU",
        "decoder",
        "data",
        "backbones",
        "logits",
        "adapters",
    ]
    chinese = next(fact for fact in facts if "tok:zh" in fact.signature)
    assert chinese.directions == ("en-zh",)
    assert facts[-1].signature.startswith("12|")
    assert facts[3].signature == "engine r1|med|T8|float32|llada"
    assert facts[-2].signature == "llada-tiny:unshifted|dream-tiny:shifted"


@pytest.mark.parametrize("key", ["decoder", "data_digest", "backbone_digest", "shifted", "adapter_digest"])
def test_cells_decoded_differently_do_not_share_a_table(cells, key):
    put(cells[1], TRANSLATIONS, signature=cells[1].decoding()["signature"] | {key: "other"})
    with pytest.raises(InputError, match=rf"signature\.{key} is other, but that of"):
        provenance(cells, METRICS)


def test_an_adapter_does_not_count_as_two_runs(cells):
    one, other = (next(cell for cell in cells if cell.seed == seed) for seed in (1, 2))
    for cell in [cell for cell in cells if cell.path == other.path]:
        put(cell, TRANSLATIONS, signature=one.decoding()["signature"])
    with pytest.raises(InputError, match=r"seed2/.*: has the same adapter as .*/seed1/"):
        provenance(cells, METRICS)


@pytest.mark.parametrize("metric", ["comet22", "bleu"])
def test_cells_scored_differently_do_not_share_a_table(cells, metric):
    put(cells[1], SCORES, signatures=cells[1].scores()["signatures"] | {metric: "other"})
    with pytest.raises(InputError, match=next(one.label for one in METRICS if one.name == metric)):
        provenance(cells, METRICS)


def test_autoregressive_cells_have_a_decoder_of_their_own(matched):
    facts = provenance(Params(matched).cells, METRICS)
    assert [fact.signature for fact in facts if fact.subject == "decoder"] == [
        "engine r1|med|T8|float32|llada",
        "transformers 4.57.6|beam4|lp1|float32|max64",
    ]
    assert facts[-2].signature == "llada-tiny:unshifted|llama3-tiny:shifted"
    assert facts[-1].signature.startswith("15|")


def test_a_backbone_may_have_a_tokenizer_of_its_own(cells):
    dream = [cell for cell in cells if (cell.backbone, cell.direction) == ("dream-tiny", "zh-en")]
    for cell in dream:
        put(cell, SCORES, signatures=cell.scores()["signatures"] | {"bleu": "tok:zh"})
    facts = {(fact.signature, fact.backbones): fact.directions for fact in provenance(cells, METRICS[1:])}
    assert facts["tok:zh", ("dream-tiny",)] == ("zh-en",)
    assert [directions for (_, backbones), directions in facts.items() if backbones == ("llada-tiny",)] == [("zh-en",)]
    put(dream[0], SCORES, signatures=dream[0].scores()["signatures"] | {"bleu": "tok:char"})
    with pytest.raises(InputError, match="the signature of sacreBLEU"):
        provenance(cells, METRICS)


def test_a_backbone_as_it_is_has_no_adapter_to_count(cells):
    for cell in cells[:3]:
        put(cell, TRANSLATIONS, signature=cell.decoding()["signature"] | {"adapter_digest": None})
    assert provenance(cells, METRICS)[-1].signature.startswith("11|")


def test_a_missing_signature_is_an_error(cells):
    put(cells[0], SCORES, signatures=None)
    with pytest.raises(InputError, match=r"no signatures\.comet22"):
        provenance(cells, METRICS)
