"""A field before and after, in lines for a person: what drift and history show."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.plan.diff import CREDENTIAL, FieldChange
from reconciler.report.differences import secret_words, sides_of, unified, value_as_text
from reconciler.report.style import Style

_LOOKS = {"+": "green", "-": "red", "@": "cyan"}


def field_lines(field: FieldChange, style: Style) -> Iterator[str]:
    """Yield a field: scripts by line, lists by item, anything else on one line."""
    before_lines, after_lines, by_line = sides_of(field, is_new=False)
    if not by_line and not isinstance(field.after, list):
        values = (value_as_text(field.before), value_as_text(field.after))
        was, now = secret_words(field) if field.name == CREDENTIAL else values
        before = "" if field.before is None else f"{style(was, 'red')} -> "
        yield f"{field.name}: {before}{style(now, 'green')}"
        return
    lines = list(unified(before_lines, after_lines))
    yield f"{field.name}:{'' if lines else ' []'}"
    for mark, line in lines:
        look = _LOOKS.get(mark)
        yield f"  {style(f'{mark} {line}', look)}" if look else f"  {mark} {line}"
