"""Dataclasses to JSON and back, driven by their annotations: the same rules for dialogues and recipes.

Supported field types: str, int, float, bool, Path, other dataclasses, `X | None`, `tuple[X, ...]`,
`tuple[X, Y]`, and two that are JSON objects: `Mapping[str, X]` and `tuple[tuple[str, X], ...]`.
"""

import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from listenwell.errors import InputError, ListenwellError, nearest

Json: TypeAlias = Any
"""What json.loads gives; checked field by field in `build`."""

T = TypeVar("T")
V = TypeVar("V", str, float)
W = TypeVar("W")

ALWAYS = {"always": True}
"""Field metadata: write the field even where it has its default value."""


def also_read_as(*names: str) -> dict[str, tuple[str, ...]]:
    """Field metadata: keys of earlier releases that are still read; the field's own key is written."""
    return {"aliases": names}


def tagged_by(key: str, variants: Callable[[str], type], unused: tuple[str, ...] = ()) -> dict[str, Any]:
    """Field metadata of a tagged union: the field holds one of several dataclasses, as another field says.

    In a file, the fields of the dataclass stand beside the record's own, not in an object of their own.

    Args:
        key: the field that names the dataclass.
        variants: gives the dataclass for a name.
        unused: keys that earlier releases wrote for every dataclass; empty ones are skipped.
    """
    return {"tag": key, "variants": variants, "unused": unused}


def dumps(data: Json) -> str:
    """One line of JSON that keeps every string: readable Unicode, escapes where UTF-8 cannot hold it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(data, ensure_ascii=True, allow_nan=False)
    return text


def indented(data: Json) -> str:
    """JSON with a line for each value, for files that people read."""
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


class FrozenMapping(Mapping[str, W]):
    """A mapping that cannot be changed, sorted by name: it compares by value, hashes and pickles."""

    __slots__ = ("_values",)
    _values: dict[str, W]

    def __init__(self, values: Mapping[str, W] | Iterable[tuple[str, W]] = ()) -> None:
        object.__setattr__(self, "_values", dict(sorted(dict(values).items())))

    def __getitem__(self, name: str) -> W:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("This mapping is frozen.")

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[type, tuple[dict[str, W]]]:
        return type(self), (self._values,)


class Record:
    """Gives a frozen dataclass `to_dict`, `from_dict`, `to_json` and `from_json`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Json]:
        """The fields that differ from their defaults, nested records as objects."""
        return plain(self)

    def to_json(self) -> str:
        """One line of JSON."""
        return dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Self:
        """Read what `to_dict` wrote; an unknown key or a value of the wrong kind is an error."""
        return build(cls, data)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read one JSON object."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InputError(
                f"This is not JSON: {error}.", f"Give one {cls.__name__} as a JSON object."
            ) from None
        return build(cls, data)


def plain(record: Any) -> dict[str, Json]:  # noqa: ANN401
    """A dataclass as JSON values, fields at their defaults left out unless marked ALWAYS."""
    result: dict[str, Json] = {}
    for field, key, hint, always in _layout(type(record)):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if "tag" in field.metadata:
            result |= plain(value)
        elif always or field.default is MISSING or value != field.default:
            if value is not None and _is_object(hint):
                result[key] = {name: _plain_value(item) for name, item in dict(value).items()}
            else:
                result[key] = _plain_value(value)
    return result


def _plain_value(value: Any) -> Json:  # noqa: ANN401
    if is_dataclass(value):
        return value.to_dict() if isinstance(value, Record) else plain(value)
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def build(cls: type[T], data: Json, error: type[ListenwellError] = InputError, where: str = "") -> T:
    """Make a dataclass from JSON values.

    Args:
        cls: the dataclass.
        data: an object with the dataclass's fields.
        error: what to raise where the data does not fit.
        where: the path to `data` inside the whole, for the message.
    """
    name = where or cls.__name__
    if not isinstance(data, Mapping):
        raise error(f"{name} must be an object with named fields, not {_kind(data)}.", _fields_advice(cls))
    keys, union = accepted_keys(cls, data), _union(cls)  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    beside: dict[str, Json] = {}
    for data_key, value in data.items():
        if data_key not in keys:
            if union is not None and data_key in union.metadata["unused"] and not value:
                continue
            names = dict.fromkeys(name for name, _, _ in keys.values())
            near = nearest(str(data_key), names)
            advice = f"Did you mean {' or '.join(map(repr, near))}?" if near else _advice(names)
            raise error(f"{name} has no field {data_key!r}.", advice)
        key, field, hint = keys[data_key]
        if field is None:
            beside[key] = value
        else:
            arguments[field.name] = _value(hint, value, error, f"{where}.{key}" if where else str(key))
    if union is not None:
        arguments[union.name] = build(_variant(cls, union, data), beside, error, where)
    for field, key, _, _ in _layout(cls):  # type: ignore[arg-type]
        if field.name not in arguments and field.default is MISSING and field.default_factory is MISSING:
            raise error(f"{name} lacks the field {key!r}.", _fields_advice(cls))
    return cls(**arguments)


