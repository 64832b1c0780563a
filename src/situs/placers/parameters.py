"""Parameters of placers: frozen dataclasses, written ``name{key=value,key=value}`` as text."""

from __future__ import annotations

import difflib
import types
import typing
from dataclasses import Field, fields
from typing import Any, TypeVar

from situs.errors import ParameterError

P = TypeVar("P")


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Split ``name{a=1,b=x}`` into the name and its texts.

    Raises:
        ParameterError: If the braces or the key=value pairs are malformed.
    """
    name, brace, rest = spec.strip().partition("{")
    if not brace:
        return name, {}
    if not rest.endswith("}"):
        raise ParameterError(f"{spec!r}: write name{{key=value,key=value}}")
    values: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in rest[:-1].split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ParameterError(f"{spec!r}: {pair!r} is not key=value")
        values[key.strip()] = value.strip()
    return name, values


def _parse(owner: str, field: Field[Any], kind: Any, text: str) -> Any:
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            if text in typing.get_args(option):
                return text
        elif option is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        elif option in (int, float):
            try:
                return option(text)
            except ValueError:
                continue
        elif option is str:
            return text
    raise ParameterError(f"{owner}: {field.name}={text} is not a valid {kind}")


def with_parameters(cls: type[P], name: str, values: dict[str, str]) -> P:
    """Construct the dataclass ``cls`` from texts.

    Raises:
        ParameterError: For an unknown key (with a near match), a wrong type, or a value that the
            dataclass refuses.
    """
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    kinds = typing.get_type_hints(cls)
    parsed: dict[str, Any] = {}
    for key, text in values.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ParameterError(
                f"{name}: unknown parameter {key!r}; it has {', '.join(known) or 'none'}{hint}"
            )
        parsed[key] = _parse(name, known[key], kinds[key], text)
    return cls(**parsed)


def parameter_texts(placer: Any) -> tuple[tuple[str, str], ...]:
    """The parameters of a placer as (name, value) pairs of text, as stored with its result."""
    return tuple((f.name, str(getattr(placer, f.name))) for f in fields(placer))
