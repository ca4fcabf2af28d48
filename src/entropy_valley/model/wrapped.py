"""Any module of transformers in the place of the decoder: slower, and with the logits that it has by itself."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from entropy_valley.errors import InputError, brief, listed
from entropy_valley.files import readable
from entropy_valley.model.attention import Packed, Rows, pack
from entropy_valley.model.checkpoint import CONFIG, shards
from entropy_valley.settings import read_object

_HEADS = ("ForMaskedLM", "ForCausalLM", "LMHeadModel")  # of classes whose logits are of tokens
_FIRST, _OTHER, _SECOND = [3, 1, 4, 1], [3, 1, 4, 6], [5, 2, 6]  # what a module is tried on


def stock_module(folder: Path, dtype: torch.dtype, device: str | None = None) -> Any:
    """The class of transformers that ``config.json`` names, with its weights from safetensors. No code of others runs.

    On the ``device`` "meta" no weight is read, and only names and shapes are compared; without one it is on the CPU.
    Raises InputError for a class that is not there or gives no logits of tokens, and for weights that do not fit it.
    """
    import transformers

    shards(folder)  # raises where there are only pickles
    names = read_object(folder / CONFIG).get("architectures") or []
    name = str(names[0]) if isinstance(names, list) and names else ""
    kind = getattr(transformers, name, None) if name.endswith(_HEADS) else None
    if kind is None:
        problem = f"transformers {transformers.__version__} has no class {brief(name)!r} that gives logits of tokens"
        raise InputError(folder / CONFIG, problem, f"`architectures` names one that ends in {', '.join(_HEADS)}.")
    with readable(folder, "checkpoint", "Give the whole checkpoint, in safetensors."):
        how = dict(use_safetensors=True, local_files_only=True, output_loading_info=True, device_map=device)
        module, loaded = kind.from_pretrained(folder, dtype=dtype, **how)
    if missing := [f"{name} is missing" for name in loaded["missing_keys"]]:
        raise InputError(folder, listed(missing), "Fetch or make the checkpoint again.")
    return module


class Wrapped(nn.Module):
    """Runs a module that gives logits on packed sequences, as :class:`.Decoder` does.

    One block-diagonal mask for the whole pass says that each sequence attends inside itself alone: the cost grows with
    the square of the pass. A module that takes no such mask, as BERT does not, runs one sequence after the other. Where
    the head is a linear layer without bias, it is applied to the rows that are read; of other modules the logits of all
    rows are computed. Raises InputError for a module whose rows do not see those behind them.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.config, self.device, self.dtype = module.config, module.device, module.dtype
        self.model = nn.ModuleDict({"layers": module})  # whose weights the engine counts
        self._run, self.lm_head, self._apart = module, nn.Identity(), False
        with torch.inference_mode():
            self._apart = not self._takes_masks()
            if torch.equal(self._logits(_FIRST)[0], self._logits(_OTHER)[0]):
                problem = "its rows do not see those behind them, and it takes no 4-D mask"
                raise InputError(type(module).__name__, problem, "Give a module that is not causal.")
            self._use_states(module)

    def _logits(self, *sequences: list[int]) -> torch.Tensor:
        return self.hidden_states(pack(sequences, self.device))

    def _takes_masks(self) -> bool:
        """Whether a sequence has the logits beside another one that it has alone, of positions from 0 on."""
        try:
            together = self._logits(_FIRST, _SECOND)[: len(_FIRST)]
            everything = torch.zeros(1, 1, len(_FIRST), len(_FIRST), dtype=self.dtype, device=self.device)
            ids = torch.tensor([_FIRST], device=self.device)
            alone = self._run(input_ids=ids, attention_mask=everything).logits[0]
        except Exception:  # whatever a class of others raises for a mask of this shape
            return False
        return bool((together - alone).abs().max() <= 0.01 * alone.abs().max())

    def _use_states(self, module: Any) -> None:
        """Let the head have the states, where it makes the logits of them by a product alone."""
        head, body = module.get_output_embeddings(), module.base_model
        if type(head) is nn.Linear and head.bias is None and body is not module:
            logits, self._run = self._logits(_FIRST), body
            if torch.equal(head(self._logits(_FIRST)), logits):
                self.lm_head = head
            else:
                self._run = module

    def hidden_states(
        self, packed: Packed, rows: Rows | None = None, fill: int | None = None, compiled: bool = False
    ) -> torch.Tensor:
        """What the head makes logits of, (rows, width). Passes are neither padded nor compiled."""
        if self._apart:
            ids = packed.input_ids.split(packed.lengths, 1)
            states = torch.cat([_of(self._run(input_ids=sequence)) for sequence in ids])
        else:
            lengths = torch.tensor(packed.lengths, device=self.device)
            owner = torch.arange(len(lengths), device=self.device).repeat_interleave(lengths)
            mask = torch.zeros(len(owner), len(owner), dtype=self.dtype, device=self.device)
            mask.masked_fill_(owner[:, None] != owner, torch.finfo(self.dtype).min)
            given = {"input_ids": packed.input_ids, "position_ids": packed.position_ids}
            states = _of(self._run(**given, attention_mask=mask[None, None]))
        return states if rows is None else states[rows.places]


def _of(answer: Any) -> torch.Tensor:
    """The logits of an answer, or the last states of a module without a head: (rows, width)."""
    return answer.logits[0] if "logits" in answer else answer.last_hidden_state[0]
