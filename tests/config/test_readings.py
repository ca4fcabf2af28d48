"""What a reading of the paper puts into the params of jobs: a former default is left out, so that old results stay."""

from __future__ import annotations

import json

import pytest

from entropy_valley.config import matrix, params, paths
from entropy_valley.config.matrix import CellSet
from entropy_valley.errors import InputError
from entropy_valley.tables.base import shared_params
from entropy_valley.tables.categories import Categories
from entropy_valley.tables.full_significance import Significance

RUN = matrix.Run("en-zh", "llada-8b", 1)
GIVEN = {"name": "json_lines", "folder": "data", "files": {"en-zh": {"train": "t.jsonl", "dev": "d.jsonl"}}}


def values(text):
    return json.loads(text)


def translation(experiment, run, *methods):
    """The params of a set with these methods' cells."""
    cells = (matrix.Cell(run, "wmt22", method, "med", 32) for method in methods or ("ev", "ratio"))
    return values(params.translation(experiment, CellSet(run, "mine", tuple(cells))))


def latency(experiment, run):
    return values(params.latency(experiment, matrix.Cell(run, "wmt22", "ev", "med", 32)))


def diagnostics(experiment, run):
    return values(params.diagnostics(experiment, run))


def without_ancestry(spec):
    return {key: value for key, value in spec.items() if key != "made_from"}


@pytest.mark.parametrize(
    ("over", "name", "expected"),
    [
        ({}, "wmt22", {"limit": None}),
        ({}, "wmt22-500", {"limit": 500, "subset": "first"}),
        ({"corpus": {"subset": "keyed_hash"}}, "wmt22-500", {"limit": 500, "subset": "keyed_hash"}),
        ({}, "wmt22-challenge", {"limit": None, "challenge": 400, "challenge_reading": "first"}),
        (
            {"corpus": {"challenge": "stratified"}},
            "wmt22-challenge",
            {"limit": None, "challenge": 400, "challenge_reading": "stratified"},
        ),
        ({"sources": {"mine": {"name": "embedded", "limit": 20}}}, "mine", {"limit": 20}),  # it has no end to draw from
    ],
)
def test_which_sentences_a_test_set_takes(load, over, name, expected):
    spec = values(params.testset(load(over), "en-zh", name))
    assert {key: spec[key] for key in spec.keys() - {"direction", "revision", "seed", "source"}} == expected


def test_the_valley_has_the_sentences_of_a_subset(load):
    assert diagnostics(load({}), RUN)["valley"]["subset"] == "first"
    assert diagnostics(load({"corpus": {"subset": "keyed_hash"}}), RUN)["valley"]["subset"] == "keyed_hash"


def test_how_training_pairs_are_drawn(load):
    assert values(params.corpus(load({}), "en-zh"))["sampling"] == "keyed_hash"
    theirs = load({"corpus": {"sampling": {"en-zh": "shuffle", "en-de": "shuffle_rows"}}})
    found = {
        direction: values(params.corpus(theirs, direction)).get("sampling") for direction in theirs.matrix.directions
    }
    assert found == {"en-zh": "shuffle", "zh-en": "keyed_hash", "en-de": "shuffle_rows"}


def test_nothing_is_drawn_or_filtered_of_given_files(load):
    given = {"sources": {"mine": GIVEN}, "directions": {"zh-en": {"train": "mine"}}, "corpus": {"sampling": "shuffle"}}
    spec = values(params.corpus(load(given), "zh-en"))
    assert spec["filters"] == {} and "sampling" not in spec
    assert spec["source"] == {**GIVEN, "rows": {}, "keys": {}}


def test_the_statistics_of_tables(load):
    theirs = {"generator": "random_state", "wilcoxon_zeros": "wilcox", "cohen": "population"}
    assert not shared_params(load({}), []).items() & theirs.items()
    assert shared_params(load({"analysis": theirs}), []).items() >= theirs.items()


def test_a_caption_says_what_became_of_zeros(load):
    captions = [Significance().described(load({"analysis": {"wilcoxon_zeros": one}})) for one in ("pratt", "wilcox")]
    assert ["Pratt" in caption for caption in captions] == [True, False] and "without zeros" in captions[1]


