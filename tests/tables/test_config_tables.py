"""The tables of hyperparameters and prompts: what the files beside the adapters say, and what the config gives."""

from __future__ import annotations

import pytest
from entropy_valley.tables.config_tables import PromptsTable, trainings
from making import made

from entropy_valley import files, results, tables
from entropy_valley.config import base_files, load_files


def write_adapters(root):
    """Params of two trained runs of a backbone and an adopted one of another."""
    runs = []
    for backbone, direction, seed, rate in (
        ("tiny", "en-zh", 1, 0.001),
        ("tiny", "en-de", 1, 0.002),
        ("given", "en-zh", 1, None),
    ):
        path = root / f"{direction}.{backbone}.json"
        training = {"betas": [0.9, 0.95], "learning_rate": rate, "epochs": None, "lora": {"rank": 8}}
        spec = {"training": training, "precision": "float32"} if rate else {}
        with results.made("train", {}, [], [path]) as record:
            files.write_json(path, {"spec": spec, "steps": 60, "trainable_parameters": 61440})
            record.facts.update({"device": "NVIDIA H20"} if direction == "en-zh" else {})
        runs.append({"path": str(path), "backbone": backbone, "direction": direction, "seed": seed})
    return {"adapters": runs, "backbones": [("tiny", "Tiny"), ("given", "Given")]}


def test_a_setting_without_a_printed_name_is_shown_where_it_is_not_the_default(tmp_path):
    params = write_adapters(tmp_path)
    path = params["adapters"][0]["path"]
    facts = files.read_json(path)
    facts["spec"]["training"] |= {"too_long": "drop", "keep_every": 4, "loss": {"antithetic": False, "eps": 1e-3}}
    files.write_json(path, facts)
    keys = set(trainings(params["adapters"])["key"])
    assert {"keep_every", "loss_antithetic", "loss_eps"} <= keys and "too_long" not in keys


def test_what_has_no_setting_is_told_of_what_was_trained_here(tmp_path):
    values = trainings(write_adapters(tmp_path)["adapters"]).set_index(["backbone", "direction", "key"])["value"]
    assert values["tiny", "en-zh", "device"] == "NVIDIA H20" and ("tiny", "en-de", "device") not in values
    assert values["tiny", "en-de", "optimizer"] == "AdamW" and values["tiny", "en-de", "selection"] == "last step"
    assert set(values["given"].index.get_level_values("key")) == {"steps", "trainable_parameters"}


def test_hyperparams_are_those_of_all_runs_of_the_tables():
    experiment = load_files(base_files())
    report = tables.configured(experiment)["tables/hyperparams"]
    assert len(report.inputs(experiment)) == 27 + 9
    assert "results/en-zh/llama3-8b/seed1/adapter/adapter.json" in report.inputs(experiment)
    assert "results/logs" not in files.canonical(report.params(experiment))  # logs may be removed


@pytest.mark.parametrize("table", ["hyperparams", "dream_instruct"])
def test_a_variant_with_the_adapters_of_another_backbone_trains_none(tmp_path, table):
    same = {"variant_of": "dream-7b", "label": "by floors", "adapter_of": "dream-7b"}
    block = {"hyperparams": "matrix", "dream_instruct": "instruct"}[table]
    over = {"backbones": {"floors": same}, block: {"backbones": ["llada-8b", "dream-7b", "floors"]}}
    files.write_json(tmp_path / "mine.yaml", over)  # JSON is YAML
    experiment = load_files([*base_files(), tmp_path / "mine.yaml"])
    report = tables.configured(experiment)[f"tables/{table}"]
    assert "results/en-zh/dream-7b/seed1/adapter/adapter.json" in report.inputs(experiment)
    assert not [path for path in report.inputs(experiment) if "/floors/" in path and "/adapter/" in path]
    assert '"floors"' in files.canonical(report.params(experiment))


@pytest.fixture
def prompts():
    def table(*names):
        experiment = load_files([*base_files(), *names])
        params = tables.configured(experiment)["tables/prompts"].params(experiment)
        made_table, numbers = made(PromptsTable, params)
        return [
            (group.label, [cell.text for cell in row.cells])
            for group in made_table.sections[0].groups
            for row in group.rows
        ], numbers

    return table


def test_a_backbone_that_decodes_behind_another_prompt_has_its_own_row(prompts):
    rows, numbers = prompts("config/authors.yaml")
    german = [texts for label, texts in rows if label == "En→De"]
    assert german[0][2] == "the same" and len(german) > 1
    assert any(texts[2] == "that of En→Zh" for texts in german)
    assert set(numbers) == {"direction", "backbone", "prompt", "decoded_as"}
