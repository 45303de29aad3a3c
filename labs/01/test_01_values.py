"""Chapter 01: deep copies that share nothing, and read-only ones."""

import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pi_course import values


def _of_the_package(cls: type) -> type:
    """Make a test's dataclass look as if a later chapter had defined it."""
    cls.__module__ = "pi_course.later"
    return cls


@_of_the_package
@dataclass(slots=True)
class Part:
    text: str
    notes: dict[str, Any] = field(default_factory=dict)


@_of_the_package
@dataclass(slots=True)
class Letter:
    parts: list[Part]
    stamp: tuple[int, list[int]] = (0, [])


@_of_the_package
@dataclass
class Loose:
    items: list[int]


@_of_the_package
@dataclass(frozen=True, slots=True)
class Event:
    part: Part


@_of_the_package
@dataclass(slots=True)
class Checked:
    low: int
    high: int
    width: int = field(init=False)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")
        self.width = self.high - self.low


@dataclass
class Foreign:
    text: str


# The same examples in every run, however slow the machine is.
steadily = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=25,
)
VALUES = st.recursive(
    JSON,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3)
        | st.builds(Part, st.text(), st.dictionaries(st.text(), inner, max_size=3))
        | st.builds(lambda item: Event(Part("event", {"of": item})), inner)
        | st.builds(lambda items: Letter([Part("letter", {"of": items})], (1, [2])), inner)
    ),
    max_leaves=10,
)


def _containers(value: Any) -> Iterator[Any]:
    """Yield every object in a value that could be changed from outside."""
    if isinstance(value, dict | MappingProxyType):
        yield value
        for item in value.values():
            yield from _containers(item)
    elif isinstance(value, list | tuple):
        if isinstance(value, list):
            yield value
        for item in value:
            yield from _containers(item)
    elif hasattr(value, "__dataclass_fields__"):
        yield value
        for name in value.__dataclass_fields__:
            yield from _containers(getattr(value, name))


