"""Copies of values: what may cross a boundary, how it is detached, how it is made read-only.

Decision: exact types, because a copy of a subclass (an enum member, a `defaultdict`) would have to drop
what makes it one, and whoever put it there should hear of that. Sharing inside a value is not kept: a list
that appears twice becomes two lists, as it would through JSON.
"""

from dataclasses import fields, is_dataclass
from types import MappingProxyType, NoneType
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

T = TypeVar("T")

_SCALARS = frozenset({str, int, float, bool, NoneType})
_PACKAGE = __name__.partition(".")[0]
_set = object.__setattr__  # fills the fields of read-only dataclasses too


def clone(value: T) -> T:
    """Return a deep, changeable copy that shares no container with `value`.

    Takes JSON values (dicts with string keys), tuples, dataclasses of this package, and what `freeze` made of
    them: a frozen value comes back as what it was, `clone(freeze(x)) == x`. A dataclass is copied field by
    field, without its `__init__`.

    Raises `TypeError` for any other type, a key that is no string included, and `RecursionError` for a value
    that holds itself or is nested beyond the interpreter's limit. (Chapter 01)
    """
    return _clone(value)  # type: ignore[no-any-return]


def freeze(value: T) -> T:
    """Return a deep copy of `value` that cannot be changed.

    Dicts become `MappingProxyType`, lists become tuples (which `clone` knows apart from other tuples), and
    dataclasses become instances of a read-only subclass of their class. Assigning, deleting and mutating
    methods raise `TypeError` or `AttributeError`. What is frozen already comes back as it is.

    Takes and raises what `clone` does. The static type stays the unfrozen one, so that code which only reads
    needs no second signature. (Chapter 01)
    """
    return _freeze(value)  # type: ignore[no-any-return]


def _clone(value: Any) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict or kind is MappingProxyType:
        return {_key(key): _clone(item) for key, item in value.items()}
    if kind is list or kind is _FrozenList:
        return [_clone(item) for item in value]
    if kind is tuple:
        return tuple([_clone(item) for item in value])
    plain, _, names = _record_of(kind)
    copy: object = object.__new__(plain)
    for name in names:
        _set(copy, name, _clone(getattr(value, name)))
    return copy


def _freeze(value: Any) -> Any:
    kind = type(value)
    if kind in _SCALARS or isinstance(value, _Frozen):
        return value
    if kind is dict or kind is MappingProxyType:
        return MappingProxyType({_key(key): _freeze(item) for key, item in value.items()})
    if kind is list:
        return _FrozenList([_freeze(item) for item in value])
    if kind is tuple:
        return tuple([_freeze(item) for item in value])
    _, frozen, names = _record_of(kind)
    copy: object = object.__new__(frozen)
    for name in names:
        _set(copy, name, _freeze(getattr(value, name)))
    return copy


def _key(key: Any) -> str:
    if type(key) is not str:
        raise TypeError(f"cannot copy a dict with the key {key!r}: only strings are keys")
    return key


class _Frozen:
    """What `freeze` made: deeply read-only, copied and pickled by way of its changeable form."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (clone(self),)


class _FrozenList(_Frozen, tuple[Any, ...]):
    """A tuple that was a list."""

    __slots__ = ()


class _FrozenRecord(_Frozen):
    """The part of a read-only dataclass that makes it read-only."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is read-only: change a clone() of it instead")

    __init__ = __setattr__ = __delattr__ = __setstate__ = _refuse


class _Record(NamedTuple):
    """A dataclass that may be copied: itself, its read-only subclass, and its fields' names."""

    plain: type
    frozen: type
    names: tuple[str, ...]


_RECORDS: dict[type, _Record] = {}


def _record_of(kind: type) -> _Record:
    """Return the record of a dataclass of this package or of its read-only subclass."""
    if (known := _RECORDS.get(kind)) is not None:
        return known
    if not is_dataclass(kind) or kind.__module__.partition(".")[0] != _PACKAGE:
        raise TypeError(
            f"cannot copy a {kind.__module__}.{kind.__qualname__}: "
            f"only JSON values, tuples and dataclasses of {_PACKAGE} are copied"
        )
    names = tuple(field.name for field in fields(kind))
    # `vars(frozen)` is a view: the real `__dict__`, where there is one, would be a way around `__setattr__`
    view = property(lambda self: MappingProxyType({name: getattr(self, name) for name in names}))
    members = {"__slots__": (), "__module__": kind.__module__, "__dict__": view}
    record = _Record(kind, type(f"Frozen{kind.__name__}", (_FrozenRecord, kind), members), names)
    _RECORDS[kind] = _RECORDS[record.frozen] = record
    return record
