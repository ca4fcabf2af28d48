"""What makes a translation doubtful before anybody has read it: unknown tokens, and a canvas of unusual entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from entropy_valley.decoding.translator import Translation, Translator

SENTENCES = 99  # then one sentence in a hundred of the same kind is above all of them by chance


@dataclass(frozen=True)
class Usual:
    """The highest entropy of so many development sentences, see :attr:`Translation.entropy`; None: there are none.

    A sentence like these is above all of n of them with a probability of 1 / (n + 1), whatever their distribution is.
    """

    highest: float | None = None
    sentences: int = 0

    @classmethod
    def of(cls, translator: Translator, sources: Sequence[str], file: str = "sources") -> Self:
        """Measured on the first sentences of a file, which errors name by their lines; no canvas is denoised."""
        first = sources[:SENTENCES]
        found = translator.entropies(first, [f"{file}:{number}" for number, _ in enumerate(first, 1)])
        return cls(max(found), len(found)) if found else cls()

    def hints(self, translator: Translator, source: str, translation: Translation) -> list[str]:
        """What to say of a sentence and its translation; nothing of most."""
        entropy, said = translation.entropy, []
        if entropy is not None and self.highest is not None and entropy > self.highest:
            said.append(
                f"entropy {entropy:.3g}, but at most {self.highest:.3g} in {self.sentences} development sentences: it "
                "may be unlike what the adapter was trained on"
            )
        if translator.has_unknown(source):
            said.append("has characters that the tokenizer does not know")
        return said
