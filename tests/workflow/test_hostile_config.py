"""Whatever a config's strings hold: one clear error, or jobs that get them as they are."""

from __future__ import annotations

import copy
import functools
import itertools
import re

import pytest
from pydantic import ValidationError
from workspace import ROOT, Workspace

from entropy_valley.experiment import base_files
from entropy_valley.experiment.checks import cross_problems
from entropy_valley.experiment.expansion import expand, overlay
from entropy_valley.experiment.feasibility import infeasible
from entropy_valley.experiment.loading import merge
from entropy_valley.experiment.schema import Experiment
from entropy_valley.reporting import reports

CONFIGS = ("config/demo.yaml", "config/smallest.yaml")
SHELL = """r a'b"c$(touch X)`touch X`;touch X||touch X&touch X>X|touch X #*?[a]!\\~"""
MARKUP = "r {brace} {src} {{0}} %s \\input{x} <b>&amp;\ntouch X\n\t\x1b[31m\u202e"
# Strings that the demo has not.
MORE = {
    "backbones": {"llada-tiny": {"pretraining": None, "folder": "given"}},
    "scoring": {"comet": {"training": None, "checkpoint": "own/checkpoint"}},
    "sources": {"own": {"name": "files", "source": "own.en", "target": "own.zh"}},
    "directions": {"en-zh": {"tests": ["grammar", "own"]}},
}
NAMED = ("name", "selector", "order", "layout")  # which keys a block has: without it all of them are refused


def leaves(node, path=()):
    """The path of every string of a config."""
    if isinstance(node, str):
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from leaves(value, (*path, key))


def put(config, path, value):
    for key in path[:-1]:
        config = config[key]
    config[path[-1]] = value


def problems(config):
    """The paths of all that is wrong with a config."""
    expanded = expand(config)
    try:
        experiment = Experiment.model_validate(expanded.config)
    except ValidationError as error:
        return [item["loc"] for item in error.errors()]
    found = [*expanded.problems, *cross_problems(expanded.config)]
    return [path for path, _ in found or infeasible(experiment, reports.problems)]


def shared(path, problem):
    """How many keys of a string's path a problem's path begins with, between the tags of unions."""
    rest = iter(problem)
    return sum(1 for _ in itertools.takewhile(lambda key: key in rest, path))


def accepted(value):
    """The smallest demo with ``value`` for each of its strings that may have it, and the paths of these."""
    plain = merge([*base_files(ROOT), *(ROOT / name for name in CONFIGS)])
    plain = overlay(plain, MORE)
    config, hostile = copy.deepcopy(plain), {path for path in leaves(plain) if path[-1] not in NAMED}
    for path in hostile:
        put(config, path, value)
    while wrong := problems(config):
        nearest = {problem: max(shared(path, problem) for path in hostile) for problem in wrong}
        refused = {path for path in hostile for problem in wrong if shared(path, problem) == nearest[problem]}
        for path in refused:
            put(config, path, functools.reduce(lambda node, key: node[key], path, plain))
        hostile -= refused
    return config, hostile


@pytest.mark.parametrize("value", [SHELL, MARKUP], ids=["shell", "markup"])
def test_any_strings_are_planned_as_they_are(tmp_path, value):
    """Jobs get them as params of scripts, which no shell reads."""
    config, hostile = accepted(value)
    assert {("backbones", "llada-tiny", "label"), ("backbones", "llada-tiny", "folder")} <= hostile
    assert (("results",) in hostile) == (value == SHELL)
    said = Workspace(tmp_path, *CONFIGS).dry_run("-p", over=config)
    assert len(re.findall(r"^(?:local)?rule ", said, re.MULTILINE)) > 30
    assert set(re.findall("Shell command: (.*)", said)) == {"None"}


@pytest.mark.slow
def test_rules_write_into_a_folder_of_any_name(tmp_path):
    """By a script, and by the one command of a shell."""
    made = [f"{SHELL}/corpus/en-zh/test/{name}.jsonl" for name in ("grammar", "dev")]
    Workspace(tmp_path, *CONFIGS, {"results": SHELL}, real=True).run("--cores", "1", *made)
    assert [len((tmp_path / path).read_text().splitlines()) for path in made] == [12, 40]
    assert not [*tmp_path.rglob("X")]
