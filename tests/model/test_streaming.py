"""A checkpoint of half a gigabyte is loaded in hardly more memory than its model takes, whatever its dtype is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from entropy_valley import files
from entropy_valley.model import checkpoint
from entropy_valley.model.families import find_family
from entropy_valley.model.load import empty_model, torch_dtype

LAYERS = {"bfloat16": 14, "float32": 7}  # of 17 M parameters; two embeddings of 16 M come on top
LOADED = {"bfloat16": ["bfloat16", "float32"], "float32": ["bfloat16"]}  # smaller first: a peak is never forgotten
SHARDS = 4
MEMORY, DISK = 2e9, 1e9

MEASURE = """
import json, sys, torch
from transformers import LlamaForCausalLM
from entropy_valley.model.load import load_backbone

def status(field):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines[field].split()[0]) * 1024

small, large, *dtypes = sys.argv[1:]
load_backbone(small, "llada", dtype=dtypes[0])  # what libraries take on first use
before = status("VmRSS")
for dtype in dtypes:
    model = load_backbone(large, "llada", dtype=dtype).model
    mapped = sum(".safetensors" in line for line in open("/proc/self/maps"))
    own = sum(tensor.nbytes for tensor in model.parameters())
    print(json.dumps({"dtype": dtype, "own": own, "peak": status("VmHWM") - before, "mapped": mapped}))
    del model
"""


def available() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


@pytest.fixture(scope="module", params=LAYERS)
def stored(request, tiny, tmp_path_factory):
    """A random LLaDA in four shards and an index: the dtype of its files, and the folder."""
    folder = shutil.copytree(tiny["llada"][1], tmp_path_factory.mktemp("large") / request.param)
    if shutil.disk_usage(folder).free < DISK or available() < MEMORY:
        pytest.skip(f"needs {DISK / 1e9:.0f} GB of disk and {MEMORY / 1e9:.0f} GB of memory")
    write(folder, request.param)
    yield request.param, folder
    shutil.rmtree(folder)


def write(folder, dtype):
    family = find_family("llada")
    sizes = {"d_model": 1024, "mlp_hidden_size": 4096, "embedding_size": 16000, "n_heads": 8, "n_kv_heads": 8}
    config = json.loads((folder / "config.json").read_text()) | sizes | {"n_layers": LAYERS[dtype]}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {
        family.released_name(name): tensor.shape
        for name, tensor in empty_model(family, family.to_stock(config), torch_dtype(dtype)).named_parameters()
    }
    random, index, names = (0.02 * torch.randn(16000 * 1024)).to(torch_dtype(dtype)), {}, list(shapes)
    for number in range(SHARDS):
        file = f"model-{number + 1:05d}-of-{SHARDS:05d}.safetensors"
        part = names[number * len(names) // SHARDS : (number + 1) * len(names) // SHARDS]
        save_file({name: random[: shapes[name].numel()].view(shapes[name]).clone() for name in part}, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    files.write_json(folder / checkpoint.INDEX, {"weight_map": index})
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) >= 5e8


def test_memory(stored, tiny):
    kept, folder = stored
    command = [sys.executable, "-c", MEASURE, tiny["llada"][1], folder, *LOADED[kept]]
    lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    measured = [json.loads(line) for line in lines]
    assert [one["dtype"] for one in measured] == LOADED[kept]
    for one in measured:
        assert one["peak"] <= 1.15 * one["own"], one
        assert not one["mapped"]  # pages that would come only with the first sentence
