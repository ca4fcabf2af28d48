"""FLORES-200, the benchmark of the NLLB release: Wikimedia sentences, each in all languages."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from entropy_valley import files
from entropy_valley.data.sampling import Pair
from entropy_valley.data.sources.base import Source
from entropy_valley.data.sources.files import read_parallel
from entropy_valley.errors import InputError

ARCHIVE = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"  # plain text files: no code, no gate
SHA256 = "b8b0b76783024b85797e5cc75064eb83fc5288b41e9654dabc7be6ae944011f6"
SENTENCES = {"dev": 997, "devtest": 1012}
CODES = {"de": "deu_Latn", "en": "eng_Latn", "fr": "fra_Latn", "zh": "zho_Hans"}


class Flores(Source):
    """FLORES-200 between any two languages. Without a folder, the pinned release is downloaded once into the cache."""

    by_language: ClassVar[str] = "codes"
    usual: ClassVar[dict[str, str]] = CODES

    name: Literal["flores"] = Field(description="the kind of source")
    split: Literal["dev", "devtest"] = Field("devtest", description="dev (997 sentences) or devtest (1,012)")
    folder: str | None = Field(None, description="holds devtest/deu_Latn.devtest and the like")
    codes: dict[str, str] = Field(
        {}, description="the FLORES code of each language, like jpn_Jpan; those of en, de, fr and zh are known"
    )

    @property
    def size(self) -> int:
        return SENTENCES[self.split]

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the files."""
        rows = read_parallel(*self._paths(direction))
        if len(rows) != self.size:
            raise InputError(
                f"test set flores: {direction} {self.split}",
                f"{len(rows)} lines instead of {self.size}",
                f"An incomplete copy: delete {self.folder or _unpacked()} and run again.",
            )
        return iter(rows)

    def origin(self, direction: str, *splits: str) -> dict[str, Any]:
        return {"files": files.digests(self._paths(direction))}

    def _paths(self, direction: str) -> list[Path]:
        if problem := self.refused(direction):
            raise InputError(f"test set flores: {direction}", problem, "Such as: codes: {ja: jpn_Jpan}.")
        codes = CODES | self.codes
        names = [f"{self.split}/{codes[language]}.{self.split}" for language in direction.split("-")]
        return [Path(self.folder, name) if self.folder else _cached(name) for name in names]


def _unpacked() -> Path:
    return files.cache_folder() / "flores200_dataset"


def _cached(name: str) -> Path:
    """A file of the release in the cache."""
    path = _unpacked() / name
    if not path.exists():
        with tarfile.open(_archive()) as opened, files.atomic(path) as temporary, temporary.open("wb") as written:
            shutil.copyfileobj(opened.extractfile(_member(opened, name)), written)
    return path


def _member(opened: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    text_file = next((member for member in opened if member.isfile() and member.name.endswith(f"/{name}")), None)
    if text_file is None:
        raise InputError("test set flores", f"no {name} in {opened.name}", "Correct the code under `codes`.")
    return text_file


def _archive() -> Path:
    """The archive of the release, downloaded where it is not in the cache."""
    from entropy_valley import hub  # only a download takes huggingface_hub, which loads slowly

    archive = files.cache_folder() / Path(ARCHIVE).name
    remedy = (
        f"Copy it from another machine to {archive}, or set the test set's folder to one that holds "
        "devtest/deu_Latn.devtest and the like."
    )
    hub.archive(ARCHIVE, archive, remedy)
    if (digest := files.sha256(archive)) != SHA256:
        raise InputError(archive, f"sha256 {digest[:12]} instead of {SHA256[:12]}", "Delete this file and run again.")
    return archive
