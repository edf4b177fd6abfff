"""The OpenAPI document as one page that needs no script and loads nothing."""

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from app.api.openapi import document

Json = dict[str, Any]

_CODE = re.compile("`([^`]+)`")


def render_reference(style: str) -> str:
    """Return the reference of every operation as HTML."""
    described = document()
    body = "\n".join(
        [
            f"<h1>{escape(described['info']['title'])} {escape(described['info']['version'])}</h1>",
            *(f"<p>{_prose(paragraph)}</p>" for paragraph in described["info"]["description"].split("\n\n")),
            '<p><a href="/openapi.json">openapi.json</a> says the same for machines.</p>',
            *_operations(described),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Assay reference</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n"
        "</html>\n"
    )


def _operations(described: Json) -> Iterator[str]:
    for tag in described["tags"]:
        yield f"<h2>{escape(tag['description'])}</h2>"
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    yield _operation(described, path, method, operation)


def _operation(described: Json, path: str, method: str, operation: Json) -> str:
    parts = [
        f'<section class="operation" id="{escape(operation["operationId"])}">',
        f'<p><code><span class="method">{method.upper()}</span> {escape(path)}</code>',
        f"{escape(operation['summary'])}</p>",
        f"<p>{_prose(operation.get('description', ''))}</p>",
        _parameters(operation.get("parameters", [])),
    ]
    if "requestBody" in operation:
        parts += _examples("Body", operation["requestBody"]["content"])
    for status, response in operation["responses"].items():
        named = _resolved(described, response)
        parts += _examples(f"{status} {named['description']}", named.get("content", {}))
    return "\n".join([*parts, "</section>"])


def _resolved(described: Json, response: Json) -> Json:
    if "$ref" not in response:
        return response
    found: Json = described["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    return found


def _parameters(parameters: list[Json]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td>"
        f"<td>{_prose(each.get('description', ''))}</td></tr>"
        for each in parameters
    )
    return f"<table>{rows}</table>"


def _examples(title: str, content: Json) -> list[str]:
    blocks = [
        f"<pre><code>{escape(_shown(example['value']))}</code></pre>"
        for media in content.values()
        for example in media["examples"].values()
    ]
    return [f"<details><summary>{escape(title)}</summary>{''.join(blocks)}</details>"]


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
