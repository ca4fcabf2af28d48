"""Every mistake is one line: the file that makes it, the key, the value, and what would be right."""

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from entropy_valley.errors import InputError
from entropy_valley.experiment import frames
from entropy_valley.experiment.config import base_files, load_files, params
from entropy_valley.experiment.config.checks import METRIC_FILES
from entropy_valley.experiment.config.load import merge, overlay
from entropy_valley.experiment.config.matrix import SETS, runs, sets_of
from entropy_valley.experiment.stats import summary

ROOT = Path(__file__).parents[2]
PAPER = merge(base_files(ROOT))
KINDS = ("method", "order", "name", "metric")  # what these keys say decides which others a block may have


def refused(load, over, *between):
    """The lines of an error, one a problem."""
    with pytest.raises(InputError) as caught:
        load(over, *between)
    first, *lines = str(caught.value).splitlines()
    lines = [line.strip() for line in lines[:-1]]
    assert first == f"config: {len(lines)} problem{'s' * (len(lines) > 1)}:" and lines[-1].endswith((". ", "?", "."))
    return lines


def leaves(node, path=()):
    """The path of every value of a config that is no block."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        elif key not in KINDS:
            yield (*path, key)


def nested(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sets(st.sampled_from(sorted(leaves(PAPER))), min_size=1, max_size=3), st.booleans())
def test_any_bad_values_and_keys_are_each_a_line_that_names_file_and_key(tmp_path_factory, paths, mistyped):
    """A value of no type that any key has, or a key beside another one with letters too many."""
    over = {}
    for path in paths:
        bad = (*path[:-1], f"{path[-1]}zz") if mistyped and path[0] not in ("length_methods", "studies") else path
        over = overlay(over, nested(bad, [[None]]))
    mine = tmp_path_factory.getbasetemp() / "mine.yaml"
    mine.write_text(yaml.safe_dump(over))
    with pytest.raises(InputError) as caught:
        load_files([*base_files(ROOT), mine])
    lines = str(caught.value).splitlines()[1:-1]
    for path in leaves(over):
        assert any(line.startswith(f"  {mine}: {'.'.join(map(str, path))}") for line in lines), (path, lines)


def variant(**keys):
    return {"backbones": {"mine": {"variant_of": "dream-7b", "label": "Mine", **keys}}}


def another(**keys):
    return {"length_methods": {"mine": keys}}


def study(pool=None, **keys):
    own = {"tables": {"studies": ["mine"]}, "studies": {"mine": keys}}
    return own | ({"directions": {"en-zh": {"pools": {"small": pool}}}} if pool is not None else {})


GIVEN = {"name": "json_lines", "folder": "data", "files": {"en-zh": {"train": "t.jsonl", "dev": "d.jsonl"}}}
POOLED = {"directions": ["en-zh"], "pools": ["small"], "methods": ["ev"]}
RELEASED = {"adapters": "released", "released": {"llada-8b": {"en-zh": {1: {"folder": "given"}}}}}
FLOORS = {"variant_of": "llada-8b", "label": "by floors", "adapter_of": "llada-8b"}
NARROW = {"narrow": {"method": "ev", "ratios": {"en-zh": [0.8]}}}
READINGS = {"layout": "readings", "backbones": ["llada-8b", "mine"], "methods": ["oracle", "ratio", "ev"]}
REPRODUCTION = {"layout": "reproduction", "methods": ["oracle", "ratio", "ev"]}


def dealt(of):
    block = {"method": "reassigned", "of": of, "seed": 1}
    return {"matrix": {"methods": ["oracle", "ratio", "ev", "dealt"]}, "length_methods": {"dealt": block}}


def people(**keys):
    return {"human_evaluation": keys}


FORM = [  # keys and values
    ({"extends": 5}, "extends = 5: must be"),
    ({"trainig": {}}, "trainig: unknown key. Did you mean training?"),
    (another(ratios={}), "length_methods.mine.method is missing: it is required"),
    (another(method="evv"), "length_methods.mine.method = 'evv': did you mean ev? give module:Class, or one of "),
    (another(method="ev", ratios={"en-zh": [0]}), "length_methods.mine.ratios.en-zh.0 = 0: must be greater than 0"),
    (another(method="cal", same_ratios_as="oracle"), "length_methods.mine.same_ratios_as = 'oracle': names no block"),
    (another(method="daedal"), "length_methods.mine: give either `ratios` or `start`"),
    ({"device": "cdua"}, "device = 'cdua': must be 'cpu' or 'cuda'"),
    ({"matrix": {"seeds": [1, 2, 1]}}, "matrix.seeds = [1, 2, 1]: repeats 1; name each once"),
    ({"matrix": {"seeds_of": {"my/llada": [1]}}}, "seeds_of.my/llada = [1]: its name must be of letters in lower case"),
    ({"training": {"learning_rate": True}}, "training.learning_rate = True: must be a valid number"),
    ({"matrix": {"directions": ["en_ger"]}}, "directions.0 = 'en_ger': must be two codes of languages in lower case"),
    ({"directions": {"en-zh": {"pools": {500: 500}}}}, "its name must be a text; in YAML a number or a date that is"),
    ({"training": {"epochs": None}}, "training: give either `epochs` or `max_steps`"),
    ({"sources": {"mine": {"name": "jsonl"}}}, "sources.mine.name = 'jsonl': must be one of 'huggingface', "),
    ({"backbones": {"llada-8b": {"family": "lada"}}}, "family = 'lada': unknown. Did you mean llada or "),
    (variant(variant_of="llama4"), "backbones.mine.variant_of = 'llama4': names no block that it can follow"),
    (variant(variant_of="dream-instruct-plain"), "'dream-instruct-plain': names no block that it can follow"),
    (variant(folder="a/copy"), "backbones.mine.folder = 'a/copy': a variant has the checkpoint of dream-7b"),
    ({"directions": {"en-zh": {"training": {"processes": 2}}}}, "en-zh.training.processes = 2: unknown key"),
    (study(methods=[]), "studies.mine: give `methods` or `others`"),
    (people(annotators=["A", "a"]), "human_evaluation.annotators = ['A', 'a']: repeats a; name each once"),
    (people(annotators=["A", "All"]), "All stands for all of them together; choose another name"),
    (people(annotators=["../A"]), "human_evaluation.annotators"),
    *(
        ({"results": folder}, f"results = {folder!r}: {problem}")
        for folder, problem in {
            "r{brace}": "no braces",
            "-x": "this folder's name cannot begin with -",
            "./x/..": "is or holds a folder of this repository",
            "src": "is or holds a folder of this repository",
        }.items()
    ),
]
NAMES = [  # of what other keys define, or do not
    ({"matrix": {"backbones": ["lada-8b"]}}, "matrix.backbones = ['lada-8b']: 'lada-8b' is not defined; did you mean "),
    ({"matrix": {"methods": ["oracle", "ev"]}}, "the tables compare oracle, ratio and ev; add ratio"),
    (study(methods=["ev"], testset={"en-zh": "wmt99"}), "testset.en-zh = 'wmt99': 'wmt99' is not defined; did you "),
    ({"matrix": {"orders": ["med", "hybrid"]}}, "hybrid needs p; name a block of `reveal_orders`"),
    ({"valley": {"seeds": [9]}}, "valley.seeds = [9]: 9 is not defined; `matrix.seeds` has 1, 2, 3"),
    ({"tables": {"metrics": ["ter"]}}, "tables.metrics = ['ter']: 'ter' is not defined; `scoring` has comet22, bleu"),
    (people(first={"method": "zzz"}), "human_evaluation.first.method = 'zzz': 'zzz' is not defined"),
    ({"tables": {"studies": ["grdis"]}}, "'grdis' is not defined; did you mean readings? `studies` has "),
    ({"sources": {"dev": {"name": "wmt22"}}}, "sources.dev: is the name of the development pairs"),
    *(
        ({"scoring": {"metrics": {name: {"metric": "bleu", "label": "x"}}}}, f"{name}: this name is taken")
        for name in ("comet22", "copies", "length", "method")
    ),
    *(
        ({"studies": {name: {"methods": ["ev"]}}}, f"studies.{name}: is the name of a folder of every run")
        for name in (*SETS, "adapter", "latency")
    ),
]
UNFIT = [  # configs that cannot run
    (study(**POOLED), "studies.mine: pool 'small' is not defined; `directions.en-zh.pools` has none"),
    (study(200_001, **POOLED), "pool 'small' of en-zh has 200001 pairs, but `corpus.train` is 200000; raise that"),
    (study(methods=["ev"], columns=["speed"]), "speed: no such column; there are order, steps"),
    (study(methods=["ev"], columns=["bleuu"]), "bleuu: no such column; did you mean bleu? there are order, steps"),
    (variant(**FLOORS) | study(**READINGS, steps=[16, 32]), "tells no step budgets apart; name one"),
    (variant(**FLOORS) | study(**READINGS | {"methods": ["oracle", "ev"]}), "needs the methods ratio"),
    (study(**REPRODUCTION, backbones=["llada-8b", "dream-7b"]), "tells no backbones apart"),
    (study(**REPRODUCTION, orders=["med", "random"]), "tells no reveal orders apart"),
    (study(layout="transfer", methods=["ratio", "ev"], against="ratio"), "`against` is ratio itself"),
    (study(layout="orders", methods=["ev"]), "needs the method oracle and the order med; add both"),
    (study(layout="categories", methods=["oracle"], orders=["med"]), "compares med with one other order"),
    (study(methods=["ev"], backbones=["llama3-8b"]), "is autoregressive; studies compare masked backbones"),
    (study(methods=["ev_reassigned_1"], columns=["latency"]), "takes another's canvases and has no latency"),
    (study(methods=["narrow"]) | {"length_methods": NARROW}, "narrow.ratios: has none for zh-en, en-de; add them, or"),
    (variant(**FLOORS | {"adapter_of": "dream-7b"}), "has other adapters, by `family`, `hub`; remove"),
    (variant(**FLOORS, training={"keep_every": 500}), "has other adapters, by `training`"),
    (variant(**FLOORS, attention="prefix"), "has other adapters, by `attention`; remove this key, or those"),
    ({"sources": {"wmt22": {**GIVEN, "limit": None}}}, "has no test file of en-zh; name it under `files`"),
    ({"directions": {"en-de": {"train": "mine"}}, "sources": {"mine": GIVEN}}, "has no train and no dev file of en-de"),
    ({"matrix": {"backbones": ["llada-8b", "llama3-8b"]}}, "name it under `autoregressive.backbones`"),
    ({"autoregressive": {"backbones": ["dream-7b"]}}, "'dream-7b' is of family dream, not an autoregressive one"),
    ({"backbones": {"llada-8b": {"chat": True}}}, "backbones.llada-8b.chat = True: the family llada has no chat"),
    ({"backbones": {"llama3-8b": {"zero_shot": True}}}, "zero_shot = True: an autoregressive family has none"),
    (variant(attention="prefix", zero_shot=True), "backbones.mine.attention = 'prefix': the bare checkpoint was"),
    ({"backbones": {"dream-7b": {"family": "stock"}}}, "a stock class is not fine-tuned here; set it to true"),
    ({"backbones": {"dream-7b": {"family": "stock", "decoding": {"prompt_cache": {"refresh": 4}}}}}, "class has none"),
    ({"backbones": {"llama3-8b": {"shifted": False}}}, "llama3-8b.shifted = False: an autoregressive family"),
    (study(layout="checks", methods=["ev_sum"]), "needs the methods ev; add them"),
    (dealt("daedal_own"), "length_methods.dealt.of = 'daedal_own': chooses no canvases of the matrix"),
    (dealt("ev_reassigned_1"), "length_methods.dealt.of = 'ev_reassigned_1': chooses no canvases of the matrix"),
    (study(9, **POOLED, figure=True), "a figure of layout systems tells no pools apart; remove `pools`"),
    (study(methods=["ev"], figure="hero"), "studies.mine: hero is the name of another table or figure"),
    ({"studies": {"full_pareto": {"figure": "selector_comparison"}}}, "comparison is the name of another table or fi"),
    ({"matrix": {"seeds_of": {"llama3-8b": [9]}}}, "matrix.seeds_of.llama3-8b = [9]: no seed in common with llada"),
    (RELEASED | {"matrix": {"seeds": [1, 2]}}, "released.llada-8b.en-zh: no adapter for seed2; give it, narrow"),
]


@pytest.mark.parametrize(("over", "line"), [*FORM, *NAMES, *UNFIT], ids=lambda one: one if isinstance(one, str) else "")
def test_a_mistake_is_named(load, over, line):
    lines = refused(load, over)
    assert any("mine.yaml: " in one and line in one for one in lines), lines


def test_a_language_needs_no_length_limits(load):
    direction = {"prompt": "{src}", "train": "wmt22", "tests": ["wmt22"]}
    ratios = {"ratio": {"ratios": {"en-fi": 1.0}}, "ev": {"ratios": {"en-fi": [1.0]}}}
    over = {"matrix": {"directions": ["en-fi"]}, "directions": {"en-fi": direction}, "length_methods": ratios}
    spec = json.loads(params.corpus(load(over), "en-fi"))
    assert spec["filters"] == {"en": {"words": [5, 200]}, "fi": {}}


def test_what_a_file_cannot_extend(tmp_path):
    for name, other in {"a": "b", "b": "a", "lost": "none"}.items():
        (tmp_path / f"{name}.yaml").write_text(f"extends: {other}.yaml\n")
    assert merge([tmp_path / "a.yaml"]) == {"extends": "b.yaml"}  # a circle ends where it began
    with pytest.raises(InputError, match=r"lost\.yaml: extends .*none\.yaml, which is not a file"):
        merge([tmp_path / "lost.yaml"])


def test_a_backbone_of_a_file_that_is_not_loaded_is_an_error_that_names_the_key(load):
    """After `--workflow-profile demo`, --configfile replaces config/demo.yaml."""
    for over in ({"matrix": {"backbones": ["llada-tiny"]}}, {"backbones": {"llada-tiny": {"label": "Mine"}}}):
        with pytest.raises(InputError, match=r"name this file, as `extends: config/demo\.yaml`"):
            load(over)


UNREADABLE = {  # files of YAML, and what is wrong with them
    "a repeated key": (
        "device: cpu\ncorpus:\n  train: 1\n  dev: 2\n  train: 3\n",
        ":5: key 'train' is there already, in line 3. Keep one",
    ),
    "a date": ("matrix:\n  steps: 2001-99-99\n", ": not YAML (month must be"),
    "missing": (None, ": file not found"),
    "broken": ("a: [1\n", ": not YAML"),
    "code": ("a: !!python/object/apply:os.system [touch X]\n", ": not YAML"),
    "a list": ("- a\n", ": is no config: it has no keys"),
    "comments": ("# nothing\n", ": is no config: it has no keys. Write keys into it, such as"),
    "Latin 1": ("a: 1\nb: ü\n".encode("latin-1"), ":2: not UTF-8 (byte 0xfc). Convert it"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named_with_the_line(load, tmp_path, kind):
    """Also where it is read after others."""
    content, problem = UNREADABLE[kind]
    path = tmp_path / "mistaken.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for read in (lambda: load_files([path]), lambda: load({}, str(path))):
        with pytest.raises(InputError) as caught:
            read()
        assert str(caught.value).startswith(f"{path}{problem}")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_opened(tmp_path, make):
    make(tmp_path / "mine.yaml")
    with pytest.raises(InputError, match=r"mine.yaml: is a (pipe|folder), not a file"):
        load_files([tmp_path / "mine.yaml"])


def into(target, **scoring):
    """A matrix of one direction, from English into a language."""
    direction = f"en-{target}"
    return {
        "matrix": {"directions": [direction]},
        "tables": {"studies": []},
        "instruct": {"backbones": []},
        "sources": {"mine": {"name": "files", "source": "a", "target": "b"}},
        "directions": {direction: {"prompt": "{src}", "train": "mine", "tests": ["mine"]}},
        "length_methods": {"ratio": {"ratios": {direction: 1.0}}, "ev": {"ratios": {direction: [1.0]}}},
        "scoring": scoring,
    }


@pytest.mark.parametrize("target", ["yue", "bho", "zh_tw", "sr_latn", "es_419"])
def test_a_language_has_two_or_three_letters_and_perhaps_a_script_or_a_region(load, target):
    assert {run.direction for run in runs(load(into(target)), ["llada-8b"])} == {f"en-{target}"}


@pytest.mark.parametrize(
    ("target", "place", "problem"),
    [
        ("th", "scoring.bleu.tokenize", "sacreBLEU's default splits at blanks, and th has none between words"),
        ("ja", "scoring.bleu.tokenize", "sacreBLEU has no tokenizer (Japanese tokenization requires extra"),
        ("de", "scoring.metrics.other.tokenize", "sacreBLEU has no tokenizer (Japanese tokenization requires extra"),
    ],
)
def test_what_bleu_needs_is_asked_before_the_first_job(load, monkeypatch, target, place, problem):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    further = {"other": {"metric": "bleu", "label": "B", "tokenize": "ja-mecab"}} if target == "de" else {}
    (line,) = refused(load, into(target, metrics=further))
    assert place in line and f"en-{target}: {problem}" in line
    given = load(into(target, bleu={"tokenize": {f"en-{target}": "char"}}))
    ((spec, *_),) = [[params.scores(given, one) for one in sets_of(given).all if one.run.backbone == "llada-8b"]]
    assert json.loads(spec)["bleu"] == {"tokenize": "char"}


@pytest.mark.parametrize("folder", ["a.yaml", "a.yaml/results"])
def test_results_are_no_file(load, tmp_path, folder):
    (tmp_path / "a.yaml").write_text("device: cpu\n")
    with pytest.raises(InputError, match=r"results = .*: (this|.*a\.yaml) is a file; name a folder"):
        load({"results": str(tmp_path / folder)})


def test_an_order_by_a_gold_alignment_needs_one(load):
    with pytest.raises(InputError, match=r"sources.wmt22.*: the reveal order 'oracle_anchor' needs"):
        load(study(methods=["oracle"], orders=["med", "oracle_anchor"]))


def test_a_given_adapter_is_that_of_the_backbone_that_has_it(load):
    over = RELEASED | {
        "matrix": {"backbones": ["llada-8b"], "directions": ["en-zh"], "seeds": [1]},
        "autoregressive": {"backbones": []},
        "instruct": {"backbones": []},
        "backbones": {"mine": FLOORS},
    }
    assert load({**over, **study(**READINGS)})


def test_no_metric_has_the_name_of_a_column_of_results():
    columns = {*frames.CELL, *frames.SOURCES, *frames.MEANS, *summary.COSTS}
    assert columns <= METRIC_FILES
