"""Chapter 05: tools as values, and arguments that must fit them."""

import copy
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pi_course import messages, schema, signals, values

READ: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "minimum": 1},
        "range": {"type": "array", "items": {"type": "integer"}},
        "options": {"type": "object", "properties": {"binary": {"type": "boolean"}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


async def _execute(arguments: dict[str, Any], context: Any) -> str:
    return "ran"


def _tool(parameters: Any = READ, name: str = "read") -> "schema.ToolDefinition":
    return schema.ToolDefinition(name, "Read a file.", parameters, _execute)


def _paths(parameters: Any, arguments: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(parameters)
    return [error.json_path for error in validator.iter_errors(arguments)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py"},
        {"path": "a.py", "limit": 5, "range": [1, 2], "options": {"binary": True}},
        {"path": "a.py", "range": [], "options": {}},
    ],
)
def test_fitting_arguments_pass(arguments: dict[str, Any]) -> None:
    """Arguments that fit are accepted, frozen or not, and are left as they were."""
    before = copy.deepcopy(arguments)
    schema.validate_arguments(_tool(), arguments)
    schema.validate_arguments(_tool(), values.freeze(arguments))
    assert arguments == before


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({}, "$"),
        ({"path": 5}, "$.path"),
        ({"path": ""}, "$.path"),
        ({"path": None}, "$.path"),
        ({"path": "a", "limit": 0}, "$.limit"),
        ({"path": "a", "limit": True}, "$.limit"),
        ({"path": "a", "range": [1, "2"]}, "$.range[1]"),
        ({"path": "a", "range": (1, 2)}, "$.range"),
        ({"path": "a", "options": {"binary": "yes"}}, "$.options.binary"),
        ({"path": "a", "more": 1}, "$"),
    ],
)
def test_misfits_are_named_by_json_path(arguments: dict[str, Any], path: str) -> None:
    """Arguments that do not fit are a `ToolArgumentError` with jsonschema's `json_path`, frozen or not."""
    for given in (arguments, values.freeze(arguments)):
        with pytest.raises(schema.ToolArgumentError) as caught:
            schema.validate_arguments(_tool(), given)
        assert f"{path}:" in str(caught.value)
    assert path in _paths(READ, arguments)


def test_error_text_says_tool_place_and_reason() -> None:
    """The text, which a model will read, names the tool, every place that is wrong and what was expected."""
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool(), {"limit": "many", "options": []})
    text = str(caught.value)
    for part in (
        "read",
        "'path' is a required property",
        "$.limit: 'many' is not of type 'integer'",
        "$.options:",
    ):
        assert part in text


def test_error_text_stays_short() -> None:
    """Neither a thousand wrong items nor one of a million characters makes a long text."""
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool(), {"path": "a", "range": ["x"] * 1000})
    assert "$.range[0]" in str(caught.value)
    assert len(str(caught.value)) < 500
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool(), {"path": "a", "limit": "x" * 1_000_000})
    assert "$.limit" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_unusual_names_have_jsonschemas_path() -> None:
    """Where a property's name is no identifier, the text has the path in jsonschema's own notation."""
    parameters = {"properties": {"max lines": {"type": "integer"}}}
    arguments = {"max lines": "x"}
    (path,) = _paths(parameters, arguments)
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool(parameters), arguments)
    assert path in str(caught.value)


def test_references_inside_the_schema_are_followed() -> None:
    """A `$ref` to the schema's own `$defs` is followed, recursive ones too."""
    parameters = {
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
            }
        },
    }
    tree: Any = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    schema.validate_arguments(_tool(parameters), {"tree": tree})
    tree["children"][0]["children"][0]["name"] = 3
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool(parameters), {"tree": tree})
    assert "$.tree.children[0].children[0].name:" in str(caught.value)


REFERENCES = ["#/$defs/missing", "#anchor", "other.json", "https://example.invalid/schema.json"]


