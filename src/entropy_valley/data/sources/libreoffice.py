"""LibreOffice's help, translated by its teams, from Debian's packages; and mixtures of such sources."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from entropy_valley import files
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import KIND, Source
from entropy_valley.data.sources.published import HELD_OUT, HeldOut, Tatoeba
from entropy_valley.errors import InputError
from entropy_valley.settings import JsonObject
from entropy_valley.texts import decoded

LANGUAGES = {"en": "en-US", "de": "de", "zh": "zh-CN"}  # and the folder of each
# A heading or a paragraph with its id, but no line of program text, as its class says.
PARAGRAPH = re.compile(r'<(p|h[1-6]) id="(\w+)"(?! class="\w*code)[^>]*>(.*?)</\1>', re.DOTALL)


class LibreOfficeHelp(HeldOut):
    """Headings and paragraphs of LibreOffice's help, which have the same file and id in each language."""

    name: Literal["libreoffice_help"] = KIND
    folder: str = Field(
        description="where Debian's packages libreoffice-help-en-us, -de and -zh-cn are unpacked (dpkg-deb -x)"
    )

    def origin(self, direction: str, *splits: str) -> JsonObject:
        return {"pairs": files.digest(self._read(direction)[0])}

    def refused(self, direction: str, *splits: str) -> str | None:
        missing = [language for language in direction.split("-") if language not in LANGUAGES]
        return f"has no {' and no '.join(missing)}, but {', '.join(LANGUAGES)}" if missing else None

    def _read(self, direction: str) -> tuple[list[Pair], bool]:
        """Each text of the first language once, and none that is not translated. English is first."""
        languages = sorted(direction.split("-"), key=lambda language: language != "en")
        firsts, seconds = (self._paragraphs(language) for language in languages)
        pairs: dict[str, str] = {}
        for place, first in firsts.items():
            second = seconds.get(place)
            if first and second and first != second:
                pairs.setdefault(first, second)
        return list(pairs.items()), languages != direction.split("-")

    def _paragraphs(self, language: str) -> dict[tuple[Path, str], str]:
        """The text of each paragraph, by its file and its id."""
        folder = Path(self.folder, "usr/share/libreoffice/help", LANGUAGES[language])
        paragraphs = {}
        for path in sorted(folder.rglob("*.html")):
            for _, name, content in PARAGRAPH.findall(decoded(path, files.read_bytes(path))):
                if "switchinline" not in content:  # else the words for each system or program, one after the other
                    text = html.unescape(re.sub(r"<[^>]*>", "", content))
                    paragraphs[path.relative_to(folder), name] = " ".join(text.split())
        if not paragraphs:
            package = f"libreoffice-help-{'en-us' if language == 'en' else LANGUAGES[language].lower()}"
            remedy = f"Run apt-get download {package}, then dpkg-deb -x {package}_*.deb {self.folder}"
            raise InputError(folder, "has no help", remedy)
        return paragraphs


class Mixed(Source):
    """Several sources as one. What one holds out is in the training data of none."""

    splits: ClassVar[bool] = True

    name: Literal["mixed"] = KIND
    sources: list[Annotated[Tatoeba | LibreOfficeHelp, Field(discriminator="name")]] = Field(
        min_length=2, description="the sources, such as [*tatoeba, *libreoffice] of the config's anchors"
    )

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        unseen = {
            text
            for source in self.sources
            for name in HELD_OUT[split]
            for pair in source.pairs(direction, name, seed)
            for text in pair
        }
        for source in self.sources:
            yield from (pair for pair in source.pairs(direction, split, seed) if unseen.isdisjoint(pair))

    def origin(self, direction: str, *splits: str) -> JsonObject:
        return {source.name: source.origin(direction, *splits) for source in self.sources}

    def refused(self, direction: str, *splits: str) -> str | None:
        return next(filter(None, (source.refused(direction, *splits) for source in self.sources)), None)
