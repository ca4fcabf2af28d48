"""The configs of the repository, their schema, and how files are laid over each other."""

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from config_schema import json_schema

from entropy_valley import plugins
from entropy_valley.errors import InputError
from entropy_valley.experiment import tables
from entropy_valley.experiment.config import base_files, load_files, methods
from entropy_valley.experiment.config.load import expand, load_merged, merge, overlay, read_files, read_values
from entropy_valley.experiment.config.schema import LengthMethods, Scoring, metrics_of, scoring_params
from entropy_valley.lengths import LENGTH_METHODS
from entropy_valley.scoring import from_params

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "config.yaml", *sorted((ROOT / "config").glob("*.yaml"))]
FILES = [path for path in FILES if not path.name.startswith("mine")]  # which git ignores
OVERLAYS = [[], *([path.stem] for path in FILES[1:] if path.stem != "studies"), ["authors", "released"]]


@pytest.mark.parametrize("names", OVERLAYS, ids="+".join)
def test_every_config_loads(names):
    files = [*base_files(ROOT), *(ROOT / "config" / f"{name}.yaml" for name in names)]
    assert load_merged(json.loads(json.dumps(merge(files)))) == load_files(files)  # so jobs on a cluster get it


def test_a_file_lies_over_those_that_it_extends_and_each_counts_once(tmp_path):
    """As if they stood before it on the command line, in the folder of the file."""
    contents = {
        "low": {"x": 1, "y": {"a": 1, "b": 1}},
        "middle": {"extends": "low.yaml", "x": 2, "y": {"b": 2}},
        "other": {"extends": ["low.yaml"], "y": {"c": 3}},
        "sub/top": {"extends": ["../middle.yaml", "../other.yaml"], "z": 4},
    }
    (tmp_path / "sub").mkdir()
    for name, content in contents.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content))
    low, top = tmp_path / "low.yaml", tmp_path / "sub/top.yaml"
    merged = merge([top])
    assert {name: merged[name] for name in "xyz"} == {"x": 2, "y": {"a": 1, "b": 2, "c": 3}, "z": 4}
    assert merge([low, top]) == merged
    assert [Path(name).stem for name in read_files([low, top])] == ["low", "middle", "other", "top"]


EXTENDING, TUTORIAL = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("extending.md", "tutorial.md")]


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", EXTENDING, re.DOTALL))
def test_every_documented_config_loads(load, tmp_path, monkeypatch, example):
    for name, code in re.findall(r"```python\n# (\w+\.py)(.*?)```", EXTENDING + TUTORIAL, re.DOTALL):
        (tmp_path / name).write_text(f"#{code}")
    monkeypatch.syspath_prepend(tmp_path)
    load(yaml.safe_load(example))


@pytest.mark.parametrize("folder", ["./results/mine", "results//mine/"])
def test_a_folder_of_results_has_one_spelling(load, folder):
    assert load({"results": folder, "models": "models/"}).results == "results/mine"


SCHEMA = ROOT / "config/schema.json"


