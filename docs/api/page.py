"""A page for people, made from the OpenAPI document. It loads nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from docs.api.document import openapi

_STYLE = """\
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--accent:light-dark(#0550ae,#79c0ff)}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;
background:light-dark(#fff,#0d1117);color:light-dark(#1f2328,#e6edf3)}
h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0}
summary{padding:.5rem .75rem;cursor:pointer}details>div{padding:0 .75rem .75rem}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:var(--soft);padding:.75rem;
border-radius:6px;overflow:auto;max-height:28rem}
.verb{display:inline-block;min-width:4.5rem;font-weight:700;color:var(--accent)}
.old code{text-decoration:line-through}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid var(--line);text-align:left;padding:.3rem .6rem;vertical-align:top}
a{color:var(--accent)}
"""


def docs_page() -> str:
    """Return the page."""
    document = openapi()
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{_text(paragraph)}</p>" for paragraph in info["description"].split("\n\n")),
        '<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>',
    ]
    for tag in document["tags"]:
        parts.append(
            f"<h2>{escape(tag['name'].capitalize())}</h2><p>{_text(tag['description'])}</p>"
        )
        parts += _operations(document, tag["name"])
    parts.append("<h2>Schemas</h2>")
    for name, schema in document["components"]["schemas"].items():
        parts.append(f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>')
        parts.append(f"<div>{_json(schema)}</div></details>")
    return "".join([*parts, "</body></html>\n"])


def _operations(document: Mapping[str, Any], tag: str) -> Iterator[str]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            if tag in operation["tags"]:
                yield from _operation(verb, path, operation)


def _operation(verb: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    old = ' class="old"' if operation.get("deprecated") else ""
    yield f'<details{old}><summary><span class="verb">{verb.upper()}</span> '
    yield f"<code>{escape(path)}</code> {_text(operation['summary'])}</summary><div>"
    yield f"<p><code>{escape(operation['operationId'])}</code>. "
    yield "Deprecated; may go in a later version. " if old else ""
    yield f"{_text(operation.get('description', 'Needs no permission.'))}</p>"
    if operation["parameters"]:
        yield "<table><tr><th>Parameter<th>In<th>What</tr>"
        for parameter in operation["parameters"]:
            what = parameter.get("description", "Required." if parameter.get("required") else "")
            yield f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']}"
            yield f"<td>{_text(what)}</tr>"
        yield "</table>"
    if "requestBody" in operation:
        yield f"<p>Request</p>{_json(_schema(operation['requestBody']))}"
    yield f"<p>Answer</p>{_json(_schema(operation['responses']['200']))}</div></details>"


def _schema(content: Mapping[str, Any]) -> Any:
    return content["content"]["application/json"]["schema"]


def _json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _text(text: str) -> str:
    """Return text as HTML; what stands in back-ticks is code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
