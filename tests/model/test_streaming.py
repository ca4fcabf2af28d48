"""A checkpoint of 300 MB or more is loaded in hardly more memory than its model takes, whatever its dtype is."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from entropy_valley.model.families import find_family
from entropy_valley.model.load import empty_model

LAYERS, SHARDS = 4, 4  # of 17 M parameters in float32; two embeddings of 16 M come on top
LOADED = ("bfloat16", "float32")  # dtypes of the model: the smaller one first, for a peak is never forgotten
MEMORY, DISK = 2e9, 1e9

MEASURE = """
import json, sys
from entropy_valley.model.load import load_backbone

def status(field):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines[field].split()[0]) * 1024

small, large, *dtypes = sys.argv[1:]
load_backbone(small, "llada", dtype="bfloat16")  # what libraries take on first use
before = status("VmRSS")
for dtype in dtypes:
    model = load_backbone(large, "llada", dtype=dtype).model
    mapped = sum(".safetensors" in line for line in open("/proc/self/maps"))
    own = sum(tensor.nbytes for tensor in model.parameters())
    print(json.dumps({"own": own, "peak": status("VmHWM") - before, "mapped": mapped}))
    del model
"""


def available() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


@pytest.fixture
def stored(tiny, tmp_path):
    """The folder of a random LLaDA in four shards."""
    if shutil.disk_usage(tmp_path).free < DISK or available() < MEMORY:
        pytest.skip(f"needs {DISK / 1e9:.0f} GB of disk and {MEMORY / 1e9:.0f} GB of memory")
    folder = shutil.copytree(tiny["llada"][1], tmp_path / "large")
    family = find_family("llada")
    sizes = {"d_model": 1024, "mlp_hidden_size": 4096, "embedding_size": 16000, "n_heads": 8, "n_kv_heads": 8}
    config = json.loads((folder / "config.json").read_text()) | sizes | {"n_layers": LAYERS}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {
        family.released_name(name): tensor.shape
        for name, tensor in empty_model(family, family.to_stock(config), torch.float32).named_parameters()
    }
    random, names = 0.02 * torch.randn(16000 * 1024), list(shapes)
    for number in range(SHARDS):
        file = f"model-{number + 1:05d}-of-{SHARDS:05d}.safetensors"
        part = names[number * len(names) // SHARDS : (number + 1) * len(names) // SHARDS]
        save_file({name: random[: shapes[name].numel()].view(shapes[name]).clone() for name in part}, folder / file)
    (folder / "model.safetensors").unlink()
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) >= 2.9e8
    yield folder
    shutil.rmtree(folder)


@pytest.mark.cluster  # it writes 400 MB and reads them again
def test_memory(stored, tiny):
    command = [sys.executable, "-c", MEASURE, tiny["llada"][1], stored, *LOADED]
    lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    for measured, dtype in zip(map(json.loads, lines), LOADED, strict=True):
        assert measured["peak"] <= 1.15 * measured["own"], (dtype, measured)
        assert not measured["mapped"]  # pages that would come only with the first sentence
