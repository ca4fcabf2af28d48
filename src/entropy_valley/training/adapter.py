"""LoRA adapters: attached to a model, saved after training or taken as given, and checked before use."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from entropy_valley import files, hub
from entropy_valley.errors import InputError
from entropy_valley.model import adapters, decoder
from entropy_valley.model.adapters import FACTS, LOSSES, Adapter
from entropy_valley.model.attention import pack
from entropy_valley.model.checkpoint import checkpoint_digest, config_arguments, read_origin
from entropy_valley.model.decoder import adapted_layers, drawn_lora, linear_layer
from entropy_valley.model.families import LORA_TARGETS, find_family
from entropy_valley.model.load import Backbone, empty_model, fetch_adapter, torch_dtype
from entropy_valley.model.prompt import attention_of
from entropy_valley.training.log import history_csv
from entropy_valley.training.loss import seed_of

if TYPE_CHECKING:
    from entropy_valley.model.decoder import Decoder
    from entropy_valley.model.families import Family
    from entropy_valley.training.settings import Lora

# --- The adapters of a model that is to be trained.


def lora_modules(model: Any, family: Family, kind: str = "blocks") -> list[str]:
    """Full paths of the modules to adapt: :data:`.LORA_TARGETS` in every block, none outside the blocks.

    Short names would be ambiguous: in LLaDA both the LM head and the FFN output are called ``ff_out``. With the kind
    "by_name" they are what counts, as in the authors' code: all modules with one of the family's bare names.
    """
    if kind == "by_name":
        bare = {name: family.released_name(name).rpartition(".")[2] for name, _ in model.named_modules()}
        return sorted(name for name in bare if bare[name] in family.lora_names)
    path = re.compile(rf"model\.layers\.\d+\.(self_attn|mlp)\.({'|'.join(LORA_TARGETS)})")
    matching = [name for name, _ in model.named_modules() if path.fullmatch(name)]
    wanted = model.config.num_hidden_layers * len(LORA_TARGETS)
    if len(matching) != wanted:
        raise RuntimeError(f"{len(matching)} modules to adapt, not {wanted}: {matching}")
    return sorted(matching)


def attach_lora(model: Decoder, family: Family, settings: Lora, seed: int) -> Decoder:
    """The model, with seeded float32 adapters beside exactly :func:`lora_modules`: all that is trained."""
    wanted = set(lora_modules(model, family, settings.targets))
    torch.manual_seed(seed_of(seed, "lora"))
    names = [name for name, _ in model.named_modules() if name in wanted]  # in the model's order
    factors = {name: drawn_lora(linear_layer(model, name), settings.rank) for name in names}
    scaling, rounded = settings.alpha / settings.rank, settings.products == "backbone"
    decoder.attach_lora(model.requires_grad_(False), factors, scaling, settings.dropout, rounded)
    return model


def trainable(model: Any) -> list[torch.nn.Parameter]:
    """The adapters' parameters."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


# --- Saving a trained adapter: written in PEFT's format, checked, and kept only if it passes the checks.


PACKAGES = ("torch", "transformers", "deepspeed")


class AdapterError(RuntimeError):
    """An adapter that fails a check."""


def trained(model: Decoder, settings: Lora, checkpoint: Path) -> Adapter:
    """The adapter beside the weights of ``model``; the folder ``checkpoint`` holds the backbone."""
    layers = sorted(adapted_layers(model).items())
    pairs = {name: (_on_host(layer.lora_A), _on_host(layer.lora_B)) for name, layer in layers}
    base = read_origin(checkpoint).get("repository")  # never a local path
    return Adapter(pairs, settings.alpha, dropout=settings.dropout, base=base)


def _on_host(side: torch.Tensor) -> torch.Tensor:
    return side.detach().float().cpu().contiguous()


def versions() -> dict[str, str]:
    """The versions of the packages that training numbers depend on."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def is_finished(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Whether ``folder`` already holds this adapter, whole: a job that starts again costs nothing.

    Packages of other versions than then are no reason to train again.
    """
    written = adapters.read_facts(folder)
    if any(written.get(key) != value for key, value in identity.items()) or not (folder / LOSSES).exists():
        return False
    try:
        return adapters.read_adapter(folder, find_family(written["family"])).digest == written["adapter_digest"]
    except InputError:  # cut or damaged
        return False


def save(
    backbone: Backbone,
    checkpoint: Path,
    folder: Path,
    more: Mapping[str, Any],
    history: Sequence[Sequence[float]],
    settings: Lora,
) -> None:
    """Write ``adapter_model.safetensors``, ``adapter_config.json``, ``adapter.json`` and ``losses.csv``; check them.

    ``backbone`` is the adapted one and ``checkpoint`` its folder. ``more`` is added to ``adapter.json``; ``history``
    holds the values of ``losses.csv`` by step. Nothing that differs from run to run is written. Afterwards the weights
    of ``backbone`` are the merged ones. Raises AdapterError, and writes no folder, if the adapter fails a check.
    """
    change = trained(backbone.model, settings, checkpoint)
    with files.atomic_folder(folder) as new:
        adapters.write_adapter(change, new)
        origin = {"backbone_digest": backbone.digest, "family": backbone.family.name, "versions": versions()}
        files.write_json(new / FACTS, {**more, **origin, **summary(change, backbone.model)})
        files.write_text(new / LOSSES, history_csv(history))
        # Before the folder is at its final path, the adapter passes three checks.
        if differing := set(lora_modules(backbone.model, backbone.family, settings.targets)) ^ change.pairs.keys():
            raise AdapterError(f"the adapted modules differ from the wanted ones by {sorted(differing)}")
        check_values(change)
        check_effect(backbone, new)


