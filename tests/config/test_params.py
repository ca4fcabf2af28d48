"""The params of jobs: which keys of the config each depends on, and on which it does not."""

import json
from pathlib import Path

import pytest

from entropy_valley import revisions
from entropy_valley.data import sources
from entropy_valley.experiment.config import base_files, load_files, matrix, methods, params, paths
from entropy_valley.experiment.config.matrix import Cell, CellSet, Run
from entropy_valley.experiment.demo.grammar import SOURCES
from entropy_valley.files import canonical

ROOT = Path(__file__).parents[2]
PAPER = load_files(base_files(ROOT))
DEMO = load_files([*base_files(ROOT), ROOT / "config" / "demo-full.yaml"])
RUN = Run("en-zh", "llada-8b", 1)
GIVEN = {"name": "json_lines", "folder": "data", "files": {"en-zh": {"train": "t.jsonl", "dev": "d.jsonl"}}}
FLOORS = {"variant_of": "llada-8b", "label": "by floors", "adapter_of": "llada-8b"}


def translation(experiment, *names, run=RUN, order="med"):
    """The params of a set of these methods' cells."""
    cells = tuple(Cell(run, "wmt22", name, order, 32) for name in names)
    return json.loads(params.translation(experiment, CellSet(run, "mine", cells)))


def specs(experiment, run=RUN):
    """The params of a job of each stage, without what they are made from."""
    cells = CellSet(run, "mine", tuple(Cell(run, "wmt22", name, "med", 32) for name in ("ev", "ratio")))
    autoregressive = Run(run.direction, "llama3-8b", 1)
    texts = {
        "corpus": params.corpus(experiment, run.direction),
        "testset": params.testset(experiment, run.direction, "wmt22"),
        "training": params.training(experiment, run),
        "translation": params.translation(experiment, cells),
        "generation": params.translation(
            experiment, CellSet(autoregressive, "mine", (Cell(autoregressive, "wmt22", "beam4"),))
        ),
        "latency": params.latency(experiment, cells.cells[0]),
        "diagnostics": params.diagnostics(experiment, run),
        "scores": params.scores(experiment, cells),
    }
    return {stage: leaves({**json.loads(text), "made_from": None}) for stage, text in texts.items()}


def leaves(spec, path=()):
    """Values by the dotted path of their key."""
    if not isinstance(spec, dict) or not spec:
        return {".".join(path): spec}
    return {name: value for key, below in spec.items() for name, value in leaves(below, (*path, key)).items()}


def changes(experiment, run=RUN, of=PAPER):
    """What another config, or another run, changes: by stage the values of keys that differ."""
    before, after = specs(of), specs(experiment, run)
    return {
        stage: keys
        for stage in before
        if (keys := {key: value for key, value in after[stage].items() if before[stage].get(key, ...) != value})
    }


def everywhere(stages="translation latency diagnostics", **keys):
    """The same values in several stages; diagnostics have them once more for each kind of passes."""
    own = {stage: dict(keys) for stage in stages.split()}
    if "diagnostics" in own:
        own["diagnostics"] |= {f"{kind}.{key}": value for key, value in keys.items() for kind in ("valley", "sig")}
    return own


def trained(**keys):
    return {"training": {f"training.{key.replace('__', '.')}": value for key, value in keys.items()}}


