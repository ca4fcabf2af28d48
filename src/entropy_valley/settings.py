"""The base class of all blocks of the config and the types of their values, and the schemas of others' files."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    NonNegativeInt,
    PositiveInt,
    Strict,
    Tag,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from entropy_valley import files
from entropy_valley.errors import InputError, brief, listed, question
from entropy_valley.texts import checked_sentence

JsonObject = Mapping[str, Any]  # such as the params of a job

# The folders of the repository: nothing that is computed goes there.
PROJECT = {".git", ".snakemake", "benchmarks", "config", "demo", "docs", "envs", "profiles", "slurm", "src", "tests"}
PROJECT |= {"workflow"}


class Section(BaseModel):
    """A block of the config: no unknown keys, no changes after loading, no value of another type than the key's.

    ``ONE_OF`` names keys of which exactly one is given, ``AT_MOST_ONE`` keys of which no two are, ``AT_LEAST_ONE`` keys
    of which some are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ()
    AT_LEAST_ONE: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """What pydantic does not check: how many of some keys are given. The error of an unknown key names the key that
        may be meant."""
        try:
            section = validate(value)
        except ValidationError as error:
            items: list[dict[str, Any]] = [dict(item) for item in error.errors()]
            unknown = [item for item in items if item["type"] == "extra_forbidden" and len(item["loc"]) == 1]
            if not unknown:
                raise
            for item in unknown:
                hint = question(item["loc"][0], cls.model_fields).rstrip() or "Remove it or correct its spelling"
                item.update(type="unknown_key", msg=f"unknown key. {hint}")
            raise _error(items) from None
        for names, fewest, most in ((cls.ONE_OF, 1, 1), (cls.AT_MOST_ONE, 0, 1), (cls.AT_LEAST_ONE, 1, math.inf)):
            count = sum(bool(getattr(section, name)) for name in names)
            if names and not fewest <= count <= most:
                raise ValueError(f"give {'either ' * (most == 1)}{' or '.join(f'`{name}`' for name in names)}")
        return section


SectionOf = TypeVar("SectionOf", bound=Section)


def _error(items: Iterable[Mapping[str, Any]]) -> ValidationError:
    """An error of pydantic from what ``errors()`` of another one gave."""
    lines = [
        InitErrorDetails(
            type=PydanticCustomError(one["type"], one["msg"], one.get("ctx")), loc=one["loc"], input=one["input"]
        )
        for one in items
    ]
    return ValidationError.from_exception_data("config", lines)


# What is wrong, by pydantic's type of an error, where its own words are about Python's objects.
_WORDS = {
    "missing": "it is required",
    "extra_forbidden": "is not known here",
    "model_type": "must be a block of keys",
    "dict_type": "must be a block of keys",
    "list_type": "must be a list, in brackets: [ ]",
    "string_type": "must be a text; in YAML a number or a date that is a text needs quotation marks",
    "too_short": "must have at least {min_length} item",
    "union_tag_not_found": "it is required",
    "union_tag_invalid": "must be one of {expected_tags}",
}


def words_of(item: Mapping[str, Any]) -> str:
    """What is wrong by one of pydantic's errors: ours as it is, of its own what the value must be."""
    context, kind = item.get("ctx", {}), item["type"]
    if kind in _WORDS:
        return _WORDS[kind].format_map(context)
    if kind == "string_pattern_mismatch" and context["pattern"] in PATTERNS:
        return f"must be {PATTERNS[context['pattern']]}"
    return re.sub("^[A-Z][a-z]+ should ", "must ", item["msg"].removeprefix("Value error, "))


def refused_values(error: ValidationError) -> list[str]:
    """What pydantic says of settings, or of a file: each with its name and its value."""
    problems = []
    for item in error.errors():
        name = ".".join(map(str, item["loc"])).removesuffix(".[key]")
        value = "" if item["type"] == "missing" else f" = {brief(repr(item['input']), 60)}"
        problems.append(f"{name}{value}: {words_of(item)}" if name else words_of(item))
    return problems


# --- What a key is for.

