"""Every mistake is named: the file that makes it, the key, the value, and what would be right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from entropy_valley.errors import InputError
from entropy_valley.experiment import load_files
from entropy_valley.experiment.params import corpora

ROOT = Path(__file__).parents[2]
EV = "length_methods.ev.ratios"


def variant(**keys):
    return {"backbones": {"mine": {"variant_of": "dream-7b", "label": "Mine", **keys}}}


def given(**keys):
    return {"released": {"llada-8b": {"en-zh": {1: keys}}}}


def another(**keys):
    return {"length_methods": {"ev_2": keys}}


def further(name="mine", **keys):
    return {"scoring": {"metrics": {name: {"label": "Mine", **keys}}}}


def mine(**keys):
    return {"studies": {"mine": keys}, "tables": {"studies": ["mine"]}}


def pretrained(**keys):
    size = {"vocabulary": 300, "width": 64, "layers": 1, "heads": 4, "kv_heads": 2, "ffn": 64, "context": 96}
    rates = {"learning_rate": 0.1, "warmup": 0.1, "weight_decay": 0, "all_mask_share": 0.5}
    return {"backbones": {"dream-7b": {"pretraining": {"seed": 1, "steps": 9, "batch": 8, **rates, **size, **keys}}}}


CASES = [
    (further(metric="comet", checkpoint="a/b", batch=1), "scoring.metrics.mine.batch = 1", "unknown key"),
    (further(metric="comet"), "scoring.metrics.mine.checkpoint is missing", "it is required"),
    (further(metric="bleu", tokenize="words"), "scoring.metrics.mine.tokenize = 'words'", "'13a'"),
    (further(metric="blue"), "scoring.metrics.mine", "metric 'blue': unknown. Did you mean bleu? Name one of bleu, "),
    (further(metric="nowhere:Mine"), "scoring.metrics.mine", "No module named 'nowhere'"),
    (further("comet22", metric="bleu"), "scoring.metrics.comet22", "this name is taken"),
    ({"tables": {"metrics": ["ter"]}}, "tables.metrics = ['ter']", "'ter' is no metric; there is comet22, bleu, chrf"),
    ({"trainig": {}}, "trainig", "unknown key; did you mean training?"),
    ({"training": {"other": 1}}, "training.other = 1", "unknown key; remove it or mend its spelling"),
    ({"training": {"lora": {"rnk": 1}}}, "training.lora.rnk = 1", "unknown key; did you mean rank?"),
    ({"sources": {"wmt22": {"foldr": "x"}}}, "sources.wmt22.foldr = 'x'", "unknown key"),
    ({"sources": {"wmt22": {"name": "wmt23"}}}, "sources.wmt22", "'wmt22'"),
    (
        {"length_methods": {"ratio": {"ratios": {"en-zh": 0}}}},
        "length_methods.ratio.ratios.en-zh = 0",
        "greater than 0",
    ),
    (another(selector="ratio", ratios=0), "length_methods.ev_2.ratios = 0", "greater than 0"),
    (another(selector="length_head", beam=40), "length_methods.ev_2.beam = 40", "less than or equal to 32"),
    ({"length_methods": {"ev": {"ratios": {"en-zh": [0.8, -1]}}}}, f"{EV}.en-zh.1 = -1", "greater than 0"),
    ({"length_methods": {"ev": {"ratios": {"en-zh": []}}}}, f"{EV}.en-zh = []", "at least 1 item"),
    ({"length_methods": {"ev": {"ratios": {"en-zh": [0.8, 0.8]}}}}, f"{EV}.en-zh = [0.8, 0.8]", "name each once"),
    (another(selector="ev", ratio=1), "length_methods.ev_2.ratio = 1", "unknown key"),
    (another(selector="ev", ratios={"en-zh": [0]}), "length_methods.ev_2.ratios.en-zh.0 = 0", "greater than 0"),
    (another(selector="ev", ratios={}, score="mode"), "length_methods.ev_2.score = 'mode'", "'mean', 'sum'"),
    (another(selector="evv"), "length_methods.ev_2.selector = 'evv'", "give module:Class, or one of oracle, ratio, ev"),
    (another(ratios={}), "length_methods.ev_2.selector is missing", "it is required"),
    ({"length_methods": {"cal": {"patience": 0}}}, "length_methods.cal.patience = 0", "greater than 0"),
    ({"length_statistics": {"pairs": 0}}, "length_statistics.pairs = 0", "greater than 0"),
    ({"matrix": {"seeds": [1, 2, 1]}}, "matrix.seeds = [1, 2, 1]", "repeats 1; name each once"),
    ({"matrix": {"seeds": []}}, "matrix.seeds = []", "at least 1 item"),
    ({"matrix": {"methods": [["ev"]]}}, "matrix.methods.0 = ['ev']", "valid string"),
    ({"matrix": {"orders": [["med"]]}}, "matrix.orders.0 = ['med']", "valid string"),
    ({"instruct": {"testset": ["wmt22"]}}, "instruct.testset = ['wmt22']", "valid string"),
    ({"corpus": {"filters": {"en": {"words": [9]}}}}, "corpus.filters.en.words", "it is required"),
    ({"matrix": {"seeds": ["one"]}}, "matrix.seeds.0 = 'one'", "valid integer"),
    (
        {"matrix": {"seeds_of": {"llama": [1]}}},
        "matrix.seeds_of.llama",
        "did you mean llama3-8b or llada-8b? ",
    ),
    ({"matrix": {"directions": ["en-fr"]}}, "matrix.directions", "'en-fr' is not defined; did you mean "),
    (
        {"matrix": {"backbones": ["llada-80b"]}},
        "matrix.backbones",
        "did you mean llada-8b, ",
    ),
    ({"matrix": {"methods": ["oracle", "evv"]}}, "matrix.methods", "`length_methods` has "),
    ({"tables": {"backbone": "dream-8b"}}, "tables.backbone = 'dream-8b'", "not among matrix.backbones"),
    ({"tables": {"steps": 16}}, "tables.steps = 16", "not among matrix.steps"),
    ({"directions": {"en-zh": {"prompt": "Translate: "}}}, "directions.en-zh.prompt = 'Translate: '", "{src}"),
    ({"directions": {"en-zh": {"prompt": "{src} {src}"}}}, "directions.en-zh.prompt", "exactly once"),
    ({"directions": {"en-zh": {"train": "wmt18"}}}, "directions.en-zh.train = 'wmt18'", "`sources` has"),
    ({"directions": {"en-zh": {"tests": ["wmt21"]}}}, "directions.en-zh.tests", "'wmt21' is not defined"),
    ({"training": {"epochs": None}}, "training", "give either `epochs` or `max_steps`"),
    ({"training": {"precision": "float16"}}, "training.precision = 'float16'", "'float32' or 'bfloat16'"),
    ({"training": {"lora": {"dropout": 1.5}}}, "training.lora.dropout = 1.5", "less than or equal to 1"),
    ({"backbones": {"llada-8b": {"hub": None}}}, "backbones.llada-8b", "needs one of `hub`, `folder`, `pretraining`"),
    ({"backbones": {"llada-8b": {"family": "bert"}}}, "backbones.llada-8b.family = 'bert'", "Name one of diffullama"),
    (
        {"backbones": {"llada-8b": {"family": "nowhere:X"}}},
        "backbones.llada-8b.family = 'nowhere:X'",
        "No module named",
    ),
    ({"backbones": {"llada-8b": {"chat": True}}}, "backbones.llada-8b.chat = True", "has no chat template"),
    (
        {"matrix": {"backbones": ["llada-8b", "llama3-8b"]}},
        "matrix.backbones",
        "name it under `autoregressive.backbones`",
    ),
    ({"autoregressive": {"backbones": ["dream-7b"]}}, "autoregressive.backbones", "no autoregressive one"),
    ({"autoregressive": {"backbones": ["llama4"]}}, "autoregressive.backbones", "'llama4' is not defined"),
    ({"instruct": {"direction": "en-fr"}}, "instruct.direction = 'en-fr'", "`directions` has de-fr, en-zh"),
    ({"sources": {"dev": {"name": "wmt22"}}}, "sources.dev", "the name of the development pairs"),
    ({"instruct": {"testset": "wmt99"}}, "instruct.testset = 'wmt99'", "did you mean wmt22? `sources` has"),
    ({"backbones": {"llama3-8b": {"shifted": False}}}, "backbones.llama3-8b.shifted = False", "predicts the next"),
    (
        {"backbones": {"llama3-8b": {"attention": "prefix"}}},
        "backbones.llama3-8b.attention = 'prefix'",
        "earlier tokens",
    ),
    (variant(attention="causal"), "backbones.mine.attention = 'causal'", "'bidirectional' or 'prefix'"),
    (
        variant(attention="prefix", decoding={"prompt_cache": {"refresh": 4}}),
        "backbones.mine.decoding.prompt_cache",
        "computes the prompt once and exactly; set {refresh: 1} here",
    ),
    (
        {"decoding": {"prompt_cache": {"refresh": 0}}},
        "decoding.prompt_cache.refresh = 0",
        "'never'",
    ),
    (variant(attention="prefix", zero_shot=True), "backbones.mine.attention = 'prefix'", "the bare checkpoint was"),
    ({"backbones": {"llama3-8b": {"eos_padding": 8}}}, "backbones.llama3-8b.eos_padding = 8", "trained on one EOS"),
    ({"backbones": {"llada-8b": {"eos_padding": -1}}}, "backbones.llada-8b.eos_padding", "greater than or equal to 0"),
    (
        {"matrix": {"methods": ["oracle", "ratio", "ev", "daedal"]}, "length_methods": {"daedal": {"start": 9}}},
        "length_methods.daedal",
        "either `ratios` or `start`",
    ),
    ({"backbones": {"llama3-8b": {"zero_shot": True}}}, "backbones.llama3-8b.zero_shot = True", "remove it"),
    ({"matrix": {"seeds_of": {"llama3-8b": [9]}}}, "matrix.seeds_of.llama3-8b = [9]", "no seed in common with llada"),
    ({"autoregressive": {"length_penalty": float("nan")}}, "autoregressive.length_penalty = nan", "finite"),
    (variant(variant_of=["a"]), "backbones.mine.variant_of = ['a']", "valid string"),
    (
        {"backbones": {"dream-7b": {"hub": {"repository": "GSAI-ML/LLaDA-8B-Base"}}}},
        "backbones.dream-7b.hub.repository = 'GSAI-ML/LLaDA-8B-Base'",
        "is of family llada, not dream",
    ),
    ({"backbones": {"dream-7b": {"hub": {"revision": "main"}}}}, "backbones.dream-7b.hub.revision = 'main'", "pattern"),
    (
        {"backbones": {"dream-7b": {"decoding_prompt_of": "en-fr"}}},
        "backbones.dream-7b.decoding_prompt_of = 'en-fr'",
        "en-fr is no direction; did you mean ",
    ),
    (variant(variant_of="mine"), "backbones.mine.variant_of = 'mine'", "is no other backbone"),
    (variant(variant_of="llama4"), "backbones.mine.variant_of = 'llama4'", "is no other backbone"),
    (variant(variant_of="dream-instruct-plain"), "backbones.mine.variant_of", "is a variant itself"),
    (variant(folder="a/copy"), "backbones.mine.folder = 'a/copy'", "a variant has the checkpoint of dream-7b"),
    (variant(family="llada"), "backbones.mine.family = 'llada'", "a variant has the checkpoint of dream-7b"),
    (
        {"adapters": "released", **given(folder="a"), "matrix": {"seeds": [1, 2]}},
        "released.llada-8b.en-zh",
        "no adapter for seed 2; give it, narrow `matrix`",
    ),
    (given(), "released.llada-8b.en-zh.1", "give either `folder` or `repository`"),
    (given(folder="a", repository="b/c"), "released.llada-8b.en-zh.1", "give either `folder` or `repository`"),
    ({"scoring": {"comet": {"checkpoint": None}}}, "scoring.comet", "give either `checkpoint` or `training`"),
    ({"matrix": {"orders": ["med", "sig"]}}, "matrix.orders", "'sig' is no reveal order; there is med"),
    ({"matrix": {"orders": ["med", "hybrid"]}}, "matrix.orders", "p: Field required"),
    ({"reveal_orders": {"mine": {"p": 0.5}}}, "reveal_orders.mine.order is missing", "it is required"),
    ({"reveal_orders": {"mine": {"order": "sig"}}}, "reveal_orders.mine.order = 'sig'", "module:Class, or one of med"),
    (
        {"reveal_orders": {"mine": {"order": "random", "sed": 1}}},
        "reveal_orders.mine.sed = 1",
        "unknown key",
    ),
    ({"reveal_orders": {"hybrid_50": {"p": 1.5}}}, "reveal_orders.hybrid_50.p = 1.5", "less than or equal to 1"),
    (
        {"reveal_orders": {"mine": {"order": "daedal", "block": 0}}},
        "reveal_orders.mine.block = 0",
        "greater than 0",
    ),
    ({"reveal_orders": {"med": {"order": "random"}}}, "reveal_orders.med", "give the block another one"),
    ({"matrix": {"methods": ["oracle", "ev"]}}, "matrix.methods", "the tables compare oracle, ratio and ev; add ratio"),
    ({"matrix": {"seeds_of": {"LLaDA": [1]}}}, "matrix.seeds_of.LLaDA", "in lower case"),
    ({"length_methods": {"ev": {"ratios": {"en_zh": [1]}}}}, f"{EV}.en_zh", "in lower case, with hyphens, like en-zh"),
    ({"length_methods": {"ev": {"ratios": {"en-zh": [float("inf")]}}}}, f"{EV}.en-zh.0 = inf", "finite"),
    ({"corpus": {"filters": {"en": {"words": [9, 5]}}}}, "corpus.filters.en.words", "the first limit is the lower one"),
    ({"device": "gpu"}, "device = 'gpu'", "'cpu' or 'cuda'"),
    (mine(methods=["ev"], against="zzz"), "studies.mine", "method 'zzz' is not defined; `length_methods` has "),
    (mine(), "studies.mine", "compares nothing; give `methods` or `others`"),
    ({"corpus": {"train": True}}, "corpus.train = True", "give a number"),
    ({"matrix": {"seeds": [True, 2]}}, "matrix.seeds.0 = True", "give a number"),
    ({"training": {"learning_rate": True}}, "training.learning_rate = True", "give a number"),
    ({"analysis": {"resamples": 1e12}}, "analysis.resamples = 1000000000000.0", "less than or equal to 1000000"),
    (pretrained(vocabulary=10), "pretraining.vocabulary = 10", "greater than or equal to 300"),
    (pretrained(heads=5), "backbones.dream-7b.pretraining", "`width` 64 / `heads` 5 is no even number"),
    (pretrained(heads=64), "backbones.dream-7b.pretraining", "`width` 64 / `heads` 64 is no even number"),
    (pretrained(kv_heads=3), "backbones.dream-7b.pretraining", "`kv_heads` 3 does not divide `heads` 4"),
    (
        {"scoring": {"comet": {"checkpoint": None, "training": {"seed": 1, "steps": 9, "heads": 7}}}},
        "scoring.comet.training",
        "`heads` 7 does not divide `width` 96",
    ),
    *(
        ({key: folder}, f"{key} = {folder!r}", problem)
        for key in ("results", "models")
        for folder, problem in {
            "r{brace}": "no braces",
            "two\nlines": "no braces, control characters",
            "space ": "spaces at its ends",
            "-x": "cannot begin with -",
            "~/r": "cannot begin with - or ~",
            "": "is or holds a folder of this repository",
            "/": "is or holds a folder of this repository",
            "./x/..": "is or holds a folder of this repository",
            "../..": "is or holds a folder of this repository",
            "src": "is or holds a folder of this repository",
            str(ROOT / "config/mine"): "is or holds a folder of this repository",
        }.items()
    ),
    ({"backbones": {"dream-7b": {"hub": {"repository": "a/b {c}"}}}}, "hub.repository = 'a/b {c}'", "pattern"),
    ({"sources": {"wmt19-zh-en": {"dataset": "../x"}}}, "sources.wmt19-zh-en.dataset = '../x'", "pattern"),
    ({"scoring": {"comet": {"checkpoint": "a {b}/c"}}}, "scoring.comet", "'a {b}/c' is neither owner/name on the hub"),
    ({"corpus": {"train": 0}}, "corpus.train = 0", "greater than 0"),
]


@pytest.mark.parametrize(("over", "key", "remedy"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_mistake_is_named(load, over, key, remedy):
    with pytest.raises(InputError) as caught:
        load(over)
    lines = [line for line in str(caught.value).splitlines() if key in line]
    assert lines, str(caught.value)
    assert any("mine.yaml: " in line and remedy in line for line in lines), lines


def test_a_direction_without_ratios_names_each_method(load):
    over = {
        "matrix": {"directions": ["en-fr"]},
        "directions": {"en-fr": {"prompt": "{src}", "train": "wmt22", "tests": ["wmt22"]}},
    }
    with pytest.raises(InputError) as caught:
        load(over)
    said = str(caught.value)
    for method in ("ratio", "ev"):
        problem = f"mine.yaml: length_methods.{method}.ratios.en-fr is missing: `matrix.directions` has en-fr"
        assert problem in said  # in the file that asks for the direction, not in that which has other ratios
    added = yaml.safe_load(said.partition("its own numbers:\n")[2].partition("docs/")[0])
    load(over | added)


def test_a_language_needs_no_length_limits(load):
    direction = {"prompt": "{src}", "train": "wmt22", "tests": ["wmt22"]}
    ratios = {"ratio": {"ratios": {"en-ja": 1.0}}, "ev": {"ratios": {"en-ja": [1.0]}}}
    over = {"matrix": {"directions": ["en-ja"]}, "directions": {"en-ja": direction}, "length_methods": ratios}
    spec = json.loads(corpora.corpus(load(over), "en-ja"))
    assert spec["filters"] == {"en": {"words": [5, 200]}, "ja": {}}


def test_all_mistakes_of_a_file_at_once(load):
    over = {
        "device": "gpu",
        "trainig": 1,
        "matrix": {"seeds": [1, 1]},
        "length_methods": {"ratio": {"ratios": {"en-de": -2}}},
        "backbones": {"llada-8b": {"family": "lada"}},
    }
    with pytest.raises(InputError) as caught:
        load(over)
    message = str(caught.value)
    assert "5 problems" in message
    for key in ("device", "trainig", "matrix.seeds", "length_methods.ratio.ratios.en-de", "backbones.llada-8b.family"):
        assert f"mine.yaml: {key}" in message


def test_the_file_at_fault_is_the_last_that_sets_the_key(load):
    with pytest.raises(InputError, match=r"demo\.yaml: tables\.backbone"):
        load({"matrix": {"backbones": ["dream-tiny"]}}, "config/demo.yaml")


def test_a_repeated_key_is_named_with_its_line(load, tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text("device: cpu\ncorpus:\n  train: 1\n  dev: 2\n  train: 3\n")
    for read in (lambda: load_files([path]), lambda: load({}, str(path))):
        with pytest.raises(InputError, match=r"twice\.yaml:5: key 'train' is there already, in line 3\. Keep one"):
            read()


def test_a_decimal_comma_is_named_with_its_line(tmp_path):
    path = tmp_path / "comma.yaml"
    path.write_text("length_methods:\n  ratio: {ratios: {en-zh: 1,05, en-de: 1.2}}\n")
    with pytest.raises(InputError, match=r"comma\.yaml:2: en-zh: 1,05 is 1 and a key 05 without a value\. Write 1\.05"):
        load_files([path])


def test_files_that_are_no_config(tmp_path):
    missing, broken, listed = tmp_path / "missing.yaml", tmp_path / "broken.yaml", tmp_path / "listed.yaml"
    broken.write_text("a: [1\n")
    listed.write_text("- a\n")
    for path, problem in ((missing, "file not found"), (broken, "not YAML"), (listed, "holds no mapping")):
        with pytest.raises(InputError, match=problem) as caught:
            load_files([path])
        assert caught.value.place == str(path)


@pytest.mark.parametrize(
    ("of", "methods"),
    [("daedal_own", ["oracle", "ratio", "ev", "dealt"]), ("ev_reassigned_1", ["oracle", "ratio", "ev", "dealt"])],
    ids=["of no method of the matrix", "of ratios dealt anew"],
)
def test_ratios_are_dealt_from_a_method_that_chooses_them(load, of, methods):
    dealt = {"selector": "reassigned", "of": of, "seed": 1}
    with pytest.raises(InputError, match=r"length_methods\.dealt\.of = .*: chooses no canvases of the matrix"):
        load({"matrix": {"methods": methods}, "length_methods": {"dealt": dealt}})
