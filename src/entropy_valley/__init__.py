"""Length-adaptive decoding for masked diffusion machine translation.

    from entropy_valley import Translator, released, tiny

    translator = Translator.load(**tiny("en-de"))  # or **released("en-zh"), device="cuda", dtype="bfloat16"
    print(translator.translate(["Delete the message."])[0].text)

A name is imported at its first use: ``import entropy_valley`` alone loads no torch.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entropy_valley.decoding.canvas import ProbeResult
    from entropy_valley.errors import InputError, SentenceError
    from entropy_valley.experiment.config.released import released
    from entropy_valley.experiment.frames import load_results
    from entropy_valley.lengths import LENGTH_METHODS, Choice, LengthMethod, Sentence, candidate_length, make_method
    from entropy_valley.shipped import tiny
    from entropy_valley.translation.choose_length import choose_length
    from entropy_valley.translation.translator import Translation, Translator

    __version__: str

# With this, a row of a float32 product has the same bits whatever rows are beside it, where Intel's MKL multiplies. MKL
# reads it before its first product. Else the bits depend on how many rows there are, if they are few: up to 15 on
# AVX-512.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

_MODULES = {
    "LENGTH_METHODS": "lengths",
    "Choice": "lengths",
    "InputError": "errors",
    "LengthMethod": "lengths",
    "ProbeResult": "decoding.canvas",
    "Sentence": "lengths",
    "SentenceError": "errors",
    "Translation": "translation.translator",
    "Translator": "translation.translator",
    "candidate_length": "lengths",
    "choose_length": "translation.choose_length",
    "load_results": "experiment.frames",
    "make_method": "lengths",
    "released": "experiment.config.released",
    "tiny": "shipped",
}
__all__ = [
    "LENGTH_METHODS",
    "Choice",
    "InputError",
    "LengthMethod",
    "ProbeResult",
    "Sentence",
    "SentenceError",
    "Translation",
    "Translator",
    "__version__",
    "candidate_length",
    "choose_length",
    "load_results",
    "make_method",
    "released",
    "tiny",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("entropy-valley")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__  # what an editor or a notebook offers
