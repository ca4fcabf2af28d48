"""The sources of sentence pairs: a class each, whose fields are its settings in the config.

A source with ``splits`` keeps train, dev and test apart itself. The others give all their pairs, and train and dev are
drawn from these (see :mod:`entropy_valley.data.sampling`).
"""

from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter, ValidationError

from entropy_valley.data.sources.base import Source
from entropy_valley.data.sources.files import Files, JsonLines, Tsv
from entropy_valley.data.sources.huggingface import HuggingFace
from entropy_valley.data.sources.libreoffice import LibreOfficeHelp, Mixed
from entropy_valley.data.sources.published import Flores, Tatoeba, Wmt22
from entropy_valley.errors import InputError
from entropy_valley.settings import JsonObject, refused_values

Kinds = tuple[type[Source], ...]

SOURCES: Kinds = (HuggingFace, Wmt22, Flores, Tatoeba, LibreOfficeHelp, Mixed, Files, Tsv, JsonLines)


def any_of(kinds: Kinds) -> Any:
    """The pydantic type of a mapping that sets up one of ``kinds``; its key ``name`` says which."""
    return Annotated[Union[kinds], Field(discriminator="name")]  # noqa: UP007 - a tuple of classes


def make(settings: JsonObject, kinds: Kinds = SOURCES) -> Source:
    """The source that ``settings`` set up. Raises InputError for an unknown name and for wrong settings."""
    try:
        return TypeAdapter(any_of(kinds)).validate_python(settings)
    except ValidationError as error:
        remedy = "`entropy-valley schema` lists its keys."
        raise InputError(f"source {dict(settings)}", "; ".join(refused_values(error)), remedy) from None
