"""The API reference as one HTML page, rendered from the OpenAPI description without scripts."""

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from listenwell.serving.settings import NOTICE

_REFERENCE = "#/components/schemas/"


def docs_page(schema: dict[str, Any]) -> str:
    """Render the HTML page."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'><title>listenwell: the API</title><main>",
        f"<h1>listenwell: the API</h1><p>{escape(NOTICE)}</p>",
        f"<p>{escape(schema['info'].get('description', ''))}</p>",
        "<p>For programs: <a href=/openapi.json>openapi.json</a>.</p>",
    ]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method.upper(), path, operation, schema)
    return "".join([*parts, "</main></html>"])


def _operation(method: str, path: str, operation: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        yield f"<p>Body, as JSON:</p>{_fields(body, schema)}"
        yield f"<p>Example:</p><pre>{escape(example(method, path, body, schema))}</pre>"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            reference = answer.get("content", {}).get("application/json", {}).get("schema", {})
            fields = _fields(reference, schema) if "$ref" in reference else ""
            yield f"<p>Response {status}: {escape(answer['description'])}</p>{fields}"
    others = [status for status in operation["responses"] if not status.startswith("2")]
    yield f"<p>Errors: {', '.join(others)}.</p>"


def _fields(reference: dict[str, Any], schema: dict[str, Any]) -> str:
    model = _resolved(reference, schema)
    required = model.get("required", ())
    items = [
        f"<li><code>{escape(name)}</code>{' (required)' if name in required else ''}: "
        f"{escape(_kind(field))}. {escape(field.get('description', ''))}"
        for name, field in model.get("properties", {}).items()
    ]
    return f"<ul>{''.join(items)}</ul>"


def _kind(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).removeprefix(_REFERENCE)
    if "anyOf" in field:
        return " or ".join(_kind(option) for option in field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    return str(field.get("const", field.get("type", "anything")))


def example(method: str, path: str, body: dict[str, Any], schema: dict[str, Any]) -> str:
    """A curl command with the required fields only."""
    values = _example_of(body, schema)
    address = re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), path)
    head = f"curl -X {method} http://127.0.0.1:8000{address} -H 'Content-Type: application/json'"
    return f"{head} -d '{json.dumps(values)}'"


def _example_of(field: dict[str, Any], schema: dict[str, Any]) -> Any:  # noqa: ANN401
    if "examples" in field:
        return field["examples"][0]
    if "$ref" in field:
        model = _resolved(field, schema)
        return {name: _example_of(model["properties"][name], schema) for name in model.get("required", ())}
    if "anyOf" in field:
        return _example_of(field["anyOf"][0], schema)
    if "enum" in field:
        return field["enum"][0]
    if field.get("type") == "array":
        return [_example_of(field["items"], schema)]
    return {"string": "Well done!", "integer": 1, "boolean": False}.get(field.get("type", ""))


def _resolved(reference: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = reference.get("$ref", "").removeprefix(_REFERENCE)
    resolved: dict[str, Any] = schema["components"]["schemas"][name] if name else reference
    return resolved
