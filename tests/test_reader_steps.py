"""How far a reader walks: the files of the package that a task enters, and the jumps between them.

A file is entered when one of its functions runs. A jump is a call from a function of one file of the package into a
function of another; what other libraries call in between is passed over. Imports do not count.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import finished
import pytest
import tiny_checkpoints
from tiny_checkpoints import ROWS, SOURCES

import entropy_valley
from entropy_valley.experiment.config.load import base_files, load_files
from entropy_valley.files import write_jsonl
from entropy_valley.lengths import make_method
from entropy_valley.model.load import load_backbone
from entropy_valley.model.prompt import Prompt
from entropy_valley.translation import translations
from entropy_valley.translation.job import Execution
from entropy_valley.translation.translator import Translator

RATIOS = [0.8, 0.9, 1.0, 1.1, 1.2]
PACKAGE = f"{Path(entropy_valley.__file__).parent}/"


class Steps(NamedTuple):
    """``files``, in the order in which they are entered, and the number of ``jumps`` between them."""

    files: list[str]
    jumps: int


def steps(task: Callable[[], object]) -> Steps:
    """The steps of a task. What it does only once in a process should have run before."""
    files: dict[str, None] = {}
    jumps = 0

    def profile(frame, event, _):
        nonlocal jumps
        if event != "call" or not _is_ours(frame):
            return
        files.setdefault(frame.f_code.co_filename.removeprefix(PACKAGE))
        caller = frame.f_back
        while caller and not _is_ours(caller):
            caller = caller.f_back
        jumps += bool(caller) and caller.f_code.co_filename != frame.f_code.co_filename

    sys.setprofile(profile)
    try:
        task()
    finally:
        sys.setprofile(None)
    return Steps(list(files), jumps)


def _is_ours(frame) -> bool:
    name = frame.f_code.co_filename  # that of a template ends otherwise: it has no functions
    return name.startswith(PACKAGE) and name.endswith(".py") and frame.f_code.co_name != "<module>"


def of_translation(folder: Path) -> Steps:
    """One sentence by EV, all five ratios of its grid, on a tiny LLaDA that is written into ``folder``."""
    tiny_checkpoints.write(folder, "llada", eos=4)
    backbone = load_backbone(folder, "llada")
    method = make_method("ev", {"ratios": RATIOS})
    translator = Translator(backbone, Prompt("{src} = ", backbone.tokenizer), method)
    translator.translate(SOURCES[:1])
    return steps(lambda: translator.translate(SOURCES[:1]))


def of_translate_rule(folder: Path) -> Steps:
    """What rule ``translate`` does for the same sentence: a set of one cell, on a model that must be loaded."""
    tiny_checkpoints.write(folder / "checkpoint", "llada", eos=4)
    write_jsonl(folder / "dev.jsonl", ROWS[:1])
    params = {
        **{"family": "llada", "prompt": "{src} = ", "bos": False, "shifted": False, "precision": "float32"},
        **{"methods": {"ev": {"ratios": RATIOS}}, "orders": {"med": {"order": "med", "order_settings": {}}}},
        **{"schedule": "llada", "cells": [["dev", "ev", "med", 32]], "made_from": {}},
    }

    def run(name: str) -> None:
        execution = Execution(folder / "checkpoint", store=folder / name / "store")
        translations.write(params, execution, [str(folder / "dev.jsonl")], str(folder / name / "translations.jsonl"))

    run("first")
    return steps(lambda: run("second"))


def of_config() -> Steps:
    """Loading ``config.yaml``."""
    load_files(base_files())
    return steps(lambda: load_files(base_files()))


def of_table(folder: Path) -> Steps:
    """The main table of one run's cells, from its results to five files."""
    run = finished.Run(folder, matrix={"backbones": ["llada-tiny"], "directions": ["en-zh"], "seeds": [1]})
    report = run.report("tables/main")
    outputs = [f"{run.root}/tables/main.{ending}" for ending in report.endings]
    report.write(outputs)
    return steps(lambda: report.write(outputs))


@pytest.mark.parametrize(
    ("walked", "most_files", "most_jumps"),
    [(of_translation, 16, 159), (of_translate_rule, 27, 373), (of_config, 12, 142), (of_table, 11, 124)],
)
def test_a_reader_goes_through_few_files(tmp_path, walked, most_files, most_jumps):
    files, jumps = walked() if walked is of_config else walked(tmp_path)
    assert len(files) <= most_files and jumps <= most_jumps, (files, jumps)
