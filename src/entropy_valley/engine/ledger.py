"""What a job was asked for, what the store gave, and what the model really ran."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Ledger:
    """Counts of one job. Unlike the rows' counts they depend on what the store held, so no declared output has them.

    ``asked`` and ``computed`` count results: canvases, sentences of a beam search, or a length head. ``passes``,
    ``tokens`` and ``rows`` are forward passes, tokens in them, and rows of the LM head; ``padded`` are tokens of dummy
    sequences, which are in none of these; ``loads`` are models loaded.
    """

    asked: int = 0
    computed: int = 0
    passes: int = 0
    tokens: int = 0
    rows: int = 0
    padded: int = 0
    loads: int = 0

    def count(self, **counts: int) -> None:
        """Add to the counts by name."""
        for name, value in counts.items():
            setattr(self, name, getattr(self, name) + value)

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    def text(self) -> str:
        """One line for the log."""
        padding = f" and {self.padded} of padding" if self.padded else ""
        return (
            f"{self.asked} results asked for, {self.asked - self.computed} shared, {self.computed} computed "
            f"in {self.passes} passes of {self.tokens} tokens{padding}, {self.rows} head rows; "
            f"models loaded: {self.loads}"
        )
