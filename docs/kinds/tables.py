"""The tables of fields in the page for authors of manifests, made from the declarations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Field, Form
from reconciler.resources.ref import Kind

_TABLE = re.compile(r"(<!-- fields of (\w+) -->\n).*?(<!-- end of fields -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """Return a page with the table of each kind between the comments that name it."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{_table(Kind(found[2]))}\n\n{found[3]}", page)


def _table(kind: Kind) -> str:
    row = KINDS[kind]
    rows = []
    for field in row.fields:
        other = row.instead.get(field.name)
        rows.append(_row(field, other))
        rows += [_row(other, field)] if other else []
    return "\n".join(["| Field | Default | |", "|---|---|---|", *rows])


def _row(field: Field, other: Field | None) -> str:
    """Return the row of a field; ``other`` is a field that may be written in its place."""
    if other:
        default = f"this or `{other.name}`"
    else:
        default = "required" if field.default is None else f"`{_written(field)}`"
        default = "as it is held" if field.left_as_held else default
    return f"| `{field.name}` | {default} | {' '.join(_meaning(field))} |"


def _written(field: Field) -> str:
    """Return a default as it is written in a manifest, in short."""
    short = {long: word for word, long in field.short.items()}
    default = field.default
    if isinstance(default, list):
        return f"[{', '.join(short.get(word, word) for word in default)}]"
    if isinstance(default, str) and default:
        return short.get(default, default)
    return json.dumps(default)


def _meaning(field: Field) -> Iterator[str]:
    yield field.about
    if field.form is Form.TEXT:
        if field.longest:
            yield f"Length {field.shortest} to {field.longest}."
    elif field.form is Form.TEXTS:
        yield "The order is kept."
    elif len(field.words) == 1:
        yield "The only value."
    elif field.words:
        some = "A set of" if field.form is Form.SET else "One of"
        short = ", ".join(f"`{word}`" for word in field.short)
        yield f"{some} {short}, each also with `{field.beginning}` before it."
