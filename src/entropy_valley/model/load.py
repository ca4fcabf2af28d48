"""From a checkpoint folder, downloaded or not, and an adapter to a frozen model."""

import copy
import dataclasses
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from entropy_valley import files, hub, machine
from entropy_valley.errors import InputError, note, unknown
from entropy_valley.model import adapters, checkpoint
from entropy_valley.model.checkpoint import Checkpoint, load_tokenizer
from entropy_valley.model.decoder import Decoder
from entropy_valley.model.families import (
    FAMILIES,
    NEW_FAMILY,
    STOCK_CLASSES,
    STOCK_FIELDS,
    Config,
    Family,
    Release,
    find_family,
)
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX
from entropy_valley.model.wrapped import Wrapped, stock_module
from entropy_valley.settings import JsonObject, read_object

NF4 = "nf4"  # a precision: bfloat16 with the weights of the layers in 4 bits, for decoding alone
NO_TOKEN = -1  # an id that no token has


@dataclass(frozen=True)
class Backbone:
    """A frozen model, its tokenizer and the ids that decoding needs; an autoregressive one has no mask (``NO_TOKEN``).

    ``shifted``: the logits of slot i are read from row i - 1. ``context``: the largest number of tokens of prompt and
    canvas together. ``float32_head``: the logits of a bfloat16 model are computed in float32 from its last states.
    ``attention``: one of :data:`.prompt.Attention`.
    """

    family: Family
    model: Decoder
    tokenizer: Any
    mask_id: int
    eos_id: int
    bos_id: int | None
    digest: str
    shifted: bool
    context: int
    float32_head: bool = True
    attention: str = BOTH_WAYS

    def prefix(self, prompt: int) -> int:
        """How many rows of a prompt of so many tokens attend to one another alone.

        The row that slot 0 is read from is none of them: it sees the whole canvas.
        """
        return prompt - int(self.shifted) if self.attention == PREFIX else 0

    @functools.cached_property
    def vocabulary(self) -> int | None:
        """The ids that may be predicted are below this one: a model may have more embeddings than its tokenizer has
        tokens. None without a tokenizer."""
        return max(self.tokenizer.get_vocab().values()) + 1 if self.tokenizer else None

    @property
    def device(self) -> torch.device:
        return self.model.device


def load_backbone(
    folder: str | Path | Checkpoint,
    family: str = "",
    *,
    device: str = "cpu",
    dtype: str = "float32",
    adapter: str | Path | None = None,
    merge: bool = True,
    shifted: bool | None = None,
    float32_head: bool = True,
    attention: str = BOTH_WAYS,
) -> Backbone:
    """Load a released checkpoint, tensor by tensor, and merge an adapter by PEFT.

    The checkpoint is a folder and its family, or what has been read of them. With ``merge=False`` PEFT's layers stay
    beside the weights in float32, as in training. ``shifted`` overrides the family's; ``float32_head`` and
    ``attention`` are :class:`Backbone`'s. With the ``dtype`` nf4 the model is loaded and merged in bfloat16 on the
    host, and goes to the device layer by layer, in 4 bits. Raises InputError for files that do not fit the family or
    one another.
    """
    known = folder if isinstance(folder, Checkpoint) else Checkpoint.read(folder, family)
    # The current GPU by its number: for safetensors a bare "cuda" is the first GPU, in every process.
    device = str(torch.empty(0, device=device).device)
    model: Any
    if not known.family.is_stock:
        model = _load_decoder(known, device, dtype, adapter, merge, attention)
    elif adapter is not None or dtype == NF4 or attention == PREFIX:
        problem = "a stock class runs without an adapter, the precision nf4 and prefix attention"
        raise InputError(known.folder, problem, "Leave them out.")
    else:
        model = Wrapped(stock_module(known.folder, torch_dtype(dtype)).to(device).eval())
    return Backbone(
        family=known.family,
        model=model.eval().requires_grad_(False),
        tokenizer=known.tokenizer,
        mask_id=NO_TOKEN if known.ids.mask is None else known.ids.mask,
        eos_id=known.ids.eos,
        bos_id=known.ids.bos,
        digest=known.digest,
        shifted=known.family.shifted if shifted is None else shifted,
        context=known.context,
        float32_head=float32_head,
        attention=attention,
    )