def test_the_table_of_categories_has_those_of_the_subset(load):
    experiment = load({})
    report = Categories("categories", "negative_order")
    assert report.extra(experiment, report.cells(experiment))["challenge"] == "first"


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ({"sources": {"wmt22": {**GIVEN, "limit": None}}}, "has no test file of en-zh; name it under `files`"),
        (
            {"directions": {"en-de": {"train": "mine"}}, "sources": {"mine": GIVEN}},
            "has no train and no dev file of en-de",
        ),
    ],
)
def test_files_that_nobody_named(load, over, problem):
    with pytest.raises(InputError, match=problem):
        load(over)


def test_the_authors_categories_need_an_english_side(load):
    files = {"name": "files", "source": "a.de", "target": "a.fr"}
    direction = {"prompt": "French: {src}", "train": "mine", "tests": ["hard"]}
    over = {
        "matrix": {"directions": ["de-fr"]},
        "tables": {"studies": []},
        "instruct": {"backbones": []},
        "sources": {"mine": files, "hard": files | {"challenge": 5}},
        "directions": {"de-fr": direction},
        "length_methods": {"ratio": {"ratios": {"de-fr": 1.0}}, "ev": {"ratios": {"de-fr": [1.0]}}},
    }
    with pytest.raises(InputError, match=r"sources.hard.challenge = 5: the rules are for English"):
        load(over)
    assert load(over | {"corpus": {"challenge": "stratified"}}).sources["hard"].challenge == 5


FLOORS = {"variant_of": "llada-8b", "label": "by floors", "adapter_of": "llada-8b"}
OWN = {"schedule": "floors", "mask_token": "may_be_revealed", "exact_products": False}


def test_a_backbone_decodes_by_readings_of_its_own(load):
    """As under the same keys of the whole config, with another backbone's adapter; others are left as they are."""
    own = load({"backbones": {"mine": {**FLOORS, "decoding": OWN}}})
    whole, mine, plain = load({"decoding": OWN}), matrix.Run("en-zh", "mine", 1), load({})
    for made in (translation, latency):
        assert made(own, mine) == made(whole, RUN) | {"backbone": "mine"}
        assert made(own, RUN) == made(plain, RUN) != made(whole, RUN)
    assert paths.adapter_run(own, mine) == RUN == paths.adapter_run(own, RUN)


def test_the_bleu_of_a_backbone_goes_before_that_of_all(load):
    own = load({"backbones": {"llada-8b": {"bleu": {"tokenize": "zh"}}}, "scoring": {"bleu": {"tokenize": "char"}}})
    runs = (matrix.Run("en-de", name, 1) for name in ("llada-8b", "dream-7b"))
    cells = (matrix.Cell(run, "wmt22", "ev", "med", 32) for run in runs)
    specs = [values(params.scores(own, CellSet(cell.run, "mine", (cell,)))) for cell in cells]
    assert [spec["bleu"] for spec in specs] == [{"tokenize": "zh"}, {"tokenize": "char"}]


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        ({"targets": "by_name"}, {"lora": {"targets": "by_name"}}),
        ({"weight": "none", "normaliser": "micro_batch"}, {"loss": {"weight": "none", "normaliser": "micro_batch"}}),
        (
            {"antithetic": False, "at_least_one": False},
            {"loss": {"antithetic": False, "at_least_one": False}},
        ),
        ({"padding_read": True}, {"loss": {"padding_read": True}}),
        ({"keep_every": 500, "betas": [0.9, 0.999]}, {"keep_every": 500, "betas": [0.9, 0.999]}),
    ],
)
def test_a_backbone_is_trained_by_readings_of_its_own(load, own, whole):
    variant = {"variant_of": "llada-8b", "label": "mine", "training": own}
    found = params.training(load({"backbones": {"mine": variant}}), matrix.Run("en-zh", "mine", 1))
    assert values(found) == values(params.training(load({"training": whole}), RUN)) | {"backbone": "mine"}