def test_the_committed_schema_is_that_of_the_models(request):
    text = json_schema(tables.known())
    if request.config.getoption("--renew"):
        SCHEMA.write_text(text, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == text, "run: python -m pytest tests/config/test_configs.py --renew"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_names_the_schema_and_fits_it(path):
    """Editors read it in the first line."""
    text = path.read_text(encoding="utf-8")
    named = re.match(r"# yaml-language-server: \$schema=(.*)\n", text)
    assert (path.parent / named[1]).resolve() == SCHEMA
    jsonschema.validate(yaml.safe_load(text), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_schema_describes_every_key():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    kinds = {"Experiment": schema, **schema["$defs"]}
    keys = [(kind, key, said) for kind, one in kinds.items() for key, said in one.get("properties", {}).items()]
    assert not [(kind, key) for kind, key, said in keys if not _is_described(said)]


def _is_described(said):
    """By itself, or, for a block of its own, by that block's description; what tells blocks apart says what it is."""
    return {"description", "const"} & said.keys() or any("$ref" in one for one in [said, *said.get("anyOf", [])])


# --- A user's own classes.

CODE = """
from pydantic import Field
from entropy_valley.decoding.orders import Order
from entropy_valley.lengths.base import Choice, OnGrid
from entropy_valley.settings import Section

class Method:
    sees_reference = False
    def __init__(self, share): pass
    def propose(self, sentence, probes): pass
    def choose(self, sentence, probes): pass

class Lacking(OnGrid): ...

class Grid(OnGrid):
    share: float = Field(0.5, le=1)
    def choose(self, sentence, probes): return Choice(1)

class Mine(Order):
    reach: int
    def scores(self, slots): pass

class Neither:
    decimals, signature = 1, "mine"

class Unsigned:
    decimals = 1
    def system_score(self, *_): return 1
"""
MATRIX = {"methods": ["oracle", "ratio", "ev", "mine"], "orders": ["med", "my_order"]}


@pytest.fixture
def own(load, tmp_path, monkeypatch):
    """The config with blocks of the user's own classes, which the matrix names; all have blocks that are right."""
    (tmp_path / "own.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)

    def loaded(method=None, order=None, metric=None):
        return load(
            {
                "matrix": MATRIX,
                "length_methods": {"mine": {"method": "own:Method", "share": 0.5} | (method or {})},
                "reveal_orders": {"my_order": {"order": "own:Mine", "reach": 2} | (order or {})},
                "scoring": {"metrics": {"mine": {"label": "Mine", **metric}} if metric else {}},
            }
        )

    return loaded


def test_classes_of_the_users_own_are_let_in_and_their_settings_reach_the_job(own):
    experiment = own()
    method = {"method": plugins.with_code("own:Method"), "share": 0.5}
    assert methods.method_settings(experiment, "mine", "en-zh") == method
    order = {"order": plugins.with_code("own:Mine"), "order_settings": {"reach": 2}}
    assert methods.order_settings(experiment, "my_order") == order
    assert methods.order_settings(experiment, "med") == {"order": "med", "order_settings": {}}
    assert methods.order_settings(experiment, "hybrid_75") == {"order": "hybrid", "order_settings": {"p": 0.75}}


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        ({"method": {"method": "nowhere:Mine"}}, "mine.method = 'nowhere:Mine': No module named 'nowhere'"),
        ({"method": {"method": "own.py:Grid", "ratios": [1.0]}}, "'own.py'; 'own' is not a package. Write own:Grid. "),
        ({"method": {"method": "own:Grid", "ratios": [1.0], "shre": 2}}, "methods.mine.shre = 2: unknown key. Did"),
        ({"method": {"method": "own:Lacking", "ratios": [1.0]}}, "own:Lacking has no method choose. docs/"),
        ({"order": {"order": "json:JSONDecoder"}}, "reveal_orders.my_order: TypeError: "),
        ({"metric": {"metric": "own:Neither"}}, "scoring.metrics.mine: has neither segment_scores nor system_score"),
        ({"metric": {"metric": "own:Unsigned"}}, "scoring.metrics.mine: has no `signature`"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_class_that_does_not_fit_is_named_before_anything_runs(own, blocks, says):
    with pytest.raises(InputError) as caught:
        own(**blocks)
    assert says in str(caught.value)


# --- Ours, under other names.


def test_every_length_method_of_ours_has_a_block_and_the_papers_config_sets_it_up(load):
    blocks = load({}).length_methods
    assert LengthMethods.model_fields.keys() == LENGTH_METHODS.keys()
    assert all(getattr(blocks, name).method == name for name in LENGTH_METHODS)


# --- Metrics.

RELEASED = {"label": "COMET-22", "checkpoint": "Unbabel/wmt22-comet-da", "batch_size": 1}
TOY = {"label": "toy COMET", "training": {"seed": 1, "steps": 2}, "batch_size": 1}


@pytest.mark.parametrize(
    ("comet", "name"), [(RELEASED, "comet22"), (TOY, "toy_comet"), ({**RELEASED, "name": "comet20"}, "comet20")]
)
def test_the_main_metric_comes_first_and_a_job_scores_by_all(comet, name):
    scoring = Scoring(comet=comet)
    names = [metric.name for metric in metrics_of(scoring)]
    assert names == [name, "bleu", "chrf"] == list(from_params(scoring_params(scoring, "en-zh")))


# --- How files are laid over each other.


def test_values_of_the_command_line_are_read_as_yaml():
    """Snakemake leaves `yes` of its --config, and what stands inside a block, as text."""
    given = {"confirm": "yes", "corpus": {"test_limit": "8"}, "matrix": {"seeds": ["1"]}, "valley": {"seeds": "null"}}
    files = merge(base_files(ROOT))
    given["training"] = {"learning_rate": "1e-3"}
    experiment = load_merged(read_values(overlay(files, given), files))
    assert (experiment.confirm, experiment.corpus.test_limit, experiment.matrix.seeds) == (True, 8, [1])
    assert experiment.valley.seeds is None and experiment.training.learning_rate == 0.001


# --- Short forms: ratios taken from another method; and the file that an error names.


def expanded(**blocks):
    return expand({"length_methods": blocks})[0]["length_methods"]


def test_ratios_of_another_method_below_those_of_its_own():
    ev = {"ratios": {"en-zh": [1], "en-de": [2]}}
    mine = {"same_ratios_as": "ev", "ratios": {"en-de": [3]}}
    assert expanded(ev=ev, mine=mine)["mine"] == {"ratios": {"en-zh": [1], "en-de": [3]}}
    assert expanded(ev=ev, mine={"same_ratios_as": "ev"})["mine"] == ev


def test_a_bad_ratio_that_others_take_is_named_once(load):
    line = r"1 problem:\n.*mine.yaml: length_methods.ev.ratios.en-zh.0 = -1: must be greater"
    with pytest.raises(InputError, match=line):
        load({"length_methods": {"ev": {"ratios": {"en-zh": [-1]}}}, "tables": {"studies": []}})


def test_the_file_that_sets_a_key_is_named(load):
    with pytest.raises(InputError, match=r"config\.yaml: tables\.order = 'med'"):
        load({"matrix": {"orders": ["random"]}})