def _load_decoder(
    known: Checkpoint, device: str, dtype: str, adapter: str | Path | None, merge: bool, attention: str
) -> Decoder:
    """The decoder with the weights of a checkpoint, and its adapter."""
    model = empty_model(known.family, known.arguments, torch_dtype(dtype))
    place = "cpu" if dtype == NF4 else device
    _require_memory(model, place, known.folder)
    if adapter is not None:
        adapters.require_same(Path(adapter), known.digest, attention)
        change = adapters.read_adapter(Path(adapter), known.family)
        # On meta: before the weights are read. Only a bias may fail to merge; a product there loads torch's compiler.
        adapters.attach(copy.deepcopy(model), change, adapter, merge and bool(change.settings.get("lora_bias")))
        if dtype == NF4 and not merge:
            raise InputError("precision nf4", "an adapter is merged before", "Merge it, or use another precision.")
    checkpoint.fill(model, known.family, known.folder, place)
    if adapter is not None:
        adapters.attach(model, change, adapter, merge)
    if dtype == NF4:
        quantise(model, device)
    return model


def _require_memory(model: Decoder, device: str, folder: Path) -> None:
    """Raise InputError where the weights alone are more than the memory of the machine, or than the GPU has free."""
    needed = sum(weight.nbytes for weight in model.parameters())
    memory = machine.memory() if device == "cpu" else torch.cuda.mem_get_info(device)[0]
    if needed > memory:
        precision = str(model.dtype).removeprefix("torch.")
        problem = f"its weights need {machine.amount(needed)} in {precision}, the memory has {machine.amount(memory)}"
        raise InputError(folder, problem, "Use one with more memory, or a smaller precision or backbone.")


def torch_dtype(name: str) -> torch.dtype:
    if name not in (names := {"float32": torch.float32, "bfloat16": torch.bfloat16, NF4: torch.bfloat16}):
        raise InputError("dtype", unknown(name, f"{name!r} is unknown", names), "Give one of these.")
    return names[name]


def quantise(model: Decoder, device: str) -> None:
    """Put the products of the layers in 4 bits on the device, by bitsandbytes, and all else as it is."""
    try:
        from bitsandbytes.nn import Linear4bit, Params4bit
    except ImportError as error:
        remedy = "pip install bitsandbytes, or use another precision."
        raise InputError("precision nf4", f"bitsandbytes cannot be imported ({error})", remedy) from None
    for layer in model.model.layers:
        for name, part in [*layer.named_modules()]:
            if isinstance(part, torch.nn.Linear):
                small = Linear4bit(part.in_features, part.out_features, compute_dtype=model.dtype, device="meta")
                small.weight, small.bias = Params4bit(part.weight.data, False, quant_type=NF4), part.bias
                layer.set_submodule(name, small)
        layer.to(device)  # bitsandbytes quantises here
    model.to(device)