def accepted_keys(cls: type, data: Mapping[str, Json]) -> dict[str, tuple[str, Field[Any] | None, Any]]:
    """The keys that an object of a dataclass may have, those of earlier releases too.

    By key: what it is called now, its field (None if it belongs to the union's dataclass), its type.
    """
    keys: dict[str, tuple[str, Field[Any] | None, Any]] = {}
    for field, key, hint, _ in _layout(cls):
        if "tag" in field.metadata:
            variant = accepted_keys(_variant(cls, field, data), data)
            keys |= {name: (now, None, part) for name, (now, _, part) in variant.items()}
        else:
            keys |= dict.fromkeys((key, *field.metadata.get("aliases", ())), (key, field, hint))
    return keys


@cache
def _union(cls: Any) -> Field[Any] | None:  # noqa: ANN401
    """The field that holds a tagged union, if there is one."""
    return next((field for field in fields(cls) if "tag" in field.metadata), None)


def _variant(cls: type, union: Field[Any], data: Mapping[str, Json]) -> type:
    """The dataclass that an object's tag, or the tag's default, stands for."""
    tag = next(field for field in fields(cls) if field.name == union.metadata["tag"])
    name = data.get(tag.name, tag.default)
    chosen: type = union.metadata["variants"](name if isinstance(name, str) else tag.default)
    return chosen


def _value(hint: Any, value: Json, error: type[ListenwellError], where: str) -> Any:  # noqa: ANN401, PLR0911
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _value(next(a for a in arguments if a is not type(None)), value, error, where)
    if _is_object(hint) and isinstance(value, Mapping):
        item = arguments[1] if origin is Mapping else get_args(arguments[0])[1]
        return tuple((str(key), _value(item, value[key], error, f"{where}.{key}")) for key in value)
    if origin is tuple and isinstance(value, list | tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_value(arguments[0], item, error, f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) == len(arguments):
            return tuple(
                _value(a, item, error, f"{where}[{i}]")
                for i, (a, item) in enumerate(zip(arguments, value, strict=True))
            )
    if origin is dict and isinstance(value, dict):
        return value
    if isinstance(hint, type) and is_dataclass(hint):
        return build(hint, value, error, where)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is hint:
        return value
    raise error(f"{where} must be {_wanted(hint)}, not {_kind(value)}.", f"Correct {where}.")


@cache
def _layout(cls: Any) -> tuple[tuple[Field[Any], str, Any, bool], ...]:  # noqa: ANN401
    """Field, its JSON key, its type, and whether it is always written."""
    hints = get_type_hints(cls)
    return tuple(
        (field, field.metadata.get("key", field.name), hints[field.name], bool(field.metadata.get("always")))
        for field in fields(cls)
    )


@cache
def _is_object(hint: Any) -> bool:  # noqa: ANN401
    """Whether a type is Mapping[str, X] or tuple[tuple[str, X], ...], or one of these or None."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(_is_object(argument) for argument in get_args(hint))
    arguments = get_args(hint)
    if get_origin(hint) is Mapping:
        return True
    if get_origin(hint) is not tuple or len(arguments) != 2 or arguments[1] is not Ellipsis:
        return False
    return get_origin(arguments[0]) is tuple and get_args(arguments[0])[0] is str


def _fields_advice(cls: type) -> str:
    return _advice(key for field, key, _, _ in _layout(cls) if "tag" not in field.metadata)


def _advice(names: Iterable[str]) -> str:
    return f"Its fields: {', '.join(names)}."


def _kind(value: Json) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) < 60 else shown[:57] + '...'}"


def _wanted(hint: Any) -> str:  # noqa: ANN401
    if get_origin(hint) in (tuple, Mapping, dict):
        return "an object" if _is_object(hint) or get_origin(hint) is dict else "a list"
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}.get(hint, str(hint))


def strings(what: str, values: Iterable[str]) -> tuple[str, ...]:
    """A tuple of texts that are not blank; a single text is refused, since it would fall into letters."""
    if isinstance(values, str):
        raise InputError(f"The {what} must be a list of texts, not one text.", "Put it in a list.")
    result = tuple(values)
    for value in result:
        if type(value) is not str or not value or value.isspace():
            raise InputError(f"The {what} hold {value!r}, which is no text.", "Leave empty ones out.")
    return result


def frozen(what: str, values: Mapping[str, V] | Iterable[tuple[str, V]], kind: type[V]) -> FrozenMapping[V]:
    """A frozen mapping from a mapping or from pairs, after a check of names and values."""
    return values if type(values) is FrozenMapping else FrozenMapping(pairs(what, values, kind))


def pairs(
    what: str, values: Mapping[str, V] | Iterable[tuple[str, V]], kind: type[V]
) -> tuple[tuple[str, V], ...]:
    """Sorted (name, value) pairs from a mapping or from pairs, so that order makes no difference."""
    result = tuple(sorted((values if isinstance(values, Mapping) else dict(values)).items()))
    for key, value in result:
        if type(key) is not str or type(value) is not kind:
            raise InputError(f"The {what} hold {key!r}: {value!r}.", f"Give {kind.__name__} values by name.")
    return result