T = TypeVar("T")
_RUNTIME, _PRINTED = "execution", "printed"

# How a job runs, and where files are: neither a number nor a table depends on it.
Runtime = Annotated[T, _RUNTIME]
# A name in print: tables depend on it, numbers do not.
Printed = Annotated[T, _PRINTED]


def values_of(value: Any, printed: bool = True) -> Any:
    """The values of a section, or of what holds sections, without those of keys that only say how a job runs; without
    ``printed`` also without names in print."""
    if isinstance(value, BaseModel):
        marks = {key: field.metadata for key, field in type(value).model_fields.items()}
        left_out = {key for key, own in marks.items() if _RUNTIME in own or (_PRINTED in own and not printed)}
        return {key: values_of(one, printed) for key, one in value if key not in left_out}
    if isinstance(value, dict):
        return {key: values_of(one, printed) for key, one in value.items()}
    return [values_of(one, printed) for one in value] if isinstance(value, list | tuple) else value


def numbers_of(section: BaseModel) -> dict[str, Any]:
    """The values of a section that numbers depend on."""
    return values_of(section, printed=False)


@dataclass(frozen=True)
class Refers:
    """Marks a key whose value names what another key defines: ``Annotated[Names, Refers("backbones")]``.

    ``to`` is that key. ``also``: further names that have a meaning here. ``keys``: the names are the keys of a block.
    ``only_with``: another key of the section; where that is empty or false, nothing is looked up.
    """

    to: str
    also: tuple[str, ...] = ()
    keys: bool = False
    only_with: str = ""


def unique(values: list[Any]) -> list[Any]:
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"repeats {', '.join(repeated)}; name each once")
    return values


def _ascending(limits: tuple[int, int]) -> tuple[int, int]:
    if limits[0] > limits[1]:
        raise ValueError("the first limit is the lower one")
    return limits


def check_template(text: str) -> None:
    """Raise InputError for a prompt that is no text, or does not have ``{src}`` once."""
    if not isinstance(text, str) or text.count("{src}") != 1:
        remedy = "Write {src} exactly once, where the source goes."
        raise InputError("prompt", f"{brief(text, 60)!r} is not a text with one {{src}}", remedy)
    checked_sentence("prompt", text)


def _template(text: str) -> str:
    if text.count("{src}") != 1:
        raise ValueError("write {src} exactly once, where the source goes")
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
    return str(Path(path))  # results/mine/ is results/mine