EXECUTION = {
    "results": "elsewhere",
    "models": "elsewhere",
    "device": "cpu",
    "store": False,
    "training": {"processes": 4, "micro_tokens": "auto", "checkpoint_every": 7},
    "decoding": {"shards": 3},
}
LABELS = {
    "scoring": {"comet": {"label": "another name"}},
    "length_methods": {"ev": {"label": "another name"}},
    "backbones": {"llada-8b": {"label": "another name"}},
}
CASES = {
    "how jobs run, and names in print": (EXECUTION | LABELS, {}),
    "adapters beside the weights": (
        {"decoding": {"merge_adapter": False}},
        everywhere("translation latency diagnostics generation", merge_adapter=False),
    ),
    "the passes of the engine": (
        {
            "decoding": {
                "head_precision": "backbone",
                "batch_invariant": True,
                "compile_layers": True,
                "mask_token": "may_be_revealed",
            }
        },
        everywhere(head_precision="backbone", batch_invariant=True, compile_layers=True, mask_token="may_be_revealed"),
    ),
    "another precision": (
        {"decoding": {"precision": "float32"}},
        everywhere(precision="float32", head_precision="backbone") | everywhere("generation", precision="float32"),
    ),
    "a prompt cache": (
        {"decoding": {"prompt_cache": {"refresh": 2}}},
        everywhere("translation latency", prompt_cache=2),
    ),
    "another loss": ({"training": {"loss": {"eps": 0.1}}}, trained(loss__eps=0.1)),
    "how pairs are drawn": ({"corpus": {"sampling": {"en-zh": "shuffle"}}}, {"corpus": {"sampling": "shuffle"}}),
    "how many sentences": ({"corpus": {"test_limit": 7}}, {"testset": {"limit": 7, "subset": "first"}}),
    "pairs of a direction": (
        {"directions": {"en-zh": {"corpus": {"train": 1000, "dev": 10, "filters": {"en": {"words": [2, 9]}}}}}},
        {"corpus": {"train": 1000, "dev": 10, "filters.en.words": [2, 9]}},
    ),
    "a direction's training": (
        {"directions": {"en-zh": {"training": {"max_steps": 5, "warmup": 0}}}},
        trained(max_steps=5, epochs=None, warmup=0),
    ),
    "another direction": (
        {
            "corpus": {"sampling": {"en-de": "shuffle_rows"}},
            "directions": {"en-de": {"corpus": {"train": 1000, "test_limit": 7}, "training": {"max_steps": 5}}},
        },
        {},
    ),
    "a backbone's BLEU": (
        {"backbones": {"llada-8b": {"bleu": {"tokenize": "zh"}}}, "scoring": {"bleu": {"tokenize": "char"}}},
        {"scores": {"bleu.tokenize": "zh"}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_key_reaches_the_params_of_its_own_jobs_alone(load, name):
    over, expected = CASES[name]
    assert changes(load(over)) == expected


LOSS = {"weight": "none", "normaliser": "micro_batch", "antithetic": False, "at_least_one": False}
DECODING = {"decoding": {"schedule": "floors", "mask_token": "may_be_revealed", "exact_products": False}}
VARIANTS = {  # of a backbone by its own keys, what they are of the whole config's keys, and the stages that have them
    "loss": ({"training": LOSS}, {"training": {"loss": LOSS}}, ["training", "translation", "latency"]),
    "decoding": ({"adapter_of": "llada-8b"} | DECODING, DECODING, ["translation", "latency"]),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_backbone_has_readings_of_its_own(load, name):
    """As under the same keys of the whole config; others are left as they are."""
    own, whole, stages = VARIANTS[name]
    mine = load({"backbones": {"mine": {"variant_of": "llada-8b", "label": "Mine", **own}}})
    of_backbone, of_all = specs(mine, Run("en-zh", "mine", 1)), specs(load(whole))
    assert all({**of_backbone[stage], "backbone": "llada-8b"} == of_all[stage] for stage in stages)
    assert changes(mine) == {}


def test_the_attention_is_a_param_of_all_that_runs_the_model(load):
    """And of a given adapter, and of what is fitted; a prompt that sees no canvas needs no cache."""
    variant = {"variant_of": "llada-8b", "label": "mine", "attention": "prefix"}
    given = {name: {"en-zh": {1: {"folder": "given"}}} for name in ("mine", "llada-8b")}
    over = {"backbones": {"mine": variant}, "released": given}
    experiment, mine = load(over), Run("en-zh", "mine", 1)
    found = changes(experiment, mine)
    about = {"backbone": "mine", "attention": "prefix"}
    assert found.pop("diagnostics").items() >= about.items()
    assert found == dict.fromkeys(("training", "translation", "latency"), about)
    fits = [translation(experiment, "length_head", run=run)["fits"]["length_head"] for run in (mine, RUN)]
    adapters = [json.loads(params.adapter(experiment, run)) | {"made_from": None} for run in (mine, RUN)]
    assert all(one == usual | about for one, usual in (fits, adapters))
    cached = load({**over, "decoding": {"prompt_cache": {"refresh": 2}}})
    assert [translation(cached, "ev", run=run)["prompt_cache"] for run in (mine, RUN)] == [1, 2]


def test_a_chat_variant_differs_in_its_prompt_and_a_shifted_one_in_its_shift():
    plain, chat, unshifted = (
        translation(PAPER, "ev", run=Run("en-zh", f"dream-instruct-{name}", 1))
        for name in ("plain", "chat", "chat-unshifted")
    )
    assert plain["prompt"] in chat["prompt"] and chat["prompt"].count("{src}") == 1
    assert {key for key in chat if chat[key] != unshifted[key]} == {"backbone", "shifted", "made_from"}
    assert {key for key in chat if chat[key] != plain[key]} == {"backbone", "prompt", "made_from"}


def test_an_autoregressive_training_knows_nothing_of_masks(load):
    other = load({"training": {"loss": {"weight": "none", "eps": 0.1, "eos_padding": 4}}})
    autoregressive = Run("en-zh", "llama3-8b", 1)
    assert params.training(other, autoregressive) == params.training(PAPER, autoregressive)
    assert params.training(other, RUN) != params.training(PAPER, RUN)


# --- What a set has of its methods and orders.


def test_params_are_canonical_json():
    """Snakemake compares the text: the same settings must always give the same one."""
    for text in (
        params.corpus(PAPER, "en-zh"),
        params.training(PAPER, RUN),
        params.latency(PAPER, matrix.cells(PAPER)[0]),
    ):
        assert canonical(json.loads(text)) == text


def test_a_set_knows_its_own_methods_and_its_directions_ratios_only():
    spec = translation(PAPER, "ev", "ratio", "ratio_eos", "oracle", "ev_sum", "ev_reassigned_deciles_3")
    grid = [0.70, 0.75, 0.80, 0.85, 0.90]
    assert spec["methods"] == {
        "ev": {"ratios": grid, "score": "mean"},
        "ratio": {"ratios": 0.8, "reserve_eos_slot": False},
        "ratio_eos": {"method": "ratio", "ratios": 0.8, "reserve_eos_slot": True},
        "oracle": {},
        "ev_sum": {"method": "ev", "score": "sum", "ratios": grid},
        "ev_reassigned_deciles_3": {"method": "reassigned", "of": "ev", "seed": 3, "within": "deciles"},
    }
    assert spec["orders"] == {"med": {"order": "med", "order_settings": {}}}
    assert spec["cells"][0] == ["wmt22", "ev", "med", 32]
    assert "ev" in translation(PAPER, "ev_reassigned_1")["methods"]
    dealt = methods.reassigned_methods(PAPER)
    assert len(dealt) == 10 and all(name.startswith("ev_reassigned_") for name in dealt)


def test_what_it_is_made_from_follows_from_the_params_of_all_before(load):
    spec, fitted = translation(PAPER, "ev"), translation(PAPER, "ev_fit")
    assert spec["made_from"].keys() == {"adapter", "testset wmt22"}
    assert fitted["made_from"].keys() == {"adapter", "testset wmt22", "corpus en-zh"}
    assert spec["made_from"]["adapter"] == params.digest(params.training(PAPER, RUN))
    other = translation(load({"corpus": {"seed": 5}}), "ev")
    assert other["made_from"]["adapter"] != spec["made_from"]["adapter"]


def test_what_is_measured_on_training_pairs_depends_on_no_methods_settings():
    spec = translation(PAPER, "cal", "length_line")["fits"]["length_statistics"]
    assert (spec["parts"], spec["bias_pairs"]) == (["confidence_bias", "line"], 200)
    assert not spec.keys() & {"method", "seed"}
    assert "fits" not in translation(PAPER, "ev", "ratio", "oracle")


def test_a_line_that_counts_tokens_depends_on_no_pass_and_what_is_learned_on_its_methods():
    fits = translation(PAPER, "ev_fit", "ev_fit_4")["fits"]
    assert fits["length_statistics"] == {"parts": ["line"], "revision": revisions.LENGTH_STATISTICS}
    methods_of = fits["learned"]["methods"]
    assert {name: one["candidates"] for name, one in methods_of.items()} == {"ev_fit": 5, "ev_fit_4": 4}
    assert translation(PAPER, "length_head", "ev")["fits"].keys() == {"length_head"}


def test_a_valley_has_its_directions_grid_and_no_methods_settings():
    spec = json.loads(params.diagnostics(PAPER, RUN))["valley"]
    assert (spec["ratios"][0], spec["ratios"][-1], len(spec["ratios"])) == (0.4, 1.5, 23)
    assert (spec["offset"], spec["sentences"], spec["seed"]) == (6, 500, PAPER.corpus.seed)
    assert not spec.keys() & {"method", "ratios_of", "backbones"}
    other = json.loads(params.diagnostics(PAPER, Run("zh-en", "llada-8b", 1)))
    assert other["valley"]["ratios"][-1] == 2.2


def test_languages_whose_tokenizer_changed_are_scored_anew():
    experiment = PAPER.model_copy(update={"directions": PAPER.directions | {"en-ja": PAPER.directions["en-zh"]}})
    runs = (Run(direction, "llada-8b", 1) for direction in ("en-zh", "en-ja"))
    sets = (CellSet(run, "mine", (Cell(run, "wmt22", "ratio", "med", 32),)) for run in runs)
    assert [json.loads(params.scores(experiment, one))["revision"] for one in sets] == [1, 2]


# --- Pairs and test sets.


@pytest.mark.parametrize(
    ("over", "name", "expected"),
    [
        ({}, "wmt22", {"limit": None}),
        ({"corpus": {"test_limit": 12}}, "wmt22-500", {"limit": 12, "subset": "first"}),
        ({"corpus": {"subset": "keyed_hash"}}, "wmt22-500", {"limit": 500, "subset": "keyed_hash"}),
        (
            {"corpus": {"test_limit": 12}},
            "wmt22-challenge",
            {"limit": None, "challenge": 12, "challenge_reading": "first"},
        ),
        ({"sources": {"mine": {"name": "embedded", "limit": 20}}}, "mine", {"limit": 20}),  # it has no end to draw from
    ],
)
def test_which_sentences_a_test_set_takes(load, over, name, expected):
    """No more than any test set, and a challenge subset of all that its source has."""
    spec = json.loads(params.testset(load(over), "en-zh", name))
    assert {key: spec[key] for key in spec.keys() - {"direction", "revision", "seed", "source"}} == expected


def test_nothing_is_drawn_or_filtered_of_given_files(load):
    given = {"sources": {"mine": GIVEN}, "directions": {"zh-en": {"train": "mine"}}, "corpus": {"sampling": "shuffle"}}
    spec = json.loads(params.corpus(load(given), "zh-en"))
    assert spec["filters"] == {} and "sampling" not in spec
    assert spec["source"] == {**GIVEN, "rows": {}, "keys": {}}


def test_methods_that_are_fitted_see_the_pool_alone():
    for run, limit in ((Run("de-fr", "llada-8b", 1, "50k"), 50_000), (RUN, None)):
        fits = translation(PAPER, "ev_fit", "length_head", run=run)["fits"]
        assert [fits[name].get("limit") for name in ("length_statistics", "length_head")] == [limit, limit]


@pytest.mark.parametrize("experiment", [PAPER, DEMO], ids=["paper", "demo"])
def test_every_source_can_be_made(experiment):
    for name in experiment.sources:
        sources.make(json.loads(params.testset(experiment, "en-zh", name))["source"], SOURCES)


def test_a_variant_decodes_with_anothers_adapter(load):
    own = load({"backbones": {"mine": FLOORS}})
    assert paths.adapter_run(own, Run("en-zh", "mine", 1)) == RUN == paths.adapter_run(own, RUN)