def test_the_attention_is_a_param_of_all_that_runs_the_model(load):
    """And of a given adapter; what the checkpoint's own attention computes has the params of before."""
    variant = {"variant_of": "llada-8b", "label": "mine", "attention": "prefix"}
    given = {name: {"en-zh": {1: {"folder": "given"}}} for name in ("mine", "llada-8b")}
    experiment, mine = load({"backbones": {"mine": variant}, "released": given}), matrix.Run("en-zh", "mine", 1)
    fits = (translation(experiment, run, "length_head")["fits"]["length_head"] for run in (mine, RUN))
    specs = [fits, *((made(experiment, run) for run in (mine, RUN)) for made in (translation, latency))]
    specs += [map(values, (made(experiment, run) for run in (mine, RUN))) for made in (params.training, params.adapter)]
    for ours, usual in (map(without_ancestry, pair) for pair in specs):
        assert ours == usual | {"backbone": "mine", "attention": "prefix"}


def test_a_prompt_cache_is_a_param_of_the_jobs_that_choose_or_fill_canvases(load):
    """A backbone's own goes before that of all; one that is renewed in each pass is none."""
    own = {"rare": "never", "mine": 4, "exact": 1}
    blocks = {name: FLOORS | {"decoding": {"prompt_cache": {"refresh": refresh}}} for name, refresh in own.items()}
    experiment = load({"backbones": blocks, "decoding": {"prompt_cache": {"refresh": 2}}})
    plain, runs = load({}), {name: matrix.Run("en-zh", name, 1) for name in own}
    for made in (translation, latency):
        usual = made(plain, RUN)
        assert made(experiment, RUN) == usual | {"prompt_cache": 2}
        assert made(experiment, runs["mine"]) == usual | {"backbone": "mine", "prompt_cache": 4}
        assert made(experiment, runs["rare"]) == usual | {"backbone": "rare", "prompt_cache": "never"}
        assert made(experiment, runs["exact"]) == usual | {"backbone": "exact", "prompt_cache": 1}
    prefix = experiment.backbones["llada-8b"].model_copy(update={"attention": "prefix"})
    known = experiment.model_copy(update={"backbones": {**experiment.backbones, "llada-8b": prefix}})
    assert translation(known, RUN)["prompt_cache"] == 1  # exact
    fitted = [translation(one, RUN, "length_head", "ev_line")["fits"] for one in (experiment, plain)]
    assert fitted[0] == fitted[1] and len(fitted[0]) == 2
    assert diagnostics(experiment, RUN) == diagnostics(plain, RUN)
    assert params.training(experiment, RUN) == params.training(plain, RUN)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"adapter_of": "nobody"}, "'nobody' is not defined"),
        ({"adapter_of": "dream-instruct-zero-shot"}, "has no adapters of its own"),
        ({"adapter_of": "dream-7b"}, "has another checkpoint"),
        ({"training": {"keep_every": 500}}, "is trained otherwise"),
        ({"attention": "prefix"}, "is trained with attention bidirectional; remove this key, or `attention`"),
    ],
)
def test_adapters_that_a_backbone_cannot_have(load, keys, problem):
    with pytest.raises(InputError, match=rf"backbones.mine.adapter_of = .*: {problem}"):
        load({"backbones": {"mine": FLOORS | keys}})


def test_a_given_adapter_is_that_of_the_backbone_that_has_it(load):
    given = {"adapters": "released", "released": {"llada-8b": {"en-zh": {1: {"folder": "given"}}}}}
    few = {"matrix": {"backbones": ["llada-8b"], "directions": ["en-zh"], "seeds": [1]}}
    off = {"autoregressive": {"backbones": []}, "instruct": {"backbones": []}}
    study = {"layout": "readings", "backbones": ["llada-8b", "mine"], "methods": ["oracle", "ratio", "ev"]}
    mine = {"backbones": {"mine": FLOORS}, "studies": {"mine": study}, "tables": {"studies": ["mine"]}}
    assert load({**given, **few, **off, **mine})


def test_an_order_by_a_gold_alignment_needs_one(load):
    study = {"layout": "orders", "directions": ["en-zh"], "methods": ["oracle"], "orders": ["med", "oracle_anchor"]}
    over = {"studies": {"mine": study}, "tables": {"studies": ["mine"]}}
    with pytest.raises(InputError, match=r"sources.wmt22.anchors is missing: the reveal order 'oracle_anchor' needs"):
        load(over)
    assert load({**over, "sources": {"wmt22": {"anchors": "mine.jsonl"}}}).sources["wmt22"].has_anchors
