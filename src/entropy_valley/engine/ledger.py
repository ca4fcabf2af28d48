"""What a job was asked for, what the store gave, and what the model really ran."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Ledger:
    """Counts of one job. Unlike the rows' counts they depend on what the store held, so no declared output has them.

    ``asked`` and ``computed`` count results: canvases, sentences of a beam search, or a length head. ``passes``,
    ``tokens`` and ``rows`` are forward passes, tokens in them, and rows of the LM head; ``loads`` are models loaded.
    """

    asked: int = 0
    computed: int = 0
    passes: int = 0
    tokens: int = 0
    rows: int = 0
    loads: int = 0

    def count(self, **counts: int) -> None:
        """Add to the counts by name."""
        for name, value in counts.items():
            setattr(self, name, getattr(self, name) + value)

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    def text(self) -> str:
        """One line for the log."""
        return (
            f"{self.asked} results asked for, {self.asked - self.computed} shared, {self.computed} computed "
            f"in {self.passes} passes of {self.tokens} tokens, {self.rows} head rows; models loaded: {self.loads}"
        )
