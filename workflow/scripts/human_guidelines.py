"""Write the guidelines for the annotators of a pack, as Markdown and as PDF."""

from __future__ import annotations

import argparse
from pathlib import Path

from entropy_valley import files, run
from entropy_valley.human_evaluation import guidelines, pdf
from entropy_valley.human_evaluation.pack import Pack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--language", choices=guidelines.LANGUAGES, required=True)
    parser.add_argument("--md", type=Path, required=True, help="output")
    parser.add_argument("--pdf", type=Path, required=True, help="output")
    options = parser.parse_args()
    text = guidelines.text(Pack.read(options.pack), options.language)
    files.write_text(options.md, text)
    pdf.write(options.pdf, text)


if __name__ == "__main__":
    run.script(main)
