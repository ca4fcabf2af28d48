"""Published corpora and test sets: WMT22, FLORES-200 and Tatoeba, from a folder or downloaded once into the cache."""

import hashlib
import shutil
import zipfile
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from entropy_valley import files, hub
from entropy_valley.data.sampling import Pair, rank
from entropy_valley.data.sources.base import KIND, Source, reverse
from entropy_valley.data.sources.files import Tsv, read_parallel
from entropy_valley.errors import InputError
from entropy_valley.settings import Language


def _whole(name: str, paths: Sequence[Path], size: int, copy: object) -> list[Pair]:
    """The pairs of a test set's two files; InputError unless there are as many as the release has."""
    rows = read_parallel(*paths)
    if len(rows) != size:
        remedy = f"An incomplete copy: delete {copy} and run again."
        raise InputError(f"test set {name}", f"{len(rows)} lines instead of {size}", remedy)
    return rows


# --- The WMT22 general test set.

WMT22_PAIRS, WMT22_SENTENCES = ("en-zh", "en-de"), 2037


class Wmt22(Source):
    """The WMT22 general test set with reference A, through sacreBLEU or from a folder.

    Zh→En is En→Zh with source and reference exchanged, not WMT22's own Zh→En set.
    """

    name: Literal["wmt22"] = KIND
    folder: str | None = Field(
        None, description="holds generaltest2022.en-zh.src.en, generaltest2022.en-zh.ref.A.zh and the like"
    )

    @property
    def size(self) -> int:
        return WMT22_SENTENCES

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All 2037 pairs in the order of the file."""
        pair = self._pair(direction)
        rows = _whole(f"wmt22: {pair}", self._paths(direction), WMT22_SENTENCES, self.folder or self._cache())
        return iter(rows if pair == direction else [(target, source) for source, target in rows])

    @staticmethod
    def _pair(direction: str) -> str:
        """The direction of the files: this one, or its reverse."""
        pair = direction if direction in WMT22_PAIRS else reverse(direction)
        if pair not in WMT22_PAIRS:
            remedy = f"Use one of {', '.join(WMT22_PAIRS)} or the reverse, or another test set."
            raise InputError(f"test set wmt22: {direction}", "no reference A for this direction", remedy)
        return pair

    def _paths(self, direction: str) -> Sequence[Path]:
        pair = self._pair(direction)
        source, target = pair.split("-")
        if self.folder:
            stem = f"generaltest2022.{pair}"
            return [Path(self.folder, name) for name in (f"{stem}.src.{source}", f"{stem}.ref.A.{target}")]
        from sacrebleu.utils import get_reference_files, get_source_file  # not where the config alone is read

        try:
            return [Path(get_source_file("wmt22", pair)), Path(get_reference_files("wmt22", pair)[0])]
        except (OSError, EOFError, ValueError) as error:
            raise InputError(
                f"test set wmt22: {pair}",
                f"sacreBLEU cannot provide it ({error})",
                f"On a machine with a network, run: sacrebleu -t wmt22 -l {pair} --echo src; copy {self._cache()}"
                " here, or set the test set's folder to one with generaltest2022.* files.",
            ) from None

    @staticmethod
    def _cache() -> Path:
        from sacrebleu.utils import SACREBLEU_DIR

        return Path(SACREBLEU_DIR, "wmt22")


# --- FLORES-200, the benchmark of the NLLB release: Wikimedia sentences, each in all languages.

FLORES_ARCHIVE = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"  # plain text files: no code, no gate
FLORES_SHA256 = "b8b0b76783024b85797e5cc75064eb83fc5288b41e9654dabc7be6ae944011f6"
FLORES_CODES = {"de": "deu_Latn", "en": "eng_Latn", "fr": "fra_Latn", "zh": "zho_Hans"}


class Flores(Source):
    """FLORES-200 between any two languages. Without a folder, the pinned release is downloaded once into the cache."""

    by_language: ClassVar[str] = "codes"
    usual: ClassVar[dict[str, str]] = FLORES_CODES

    name: Literal["flores"] = KIND
    split: Literal["dev", "devtest"] = Field("devtest", description="dev (997 sentences) or devtest (1,012)")
    folder: str | None = Field(None, description="holds devtest/deu_Latn.devtest and the like")
    codes: dict[Language, str] = Field(
        {}, description="the FLORES code of each language, like jpn_Jpan; those of en, de, fr and zh are known"
    )

    @property
    def size(self) -> int:
        return 997 if self.split == "dev" else 1012

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """All pairs in the order of the files."""
        name, copy = f"flores: {direction} {self.split}", self.folder or _flores_cache()
        return iter(_whole(name, self._paths(direction), self.size, copy))

    def _paths(self, direction: str) -> Sequence[Path]:
        if problem := self.refused(direction):
            raise InputError(f"test set flores: {direction}", problem, "Such as: codes: {ja: jpn_Jpan}.")
        if not self.folder:
            files.make_once(_flores_cache(), _unpack_flores)
        folder, codes = self.folder or _flores_cache() / "flores200_dataset", FLORES_CODES | self.codes
        return [Path(folder, self.split, f"{codes[language]}.{self.split}") for language in direction.split("-")]


def _flores_cache() -> Path:
    return files.cache_folder() / "flores200"


def _unpack_flores(folder: Path) -> None:
    """Download the release, and unpack it into a folder."""
    archive = files.cache_folder() / Path(FLORES_ARCHIVE).name
    remedy = f"Copy it from another machine to {archive}, or set the test set's folder to one that holds "
    hub.archive(FLORES_ARCHIVE, archive, f"{remedy}devtest/deu_Latn.devtest and the like.")
    if (digest := files.sha256(archive)) != FLORES_SHA256:
        problem = f"sha256 {digest[:12]} instead of {FLORES_SHA256[:12]}"
        raise InputError(archive, problem, "Delete this file and run again.")
    shutil.unpack_archive(archive, folder, filter="data")


# --- Tatoeba: short sentences translated by people, split so that training sees no held-out sentence.

TATOEBA_MOST = 2**31  # bytes of a text in an archive; the release's largest has 50 MB
HELD_OUT = {"test": (), "dev": ("test",), "train": ("test", "dev")}  # by split, those whose sentences it must not have
TATOEBA_RELEASE = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses"


class HeldOut(Source):
    """A source that holds sentences out for dev and test."""

    splits: ClassVar[bool] = True

    held_out: float = Field(0.02, gt=0, lt=0.5, description="share of first-column sentences in test, and in dev")

    def pairs(self, direction: str, split: str, seed: int) -> Iterator[Pair]:
        """The pairs of one split; test and dev have one pair for each source sentence.

        The hash of the first column's sentence decides the split, so both directions have the same one. Train has no
        side of a dev or test pair, dev no side of a test pair.
        """
        rows, swapped = self._read(direction)
        of_split: dict[str, list[Pair]] = defaultdict(list)
        for row in rows:
            of_split[self._split_of(row[0])].append(row)
        held_out = [row for name in HELD_OUT[split] for row in of_split[name]]
        firsts, seconds = {first for first, _ in held_out}, {second for _, second in held_out}
        kept = [row for row in of_split[split] if row[0] not in firsts and row[1] not in seconds]
        pairs = [(second, first) for first, second in kept] if swapped else kept
        if split == "train":
            return iter(pairs)
        lowest: dict[str, Pair] = {}  # of each source the pair of lowest rank
        for pair in sorted(pairs, key=lambda pair: rank(pair, seed)):
            lowest.setdefault(pair[0], pair)
        return iter(lowest.values())

    def _split_of(self, sentence: str) -> str:
        uniform = int.from_bytes(hashlib.blake2b(sentence.encode(), digest_size=8).digest()) / 2**64
        return "test" if uniform < self.held_out else "dev" if uniform < 2 * self.held_out else "train"

    @abstractmethod
    def _read(self, direction: str) -> tuple[list[Pair], bool]:
        """The rows, which do not depend on the order of the languages, and whether they are target and source."""


class Tatoeba(HeldOut):
    """Tatoeba sentence pairs. Without a folder, the pinned OPUS release is downloaded once into the cache."""

    name: Literal["tatoeba"] = KIND
    folder: str | None = Field(None, description="holds en-de.tsv and the like: source, tab, target on each line")

    def _paths(self, direction: str) -> Sequence[Path]:
        languages = direction.split("-")
        return [self._file(self.folder, languages)[0] if self.folder else _tatoeba_archive(sorted(languages))]

    def _read(self, direction: str) -> tuple[list[Pair], bool]:
        languages = direction.split("-")
        if not self.folder:
            return _tatoeba_release(sorted(languages)), languages != sorted(languages)
        path, swapped = self._file(self.folder, languages)
        columns: dict[str, int | str] = {"en": 1, "de": 2}
        table = Tsv(name="tsv", file=str(path), columns=columns, quoted=False)
        return list(table.pairs("en-de", split="", seed=0)), swapped

    @staticmethod
    def _file(folder: str, languages: list[str]) -> tuple[Path, bool]:
        """The file of a direction, and whether it is that of the reverse."""
        straight, backward = (Path(folder, f"{a}-{b}.tsv") for a, b in (languages, languages[::-1]))
        swapped = backward.exists() and not straight.exists()
        return (backward if swapped else straight), swapped


def _tatoeba_release(languages: list[str]) -> list[Pair]:
    archive, sides = _tatoeba_archive(languages), []
    with (
        files.readable(archive, "Tatoeba release", "Delete this file and run again."),
        zipfile.ZipFile(archive) as opened,
    ):
        for language in languages:
            name = f"Tatoeba.{'-'.join(languages)}.{language}"
            if opened.getinfo(name).file_size > TATOEBA_MOST:  # a small archive may hold terabytes
                raise zipfile.BadZipFile(f"{name} is too large")
            sides.append(opened.read(name).decode("utf-8").removesuffix("\n").split("\n"))
        return [(first.strip(), second.strip()) for first, second in zip(*sides, strict=True)]


def _tatoeba_archive(languages: list[str]) -> Path:
    """The archive of a release, downloaded where it is not in the cache."""
    name = "-".join(languages)
    archive = files.cache_folder() / f"tatoeba-{name}.zip"
    remedy = (
        "Set the source's folder to one that holds en-de.tsv or the like (source, tab, target), or "
        f"copy the archive from another machine to {archive}."
    )
    hub.archive(f"{TATOEBA_RELEASE}/{name}.txt.zip", archive, remedy)
    return archive
