"""The base class of all blocks of the config and the types of their values, and the schemas of others' files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PositiveInt,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from entropy_valley import files
from entropy_valley.errors import InputError, brief, listed, question

# The folders of the repository: nothing that is computed goes there.
PROJECT = (
    ".git",
    ".snakemake",
    "benchmarks",
    "config",
    "demo",
    "docs",
    "envs",
    "profiles",
    "slurm",
    "src",
    "tests",
    "workflow",
)


class Section(BaseModel):
    """A block of the config: no unknown keys, no changes after loading.

    ``ONE_OF`` names keys of which exactly one is given, ``AT_MOST_ONE`` keys of which no two are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """What pydantic does not check: `true` is no number, and of some keys only one is given. The error of an
        unknown key names the key that may be meant."""
        try:
            section = validate(value)
        except ValidationError as error:
            items = error.errors()
            unknown = [item for item in items if item["type"] == "extra_forbidden" and len(item["loc"]) == 1]
            if not unknown:
                raise
            for item in unknown:
                hint = question(item["loc"][0], cls.model_fields).rstrip() or "Remove it or correct its spelling"
                item.update(type="unknown_key", msg=f"unknown key. {hint}")
        else:
            given = value.items() if isinstance(value, Mapping) else ()
            items = [
                {"type": "bool_as_number", "msg": "must be a number, not true or false", "loc": (key,), "input": one}
                for key, one in given
                if _is_bool_as_number(one, getattr(section, key))
            ]
            if not items:
                for names, fewest in ((cls.ONE_OF, 1), (cls.AT_MOST_ONE, 0)):
                    count = sum(bool(getattr(section, name)) for name in names)
                    if names and not fewest <= count <= 1:
                        raise ValueError(f"give either {' or '.join(f'`{name}`' for name in names)}")
                return section
        lines = [{**item, "type": PydanticCustomError(item["type"], item["msg"], item.get("ctx"))} for item in items]
        raise ValidationError.from_exception_data(cls.__name__, lines)


def _is_bool_as_number(given: Any, value: Any) -> bool:
    """Whether pydantic has read true or false as 1 or 0, here or in a list or mapping."""
    if isinstance(given, list) and isinstance(value, list | tuple):
        return any(map(_is_bool_as_number, given, value))
    if isinstance(given, Mapping) and isinstance(value, Mapping):
        return any(_is_bool_as_number(one, value.get(key)) for key, one in given.items())
    return isinstance(given, bool) and isinstance(value, int | float) and value is not given


# Marks a setting that the config may give by direction; its class sees that of one direction.
BY_DIRECTION = object()
T = TypeVar("T")
PerDirection = Annotated[T, BY_DIRECTION]


def unique(values: list[Any]) -> list[Any]:
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"repeats {', '.join(repeated)}; name each once")
    return values


def _ascending(limits: tuple[int, int]) -> tuple[int, int]:
    if limits[0] > limits[1]:
        raise ValueError("the first limit is the lower one")
    return limits


def _template(text: str) -> str:
    if text.count("{src}") != 1:
        raise ValueError("must name the source exactly once, as {src}")
    return text


def _folder(path: str) -> str:
    """A folder that Snakemake can write into: rules have its name as a pattern, commands as an argument."""
    if not path.isprintable() or path.strip() != path or {*path} & {*"{}"}:
        raise ValueError("no braces, control characters, or spaces at its ends can be in this folder's name")
    if path.startswith(("-", "~")):
        raise ValueError("this folder's name cannot begin with - or ~; write the path out")
    if file := next((one for one in (Path(path), *Path(path).parents) if one.is_file()), None):
        raise ValueError(f"{'this' if file == Path(path) else file} is a file; name a folder, which may be a new one")
    parts = Path(os.path.relpath(path or ".")).parts
    if {*parts} <= {".."} or parts[0] in PROJECT:
        raise ValueError("is or holds a folder of this repository; give one of its own, such as results/mine")
    return path


Folder = Annotated[str, AfterValidator(_folder)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.]*(-[a-z0-9_.]+)*$")]
Direction = Annotated[str, Field(pattern=r"^[a-z]{2}-[a-z]{2}$")]
Plugin = Annotated[str, Field(pattern=r"^([a-z0-9_.-]+|[\w.]+:\w+)$")]  # one of ours, or module:name
REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)?$"
Repository = Annotated[str, Field(pattern=REPOSITORY)]  # of the hub, owner/name
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]  # a branch would be another checkpoint tomorrow
Names = Annotated[list[Name], Field(min_length=1), AfterValidator(unique)]
Directions = Annotated[list[Direction], Field(min_length=1), AfterValidator(unique)]
Numbers = Annotated[list[PositiveInt], Field(min_length=1), AfterValidator(unique)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limits = Annotated[tuple[PositiveInt, PositiveInt], AfterValidator(_ascending)]
CanvasRatio = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]  # slots for each token of the source
Ratios = Annotated[list[CanvasRatio], Field(min_length=1), AfterValidator(unique)]
Template = Annotated[str, AfterValidator(_template)]
AnyNames = Annotated[list[Name], AfterValidator(unique)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


# --- Files of others, such as those of a checkpoint: a schema says what is read of a JSON object.


class Foreign(BaseModel):
    """A schema. A value of another type than it says is an error, and so is a number that is not finite. Other keys may
    have any value."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


def misfits(schema: type[Foreign], content: Any) -> list[str]:
    """What is wrong with the content of a file by its schema."""
    try:
        schema.model_validate(content)
    except ValidationError as error:
        return [_misfit(".".join(map(str, item["loc"])).removesuffix(".[key]"), item) for item in error.errors()]
    return []


def _misfit(key: str, item: Mapping[str, Any]) -> str:
    if item["type"] == "missing":
        return f"no field {key}"
    message = re.sub("^[A-Z][a-z]+ should ", "must ", item["msg"].removeprefix("Value error, "))
    if item["type"] in ("model_type", "dict_type"):
        message = "must be a JSON object"
    return f"{key or 'it'} is {brief(repr(item['input']), 60)}, but {message}"


def read_object(path: str | Path, schema: type[Foreign] = Foreign) -> dict[str, Any]:
    """The JSON object of a file as it is. Raises InputError for one that is large, nested deeply or not as the schema
    says."""
    content = files.read_json(path, files.MOST)
    if problems := misfits(schema, content):
        raise InputError(path, listed(problems), "Fetch it again, or correct it.")
    return content