def require_device(name: str, other: str = 'device="cpu"') -> None:
    """Raise InputError where there is no such device; ``other`` is how to choose the CPU."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise InputError("device", f"{name!r} is neither cpu nor cuda", f"Give {other}, or cuda.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("device", f"{name}, but torch sees no GPU here", f"Give {other}.")


def empty_model(family: Family, arguments: JsonObject, dtype: torch.dtype, device: str = "meta") -> Decoder:
    """A decoder of the family, from the arguments of its stock config; on ``meta`` its tensors take no memory."""
    own = dict(causal=family.causal, float32_rotary=family.float32_rotary, **STOCK_CLASSES[family.architecture])
    with torch.device(device):
        return Decoder(Config(**arguments, **own)).to(dtype)


def stock_model(family: Family, model: Decoder, attention: str = "eager") -> Any:
    """The class of transformers that computes what ``model`` does, on the same weights and with one of transformers'
    own attentions, "eager" or "sdpa": the oracle, and what has ``generate``."""
    import transformers

    stock, own = getattr(transformers, family.architecture), model.config
    given = {field: getattr(own, field) for field in STOCK_FIELDS} | {"head_dim": own.head_width}
    config = stock.config_class(**given)
    with torch.device("meta"):
        built = stock._from_config(config, attn_implementation=attention, dtype=model.dtype).eval()
    for name, module in [*built.named_modules()]:
        if isinstance(module, torch.nn.Linear):
            built.set_submodule(name, model.get_submodule(name))  # with its adapter
            continue
        for leaf, _ in [*module.named_parameters(recurse=False)]:
            setattr(module, leaf, model.get_parameter(f"{name}.{leaf}"))
    with model.device:
        rotary = type(built.model.rotary_emb)(config=config)
    if own.float32_rotary:
        rotary.register_forward_pre_hook(lambda _, given: (given[0].float(), *given[1:]))
        built.set_attn_implementation(_in_dtype_of_v(attention))
    built.model.rotary_emb = rotary
    return built


def _in_dtype_of_v(attention: str) -> str:
    """The name of that attention, registered in transformers, for q and k that were rotated in float32."""
    from transformers import AttentionInterface
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama.modeling_llama import eager_attention_forward

    attend = eager_attention_forward if attention == "eager" else ALL_ATTENTION_FUNCTIONS[attention]

    def cast(module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **how: Any) -> Any:
        return attend(module, query.to(value.dtype), key.to(value.dtype), value, *rest, **how)

    AttentionInterface.register(f"{attention}_in_dtype_of_v", cast)
    return f"{attention}_in_dtype_of_v"


# --- Released checkpoints and adapters: downloaded, and checked before a GPU job loads them.


def fetch(
    spec: JsonObject, folder: Path, own: bool, agreed: bool, option: str = hub.CONFIRM, key: str | None = None
) -> JsonObject:
    """Download a checkpoint unless its folder exists, check it, and return its manifest.

    ``spec``: the params of the rule ``fetch_backbone``. ``own``: the folder is the user's, which gets a hidden file of
    digests and nothing else. ``agreed``: whether the user has agreed to large downloads; ``option`` does it on the
    command line. ``key`` names a local copy, by default in the config. Raises InputError for what cannot be downloaded
    or loaded, and for a folder that holds another repository or revision.
    """
    place = key or f"`backbones.{spec['backbone']}.folder`"
    if not own:
        repository, revision = spec["repository"], spec["revision"]

        def fill(work: Path) -> None:
            source = hub.listing(repository, revision, place)
            # In patterns, * matches / too; LLaMA-3's `original/` holds the same model again.
            of_root = tuple(file for file in source.files if "/" not in file.name)
            source = dataclasses.replace(source, licence=spec["licence"] or source.licence, files=of_root)
            checkpoint.require_safetensors([file.name for file in of_root], repository)
            hub.require_agreement(source, hub.CHECKPOINT_FILES, agreed, option)
            hub.fetch(source, work, hub.CHECKPOINT_FILES, place)
            checkpoint.write_manifest(work, find_family(spec["family"]), repository=repository, revision=source.commit)

        files.make_once(folder, fill)
        hub.require_origin(folder, checkpoint.read_origin(folder), repository, revision)
    elif not folder.is_dir():
        raise InputError(folder, "no such folder", f"Correct {place}.")
    # A GPU job would else be the first to find a problem.
    known = Checkpoint.read(folder, spec["family"])
    if known.family.is_stock:
        stock_module(folder, torch.bfloat16, "meta")
    else:
        checkpoint.check(empty_model(known.family, known.arguments, torch.float32), known.family, folder)
    return checkpoint.manifest(folder)


def fetch_adapter(
    source: hub.Listing, subfolder: str | None, work: Path, key: str, agreed: bool, option: str = hub.CONFIRM
) -> Path:
    """Download an adapter into ``work``; its folder there. ``key``, ``agreed`` and ``option`` are as in :func:`fetch`.

    Raises InputError for one without safetensors, for a large one without agreement, and as :func:`hub.fetch` does.
    """
    within, paths = Path(subfolder or ""), [Path(file.name) for file in source.files]
    names = [path.name for path in paths if path.parent == within]
    checkpoint.require_safetensors(names, str(Path(source.repository, within)))
    patterns = [str(within / name) for name in adapters.FILES]
    hub.require_agreement(source, patterns, agreed, option)
    hub.fetch(source, work, patterns, key)
    return work / within


def kept_adapter(
    repository: str, revision: str | None, subfolder: str | None, key: str, agreed: bool, option: str = hub.CONFIRM
) -> Path:
    """The folder of an adapter of the hub among this user's downloads; it is fetched once."""
    folder = hub.place(repository, revision, subfolder)

    def fill(work: Path) -> None:
        fetch_adapter(hub.listing(repository, revision, key), subfolder, work, key, agreed, option)

    files.make_once(folder, fill)
    return folder / (subfolder or "")