@pytest.mark.filterwarnings("ignore")  # fetching would only be a warning of jsonschema's
@pytest.mark.parametrize("reference", [*REFERENCES, "a file"])
def test_references_that_lead_out_are_a_bad_schema(reference: str, tmp_path: Path) -> None:
    """A `$ref` to what the schema does not hold is a `ToolArgumentError`: nothing is fetched or opened."""
    file = tmp_path / "schema.json"
    file.write_text("{}", encoding="utf-8")
    parameters = {"properties": {"a": {"$ref": file.as_uri() if reference == "a file" else reference}}}
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool(parameters), {"a": 1})
    assert "read: bad schema" in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ({"type": "objekt"}, "$.type"),
        ({"properties": {"a": {"type": "strin"}}}, "$.properties.a.type"),
        ({"properties": {"a": {"pattern": "("}}}, "$.properties.a.pattern"),
        ({"required": "path"}, "$.required"),
        ([], "$"),
        (None, "$"),
        ({"properties": {1: {}}}, "$"),
        ({"const": {1, 2}}, "$"),
    ],
)
def test_bad_schema_is_reported_as_such(parameters: Any, path: str) -> None:
    """A schema that is none is a `ToolArgumentError` which says so and where, whatever the arguments."""
    for arguments in ({}, {"a": "x"}):
        with pytest.raises(schema.ToolArgumentError) as caught:
            schema.validate_arguments(_tool(parameters), arguments)
        assert f"read: bad schema: {path}:" in str(caught.value)


@pytest.mark.parametrize("arguments", [None, [], "path", 5, ("path",)], ids=repr)
def test_arguments_are_an_object(arguments: Any) -> None:
    """Only a JSON object can be arguments, even where the schema would take anything."""
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool({}), arguments)
    assert "$:" in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [{1: "a"}, {"a": {1, 2}}, {"a": [object()]}, {"a": b"x"}],
    ids=["number as key", "set", "object", "bytes"],
)
def test_arguments_are_json(arguments: Any) -> None:
    """What JSON cannot say, such as a key that is a number, is a `ToolArgumentError`, not a crash."""
    with pytest.raises(schema.ToolArgumentError):
        schema.validate_arguments(_tool({}), arguments)


def test_endless_nesting_is_reported() -> None:
    """Arguments nested too deeply for the interpreter and a schema that is only itself are errors too."""
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(schema.ToolArgumentError):
        schema.validate_arguments(_tool({}), deep)
    with pytest.raises(schema.ToolArgumentError):
        schema.validate_arguments(_tool({"$ref": "#"}), {})
    while deep:
        deep = deep["a"]  # taken apart by hand: freeing it at once would be as deep


def test_draft_is_the_schemas_own() -> None:
    """`$schema` chooses the draft; without it 2020-12 holds, where `prefixItems` is known."""
    pair = {"properties": {"pair": {"prefixItems": [{"type": "string"}]}}}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **pair}
    schema.validate_arguments(_tool(old), {"pair": [1]})
    with pytest.raises(schema.ToolArgumentError):
        schema.validate_arguments(_tool(pair), {"pair": [1]})


def test_defaults_are_not_filled_in() -> None:
    """Validation only looks: a `default` in the schema is the tool's own business."""
    arguments: dict[str, Any] = {}
    schema.validate_arguments(_tool({"properties": {"limit": {"default": 5}}}), arguments)
    assert arguments == {}


def test_changed_schema_counts() -> None:
    """The schema is the one at the time of the call, though a checked schema is remembered."""
    parameters: dict[str, Any] = {"required": ["path"]}
    tool = _tool(parameters)
    with pytest.raises(schema.ToolArgumentError):
        schema.validate_arguments(tool, {})
    parameters["required"] = []
    schema.validate_arguments(tool, {})


def test_frozen_schema_is_a_schema() -> None:
    """A tool whose parameters were frozen by a careful author validates like any other."""
    tool = _tool(values.freeze(READ))
    schema.validate_arguments(tool, {"path": "a.py"})
    with pytest.raises(schema.ToolArgumentError):
        schema.validate_arguments(tool, {})


def test_argument_error_is_an_ordinary_exception() -> None:
    """`ToolArgumentError` is an `Exception` that names its cause where a schema or a reference was bad."""
    assert issubclass(schema.ToolArgumentError, Exception)
    with pytest.raises(schema.ToolArgumentError) as caught:
        schema.validate_arguments(_tool({"type": "objekt"}), {})
    assert isinstance(caught.value.__cause__, jsonschema.SchemaError)


def test_definition_and_context_are_read_only() -> None:
    """A tool's definition and the context of its run cannot be assigned to."""
    tool, context = _tool(), schema.ToolContext(signals.AbortController().signal)
    assert tool.execute is _execute
    with pytest.raises(FrozenInstanceError):
        tool.name = "write"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        context.signal = signals.AbortController().signal  # type: ignore[misc]


def test_output_is_a_value() -> None:
    """A tool's output has no details unless given, compares by content, and can be cloned."""
    output = schema.ToolOutput([messages.TextContent("a")])
    assert output.details is None
    assert values.clone(output) == output
    assert output != schema.ToolOutput([messages.TextContent("a")], details={"n": 1})