Folder = Annotated[str, AfterValidator(_folder)]
_CODE = r"[a-z]{2,3}(_([a-z]{4}|[a-z]{2}|[0-9]{3}))?"  # of a language, perhaps with a script or a region
NAME, LANGUAGE, DIRECTION = r"^[a-z0-9][a-z0-9_.]*(-[a-z0-9_.]+)*$", f"^{_CODE}$", f"^{_CODE}-{_CODE}$"
PLUGIN, COMMIT, POOL = r"^([a-z0-9_.-]+|[\w.]+:\w+)$", r"^[0-9a-f]{40}$", r"^[a-z0-9]+$"
REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)?$"
CHECKPOINT = rf"{REPOSITORY}|\.ckpt$"
PATTERNS = {  # what a value must be, for errors
    NAME: "of letters in lower case, digits, _ . and -, like en-zh or my_ratios",
    LANGUAGE: "the code of a language in lower case, like en, yue or zh_tw",
    DIRECTION: "two codes of languages in lower case, like en-zh or en-sr_latn",
    PLUGIN: "one of ours, or module:name",
    COMMIT: "the 40 hex digits of a commit",
    POOL: "of letters in lower case and digits, like 50k",
    REPOSITORY: "OWNER/NAME, as on the hub",
    CHECKPOINT: "OWNER/NAME, as on the hub, or a .ckpt file",
}
# Up to four names make that of a log, and a file system has 255 characters for it.
Name = Annotated[str, Field(pattern=NAME, max_length=50)]
Language = Annotated[str, Field(pattern=LANGUAGE)]
Direction = Annotated[str, Field(pattern=DIRECTION)]
Pool = Annotated[str, Field(pattern=POOL)]  # part of a run's folder: seed1-50k
Plugin = Annotated[str, Field(pattern=PLUGIN)]
Repository = Annotated[str, Field(pattern=REPOSITORY)]
Checkpoint = Annotated[str, Field(pattern=CHECKPOINT)]  # of COMET
Commit = Annotated[str, Field(pattern=COMMIT)]  # a branch would be another checkpoint tomorrow
Names = Annotated[list[Name], Field(min_length=1), AfterValidator(unique)]
Directions = Annotated[list[Direction], Field(min_length=1), AfterValidator(unique)]
Numbers = Annotated[list[PositiveInt], Field(min_length=1), AfterValidator(unique)]
MOST_STEPS = 2**16  # of a canvas: more than any context has slots
Steps = Annotated[int, Field(ge=1, le=MOST_STEPS)]
Budgets = Annotated[list[Steps], Field(min_length=1), AfterValidator(unique)]
RandomSeed = Annotated[int, Field(ge=0, lt=2**32)]  # what NumPy's generators take
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Limits = Annotated[tuple[NonNegativeInt, NonNegativeInt], Strict(False), AfterValidator(_ascending)]
CanvasRatio = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]  # slots for each token of the source
Ratios = Annotated[list[CanvasRatio], Strict(False), Field(min_length=1), AfterValidator(unique)]
Template = Annotated[str, AfterValidator(_template)]
AnyNames = Annotated[list[Name], AfterValidator(unique)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


# --- Values of several kinds. A discriminator picks the kind, so that a bad value is one problem and not several.

IN_CONFIG = {"by_direction": True}  # the context in which the config is checked
BY_DIRECTION = Refers("directions", keys=True)  # marks a key whose block, if it is one, has an entry for each direction


def _by_direction(value: Any) -> str:
    return "by direction" if isinstance(value, Mapping) else "one"


def _one_or_by_direction(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if isinstance(value, Mapping) and not info.context:
        raise ValueError("has values by direction; give that of one direction")
    try:
        return check(value)
    except ValidationError as error:  # the place of each problem begins with the kind of value, which is no key
        raise _error({**item, "loc": item["loc"][1:]} for item in error.errors()) from None


# A setting that the config may give by direction; its class sees that of one direction.
if TYPE_CHECKING:
    PerDirection = Annotated[T, "by direction"]
else:
    PerDirection = Annotated[
        Annotated[dict[Direction, T], Tag("by direction")] | Annotated[T, Tag("one")],
        Discriminator(_by_direction),
        WrapValidator(_one_or_by_direction),
        BY_DIRECTION,
    ]


def one_of(key: str, ours: Mapping[str, type[BaseModel]], users: type[BaseModel]) -> Any:
    """The type of a block that sets up one of ``ours``, which their ``key`` tells apart, or else a class of the
    user's."""

    def kind(value: Any) -> str:
        name = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
        return "ours" if isinstance(name, str) and name in ours else "users"

    own: Any = Annotated[Union[tuple(ours.values())], Field(discriminator=key), Tag("ours")]  # noqa: UP007 - a tuple of classes
    return Annotated[own | Annotated[users, Tag("users")], Discriminator(kind)]


# --- Files of others, such as those of a checkpoint: a schema says what is read of a JSON object.


class Foreign(BaseModel):
    """A schema. A value of another type than it says is an error, and so is a number that is not finite. Other keys may
    have any value."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False, defer_build=True)


def misfits(schema: type[Foreign], content: Any) -> list[str]:
    """What is wrong with the content of a file by its schema."""
    try:
        schema.model_validate(content)
    except ValidationError as error:
        return refused_values(error)
    return []


def read_object(path: str | Path, schema: type[Foreign] = Foreign) -> dict[str, Any]:
    """The JSON object of a file as it is. Raises InputError for one that is large, nested deeply or not as the schema
    says."""
    content = files.read_json(path, files.MOST)
    if problems := misfits(schema, content):
        raise InputError(path, listed(problems), "Fetch it again, or correct it.")
    return content
