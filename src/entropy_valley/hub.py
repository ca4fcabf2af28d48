"""Downloads from the Hugging Face hub, pinned to a commit, or one clear error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from entropy_valley.errors import InputError

CHECKPOINT_FILES = ["*.safetensors", "*.json", "tokenizer*", "merges.txt", "vocab.*", "LICENSE*", "README.md"]


def resolve(repository: str, revision: str | None, key: str) -> str:
    """The commit that a revision (null: the newest) names now. ``key`` is the config key of a local copy."""
    from huggingface_hub import HfApi

    return _online(lambda: HfApi().model_info(repository, revision=revision).sha, repository, key)


def download(repository: str, commit: str | None, folder: Path, patterns: list[str], key: str) -> None:
    """Fetch the files of a commit that match ``patterns``; a broken download goes on where it stopped."""
    from huggingface_hub import snapshot_download

    _online(
        lambda: snapshot_download(repository, revision=commit, local_dir=folder, allow_patterns=patterns),
        repository,
        key,
    )


def _online(call: Callable[[], Any], repository: str, key: str) -> Any:
    """The hub's errors said once, with the way round them."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
    from requests import RequestException

    copy = f"on a machine with a network run `hf download {repository}`, copy the folder, and point {key} to it"
    try:
        return call()
    except GatedRepoError:
        raise InputError(
            repository, "is gated", f"Accept its licence on the hub and run `hf auth login`; or {copy}."
        ) from None
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, RequestException, ConnectionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(repository, f"cannot be downloaded ({reason})", f"Try again, or {copy}.") from None