def _same_types(left: Any, right: Any) -> bool:
    """Whether two equal values agree in type at every depth, so that `True` is not `1` nor `(1,)` a list."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return all(_same_types(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return all(map(_same_types, left, right))
    if hasattr(left, "__dataclass_fields__"):
        return all(_same_types(getattr(left, n), getattr(right, n)) for n in left.__dataclass_fields__)
    return True


@steadily
@given(VALUES)
def test_clone_equals_its_original_in_every_type(value: Any) -> None:
    """`clone(x) == x`, and every part of the copy has the type of the part that it copies."""
    copied = values.clone(value)
    assert copied == value
    assert _same_types(copied, value)


@steadily
@given(VALUES)
def test_clone_shares_no_container_with_its_original(value: Any) -> None:
    """No dict, list or dataclass of the copy is an object of the original, at any depth."""
    originals = {id(part) for part in _containers(value)}
    assert not [part for part in _containers(values.clone(value)) if id(part) in originals]


def test_clone_changed_deeply_leaves_its_original_alone() -> None:
    """Changing the copy, however deep and behind tuples too, never shows in the original."""
    letter = Letter([Part("a", {"tags": ["x"], "deep": ({"n": [1]},)})], (7, [8]))
    copied = values.clone(letter)
    copied.parts[0].text = "b"
    copied.parts[0].notes["tags"].append("y")
    copied.parts[0].notes["deep"][0]["n"].append(2)
    copied.stamp[1].append(9)
    copied.parts.append(Part("c"))
    assert letter == Letter([Part("a", {"tags": ["x"], "deep": ({"n": [1]},)})], (7, [8]))


def test_clone_splits_what_was_shared_inside() -> None:
    """A list that stands twice in a value becomes two lists, as it would on its way through JSON."""
    shared = [1]
    copied = values.clone({"a": shared, "b": shared})
    copied["a"].append(2)
    assert copied == {"a": [1, 2], "b": [1]}


def test_clone_copies_fields_without_running_init() -> None:
    """A dataclass, slotted or frozen or neither, is copied as it stands, even where `__init__` would not."""
    checked = Checked(1, 5)
    checked.low = 9
    copied = values.clone(checked)
    assert (copied.low, copied.high, copied.width) == (9, 5, 4)
    for value in (Part("a"), Loose([1]), Event(Part("b", {"k": [1]}))):
        assert values.clone(value) == value
        assert type(values.clone(value)) is type(value)


WRAPPINGS: list[Callable[[Any], Any]] = [
    lambda value: value,
    lambda value: {"key": [value]},
    lambda value: (value,),
    lambda value: Part("part", {"key": value}),
]


class _Colour(IntEnum):
    RED = 1


class _Word(StrEnum):
    YES = "yes"


class _Pair(NamedTuple):
    left: int
    right: int


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        bytearray(b"b"),
        1j,
        object(),
        print,
        lambda: None,
        Decimal(1),
        datetime(2024, 1, 1, tzinfo=UTC),
        Foreign("x"),
        Part,
        iter([1]),
        _Colour.RED,
        _Word.YES,
        OrderedDict(a=1),
        _Pair(1, 2),
        NotImplemented,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", WRAPPINGS)
def test_other_types_are_refused_at_any_depth(value: Any, wrap: Callable[[Any], Any]) -> None:
    """What is neither JSON, a tuple nor a dataclass of the package is a `TypeError`, subclasses included."""
    with pytest.raises(TypeError):
        values.clone(wrap(value))
    with pytest.raises(TypeError):
        values.freeze(wrap(value))


@pytest.mark.parametrize("key", [1, None, True, 1.5, (1,), b"k", _Word.YES], ids=repr)
def test_keys_are_strings(key: Any) -> None:
    """A dict with a key that is no plain string is a `TypeError`, nested and frozen alike."""
    for value in ({key: 1}, [{"a": {key: 1}}], MappingProxyType({key: 1})):
        with pytest.raises(TypeError):
            values.clone(value)
        with pytest.raises(TypeError):
            values.freeze(value)


def test_numbers_keep_their_kind_and_value() -> None:
    """Bools stay bools, floats floats, and NaN, infinities, signed zero and huge integers come through."""
    copied = values.clone([True, 1, 1.0, -0.0, math.nan, math.inf, 10**400])
    assert [type(number) for number in copied] == [bool, int, float, float, float, float, int]
    assert copied[0] is True
    assert math.copysign(1, copied[3]) == -1
    assert math.isnan(copied[4])
    assert copied[5:] == [math.inf, 10**400]


def test_a_value_that_holds_itself_is_an_error() -> None:
    """A cycle, which JSON cannot say, ends in `RecursionError` and not in a hang."""
    loop: list[Any] = []
    loop.append(loop)
    for function in (values.clone, values.freeze):
        with pytest.raises(RecursionError):
            function(loop)


def test_wide_values_are_copied() -> None:
    """Width is bounded by memory alone: 100,000 items are copied like three."""
    wide = {"items": [{"n": n} for n in range(100_000)]}
    assert values.clone(wide) == wide
    assert len(values.freeze(wide)["items"]) == 100_000


@steadily
@given(VALUES)
def test_clone_of_freeze_is_the_original(value: Any) -> None:
    """`clone(freeze(x)) == x`: lists come back as lists, tuples stay tuples, classes are the plain ones."""
    thawed = values.clone(values.freeze(value))
    assert thawed == value
    assert _same_types(thawed, value)


def _assign_item(value: Any) -> None:
    value["new" if isinstance(value, MappingProxyType) else 0] = "x"


def _delete_item(value: Any) -> None:
    del value[next(iter(value)) if isinstance(value, MappingProxyType) else 0]


MUTATIONS: list[Callable[[Any], Any]] = [
    _assign_item,
    _delete_item,
    lambda value: setattr(value, "text", "x"),
    lambda value: setattr(value, "brand_new", "x"),
    lambda value: setattr(value, "__class__", dict),
    lambda value: delattr(value, "text"),
    lambda value: value.append(1),
    lambda value: value.extend([1]),
    lambda value: value.insert(0, 1),
    lambda value: value.remove(1),
    lambda value: value.sort(),
    lambda value: value.reverse(),
    lambda value: value.clear(),
    lambda value: value.pop(),
    lambda value: value.popitem(),
    lambda value: value.update(a=1),
    lambda value: value.setdefault("new", 1),
    lambda value: value.__setitem__(0, 1),
    lambda value: value.__ior__({"new": 1}),
    lambda value: value.__iadd__([1]),
]
BACK_DOORS: list[Callable[[Any], Any]] = [
    lambda value: value.__init__("x"),
    lambda value: value.__setstate__(["x"]),
    lambda value: value.__dict__.update(text="x"),
    lambda value: vars(value).__setitem__("text", "x"),
]


@pytest.mark.parametrize("mutate", MUTATIONS)
@pytest.mark.parametrize(
    "value",
    [{"a": [1]}, [1, 2], Part("a", {"k": [1]}), Loose([1]), Event(Part("a"))],
    ids=["dict", "list", "slotted", "loose", "event"],
)
def test_every_way_to_change_a_frozen_value_raises(value: Any, mutate: Callable[[Any], Any]) -> None:
    """Assigning, deleting and mutating raise `TypeError` or `AttributeError`, and nothing has changed."""
    frozen = values.freeze(value)
    with pytest.raises((TypeError, AttributeError)):
        mutate(frozen)
    assert values.clone(frozen) == value


@pytest.mark.parametrize("mutate", BACK_DOORS)
@pytest.mark.parametrize(
    "value", [Part("a"), Loose([1]), Event(Part("a"))], ids=["slotted", "loose", "event"]
)
def test_a_frozen_dataclass_has_no_back_door(value: Any, mutate: Callable[[Any], Any]) -> None:
    """Neither a second `__init__` nor a restored state nor `vars` is a way to change a frozen dataclass."""
    frozen = values.freeze(value)
    with pytest.raises((TypeError, AttributeError)):
        mutate(frozen)
    assert values.clone(frozen) == value


@steadily
@given(VALUES)
def test_freeze_reaches_every_depth(value: Any) -> None:
    """No plain dict, list or changeable dataclass is left anywhere in a frozen value."""
    for part in _containers(values.freeze(value)):
        assert not isinstance(part, dict | list)
        if hasattr(part, "__dataclass_fields__"):
            with pytest.raises((TypeError, AttributeError)):
                part.text = "changed"


def test_frozen_values_keep_their_shape_for_readers() -> None:
    """Mappings are `MappingProxyType`, lists are tuples, dataclasses stay instances and match patterns."""
    frozen: Any = values.freeze(Letter([Part("a", {"k": [1, {"n": 2}]})]))
    assert isinstance(frozen, Letter)
    assert isinstance(frozen.parts, tuple)
    assert isinstance(frozen.parts[0].notes, MappingProxyType)
    assert frozen.parts[0].notes["k"][1]["n"] == 2
    match frozen:
        case Letter(parts=(Part(text),)):
            assert text == "a"
        case _:
            pytest.fail("a frozen dataclass no longer matches its class")


def test_freeze_is_detached_from_its_original() -> None:
    """What happens to the original afterwards does not show in the frozen copy, a proxy's dict included."""
    inner = {"n": [1]}
    frozen_part, frozen_view = values.freeze(Part("a", inner)), values.freeze(MappingProxyType(inner))
    inner["n"].append(2)
    inner["m"] = []
    assert values.clone(frozen_part) == Part("a", {"n": [1]})
    assert values.clone(frozen_view) == {"n": [1]}