def summary(adapter: Adapter, model: Any) -> dict[str, Any]:
    """The fields that ``adapter.json`` has for every adapter, trained here or given."""
    return {
        "adapter_digest": adapter.digest,
        "trainable_parameters": adapter.parameters,
        "vocabulary": model.config.vocab_size,
    }


def check_values(adapter: Adapter) -> None:
    """Raise AdapterError for a tensor that is empty or not finite, and for an adapter that is not trained."""
    bad = [
        f"{module}.lora_{side}"
        for module, pair in adapter.pairs.items()
        for side, tensor in zip("AB", pair, strict=True)
        if tensor.numel() == 0 or not tensor.isfinite().all()
    ]
    if bad:
        raise AdapterError(f"empty or not finite: {', '.join(bad)}")
    if not any(down.any() and up.any() for down, up in adapter.pairs.values()):
        raise AdapterError("every lora_B is zero, or its lora_A: the adapter is not trained")


def check_effect(backbone: Backbone, folder: Path) -> None:
    """Raise AdapterError unless the adapter changes logits, read from ``folder`` and merged as decoding merges it.

    It is merged into ``backbone`` itself: loading a second one would take as much memory and time again.
    """
    written = adapters.read_adapter(folder, backbone.family)
    model = backbone.model
    decoder.detach_lora(model)
    sequence = pack([[backbone.eos_id, 0, 1, backbone.eos_id]], model.device)
    with torch.inference_mode():
        before = model.lm_head(model.hidden_states(sequence))
        adapters.merge_adapter(model, written)
        after = model.lm_head(model.hidden_states(sequence))
    if torch.equal(before, after):
        raise AdapterError("the adapter does not change the logits")


# --- A given adapter instead of training: fetched, checked by its matrices, written in our layout.


@dataclass(frozen=True)
class Adoption:
    """One adapter to adopt: the params of the rule ``adopt_adapter`` and its folders.

    ``folder`` holds the given adapter. Without it the adapter is fetched into ``work`` from the repository in the
    params, if it is small or the config has ``agreed`` to large downloads.
    """

    spec: Mapping[str, Any]
    backbone: Path
    out: Path
    work: Path
    folder: Path | None = None
    agreed: bool = True

    @property
    def key(self) -> str:
        """The config key that names a local copy."""
        return f"`released.{self.spec['backbone']}.{self.spec['direction']}.{self.spec['seed']}.folder`"


def adopt(job: Adoption) -> None:
    """Write the given adapter to ``job.out``, unless it holds this adapter already.

    No weights are loaded: this job needs a network, and login nodes have little memory. The checkpoint's files are read
    only for their digest, once per machine. The matrices show whether the adapter can change the logits at all. It may
    adapt other modules than our training would; ``adapter.json`` lists them. Raises InputError for an adapter that
    cannot be read, belongs to another backbone or attention or fails a check, and if ``job.out`` holds an adapter
    trained here. Of an adapter without ``adapter.json`` the params say which attention it was trained with.
    """
    present = adapters.read_facts(job.out)
    if present and not present.get("adopted"):
        raise InputError(job.out, "holds an adapter trained here", "Give another `results`, or move it.")
    digest = checkpoint_digest(job.backbone)
    same = present.get("spec") == job.spec and present["backbone_digest"] == digest
    # Without a pinned revision the adapter that was fetched first stays.
    if same and (job.folder is None or present["source"]["digest"] == _folder_digest(job.folder)):
        return
    with _given(job) as (folder, source):
        _take(job, folder, source, digest)


@contextlib.contextmanager
def _given(job: Adoption) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the given adapter's folder and origin. A download is removed when the block succeeds."""
    if job.folder is None:
        given = job.spec["source"]
        with files.locked(job.work):
            source = hub.listing(given["repository"], given["revision"], job.key)
            work = job.work / source.repository / source.commit  # another source's partial download is not reused
            folder = fetch_adapter(source, given["subfolder"], work, job.key, job.agreed)
            yield folder, given | {"revision": source.commit}
            shutil.rmtree(job.work)
    elif job.folder.is_dir():
        yield job.folder, {}
    else:
        raise InputError(job.folder, "no such folder", f"Correct {job.key}.")


def _take(job: Adoption, folder: Path, source: Mapping[str, Any], backbone_digest: str) -> None:
    """Check the adapter in ``folder`` and write it with our ``adapter.json``."""
    family = find_family(job.spec["family"])
    model = empty_model(family, config_arguments(job.backbone, family), torch_dtype("bfloat16"))
    adapters.checked_facts(folder, backbone_digest, attention_of(job.spec))
    given = adapters.read_adapter(folder, family, model)
    try:
        check_values(given)
    except AdapterError as error:
        raise InputError(folder, str(error), f"Give a trained adapter of {job.spec['backbone']}.") from None
    adapted, wanted = given.pairs.keys(), set(lora_modules(model, family))
    differences = {"not_adapted": sorted(wanted - adapted), "also_adapted": sorted(adapted - wanted)}
    for what, modules in differences.items():
        if modules:
            print(f"{what.replace('_', ' ')}: {len(modules)} modules, {modules[0]} …", file=sys.stderr)
    repository = read_origin(job.backbone).get("repository")
    with files.atomic_folder(job.out) as new:
        adapters.write_adapter(dataclasses.replace(given, base=repository or given.base), new)
        facts = {
            "adopted": True,
            "backbone_digest": backbone_digest,
            "seed": job.spec["seed"],
            "spec": job.spec,
            "source": {**source, "digest": _folder_digest(folder)},
            "family": family.name,
            **differences,
            **summary(given, model),
        }
        files.write_json(new / FACTS, facts)


def _folder_digest(folder: Path) -> str:
    return files.digest({name: files.file_digest(folder / name) for name in adapters.FILES if (folder / name).exists()})
