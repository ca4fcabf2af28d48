"""The config's block of a class: its fields, by direction where they may be, and the key that names the class."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, WrapValidator, create_model
from pydantic.fields import FieldInfo

from entropy_valley import plugins, spelling
from entropy_valley.errors import refusal
from entropy_valley.settings import ByDirection, Direction, Section

OTHER = "user"


def block(cls: type[BaseModel], key: str, name: str, description: str | None = None, title: str = "") -> type[Section]:
    """The model of a block that sets up ``cls``: its fields, and ``key``, whose value is ``name``.

    With a ``description`` the key may be left out.
    """
    named = Literal[name]
    if description:
        naming = (named | None, Field(None, description=description))
    else:
        naming = (named, Field(description="one of ours"))
    fields = {field: (_kind(info), _without_type(info)) for field, info in cls.model_fields.items()}
    said = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    return create_model(title or cls.__name__, __base__=Section, __doc__=said, **{**fields, key: naming})


def one_of(key: str, blocks: Mapping[str, Any], other: Any) -> Any:
    """Any of the blocks, known by what their ``key`` says, or the ``other`` one."""

    def kind(value: Any) -> str:
        named = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
        return named if isinstance(named, str) and named in blocks else OTHER

    tagged = [Annotated[one, Tag(name)] for name, one in {**blocks, OTHER: other}.items()]
    return Annotated[functools.reduce(operator.or_, tagged), Discriminator(kind)]


def users(
    kind: str, key: str, known: Mapping[str, type], made: Callable[..., type[Section]] = block
) -> tuple[AfterValidator, WrapValidator]:
    """The checks of a user's own class, of the name that a block's ``key`` has and of the whole block.

    Where the class has fields, as ours do, the block is checked as one of ours, by the model that ``made`` makes of it.
    """

    def named(name: str) -> str:
        if not re.fullmatch(r"[\w.]+:\w+", name):
            guess = spelling.question(name, known).lower()
            raise ValueError(f"{guess}give module:Class, or one of {', '.join(known)}")
        if problem := refusal(plugins.find, kind, known, name):
            raise ValueError(problem)
        return name

    def checked(value: Any, check: Callable[[Any], BaseModel]) -> BaseModel:
        plain = check(value)
        name = getattr(plain, key)
        cls = plugins.find(kind, known, name)
        has_fields = isinstance(cls, type) and issubclass(cls, Section)
        return made(cls, key, name).model_validate(value) if has_fields else plain

    return AfterValidator(named), WrapValidator(checked)


def _kind(info: FieldInfo) -> Any:
    """A field's type; one that is marked so may be given by direction, or as one for all."""
    metadata = [one for one in info.metadata if not isinstance(one, ByDirection)]
    plain = Annotated[info.annotation, *metadata] if metadata else info.annotation
    if len(metadata) == len(info.metadata):
        return plain
    # A discriminator, so that a bad value is one problem and not two.
    return Annotated[
        Annotated[dict[Direction, plain], Tag("by direction")] | Annotated[plain, Tag("one")],
        Discriminator(lambda value: "by direction" if isinstance(value, Mapping) else "one"),
    ]


def _without_type(info: FieldInfo) -> Any:
    if info.default_factory:
        return Field(default_factory=info.default_factory, description=info.description)
    return Field(info.default, description=info.description)
