"""The bytes that a computation holds, of tensors with or without data."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Held(TorchDispatchMode):
    """Counts the bytes of all tensors made while it is on."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self._storages = set()

    def leave_out(self, tensors):
        self._storages |= {tensor.untyped_storage()._cdata for tensor in tensors}

    def _drop(self, key, size):
        self._storages.discard(key)
        self.now -= size

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        out = operation(*arguments, **(options or {}))
        parts = (part for part in tree_leaves(out) if isinstance(part, torch.Tensor) and part.device.type != "meta")
        for storage in (part.untyped_storage() for part in parts):
            if storage._cdata not in self._storages:
                self._storages.add(storage._cdata)
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._drop, storage._cdata, storage.nbytes())
        return out
