"""Kinds as people type them on the command line."""

from __future__ import annotations

import difflib

import click

from reconciler.resources.ref import Kind


def kind_named(text: str) -> Kind:
    """Return the kind of this name, in upper or lower case.

    Raises:
        click.BadParameter: there is none; names the nearest, or all.
    """
    kinds = {kind.value.lower(): kind for kind in Kind}
    found = kinds.get(text.lower())
    if found is None:
        close = difflib.get_close_matches(text.lower(), kinds, n=1)
        hint = f"Did you mean {kinds[close[0]].value}?" if close else ""
        names = ", ".join(kind.value for kind in Kind)
        raise click.BadParameter(f"{text!r} is not a kind. {hint or f'The kinds are {names}.'}")
    return found