# --- Checkpoints and adapters as users of the library name them: a folder, or a repository of the hub.


def find_checkpoint(name: str | Path, family: str | None = None) -> tuple[Path, str]:
    """Folder and family of a checkpoint: a folder, or ``OWNER/NAME`` or ``OWNER/NAME@COMMIT`` of the hub.

    A repository is downloaded once, a release at its pinned commit; where the hub cannot be reached, the commit in
    Hugging Face's own cache is used. Without a ``family`` it is that of the release, or the one that the folder's files
    say. Raises InputError where they do not say it, and as :func:`fetch` does.
    """
    if (folder := Path(name).expanduser()).is_dir():
        return folder, family or _family_of(folder)
    repository, commit = hub.named(name)
    names = [family] if family else [one.name for one in FAMILIES.values() if one.release(repository)]
    if not names:
        remedy = f"Give its family, one of {', '.join(FAMILIES)}; {NEW_FAMILY}."
        problem = "nothing here says of which family it is, and there is no such folder here"
        raise InputError(repository, problem, remedy)
    release = find_family(names[0]).release(repository) or Release(repository, licence="", config={}, ids={})
    revision = commit or release.revision
    spec = {"family": names[0], "repository": repository, "revision": revision, "licence": release.licence}
    folder = hub.place(repository, revision)
    try:
        fetch(spec, folder, own=False, agreed=True, key="the argument `backbone` (there is no such folder here)")
    except hub.UnreachableError:
        if (cached := hub.cached(repository, revision)) is None:
            raise
        note(f"{repository}: the hub cannot be reached; {cached} is used")
        return cached, names[0]
    return folder, names[0]


def _family_of(folder: Path) -> str:
    """What ``checkpoint.json`` says, else the masked diffusion family of the type in ``config.json``."""
    if family := checkpoint.read_origin(folder).get("family"):
        return find_family(family, folder / checkpoint.MANIFEST).name
    kind = read_object(folder / checkpoint.CONFIG).get("model_type")
    families = [one for one in FAMILIES.values() if one.model_type == kind and not one.causal]
    if len(families) > 1:  # one without the tokens of chats was not tuned on them
        vocabulary = load_tokenizer(folder, families[0]).get_vocab()
        families = [one for one in families if vocabulary.keys() >= {*one.chat_tokens}]
    names = [one.name for one in families]
    if len(names) == 1:
        return names[0]
    problem = f"its model_type {kind!r} is that of {'several families' if names else 'no family here'}"
    raise InputError(
        folder / checkpoint.CONFIG, problem, f"Give its family, one of {', '.join(names or FAMILIES)}; {NEW_FAMILY}."
    )


def find_adapter(name: str | Path) -> Path:
    """The folder of an adapter: a folder, or ``OWNER/NAME`` or ``OWNER/NAME@COMMIT`` of the hub, downloaded once."""
    if (folder := Path(name).expanduser()).is_dir():
        return folder
    repository, commit = hub.named(name)
    key = "the argument `adapter` (there is no such folder here)"
    return kept_adapter(repository, commit, None, key, agreed=True)