def test_freeze_of_frozen_values_adds_nothing() -> None:
    """Freezing twice is freezing once: the plain value comes back by one `clone`."""
    letter = Letter([Part("a", {"k": [1]})], (1, [2]))
    assert values.clone(values.freeze(values.freeze(letter))) == letter
    assert values.clone(values.freeze({"frozen": values.freeze(letter)})) == {"frozen": letter}


def test_frozen_dataclasses_compare_and_show_their_fields() -> None:
    """Frozen copies of equal dataclasses are equal, and their `repr` names class and fields."""
    frozen = values.freeze(Part("hello", {"k": [1]}))
    assert frozen == values.freeze(Part("hello", {"k": [1]}))
    assert frozen != values.freeze(Part("hello"))
    assert "Part(text='hello'" in repr(frozen)


def test_frozen_dataclasses_are_changed_by_way_of_a_clone() -> None:
    """`replace` on a frozen dataclass is refused; its clone is what its class makes of it, frozen or not."""
    frozen = values.freeze(Part("a"))
    with pytest.raises(TypeError):
        replace(frozen, text="b")
    assert replace(values.clone(frozen), text="b") == Part("b")
    assert frozen.text == "a"
    event = values.clone(values.freeze(Event(Part("a"))))
    with pytest.raises(FrozenInstanceError):
        event.part = Part("b")  # type: ignore[misc]


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_the_copy_module_takes_frozen_dataclasses_and_lists(copier: Callable[[Any], Any]) -> None:
    """`copy.copy` and `copy.deepcopy` of a frozen dataclass or list give an equal, frozen one."""
    for value in (Part("a", {"k": [1]}), [Part("b"), {"k": (1, [2])}]):
        frozen = values.freeze(value)
        again = copier(frozen)
        assert again == frozen
        with pytest.raises((TypeError, AttributeError)):
            again[0] = "changed"
        assert values.clone(again) == value
