"""What `import entropy_valley` gives: the names of a library user, and no torch before they are used."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import entropy_valley


def test_a_name_is_imported_at_its_first_use():
    program = [
        "import sys, entropy_valley",
        "entropy_valley.released('en-zh')",
        "print(*{'torch', 'transformers', 'huggingface_hub', 'scipy'} & sys.modules.keys())",
        "from entropy_valley import *",
        "print(Translator.load.__name__, make_method('ev', {'ratios': [1.0]}).ratios)",
    ]
    told = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["", "load [1.0]"]


def test_the_notebook_runs_up_to_the_cells_for_a_gpu(monkeypatch, capsys):
    """Those run with the tiny model in the place of the large one."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(Path("docs/entropy_valley.ipynb").read_text(encoding="utf-8"))["cells"]
    install, tiny, *on_gpu = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) == 5 and [cell["metadata"] for cell in cells[3:]] == [{"tags": ["gpu"]}] * 2 and "%pip" in install
    names = {}
    exec(tiny, names)
    assert capsys.readouterr().out.startswith("Translation('Wir gehen nach Hause.', canvas=")
    for code in on_gpu:
        exec(code.replace('**released("en-zh"), device="cuda", dtype="bfloat16"', '**tiny("en-zh")'), names)
    assert capsys.readouterr().out.count("Translation(") == 2


def test_its_names():
    assert all(getattr(entropy_valley, name) for name in entropy_valley.__all__)
    assert dir(entropy_valley) == sorted(entropy_valley.__all__)  # what an editor offers
    assert entropy_valley.__version__ == importlib.metadata.version("entropy-valley")
    with pytest.raises(AttributeError, match="no attribute 'translator'"):
        _ = entropy_valley.translator


@pytest.mark.parametrize("direction", ["en-zh", "zh-en", "en-de"])
def test_what_belongs_to_a_released_adapter_is_that_of_the_config(direction):
    with open("config.yaml") as base, open("config/released.yaml") as released:
        paper, adapters = yaml.safe_load(base), yaml.safe_load(released)["released"]["llada-8b"]
    assert entropy_valley.released(direction) == {
        "backbone": "GSAI-ML/LLaDA-8B-Base",
        "adapter": adapters[direction][1]["repository"],
        "prompt": paper["directions"][direction]["prompt"],
        "ratios": paper["length_methods"]["ev"]["ratios"][direction],
    }


def test_a_direction_without_a_released_adapter():
    with pytest.raises(entropy_valley.InputError, match="no released adapter for 'en-fr'; did you mean en-zh"):
        entropy_valley.released("en-fr")
