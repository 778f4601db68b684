"""Refs as people type them on the command line: arguments and flags that name one object."""

from __future__ import annotations

import click

from reconciler.errors import UsageError
from reconciler.resources.ref import Kind, RefError, ResourceRef, parse_ref


class RefType(click.ParamType["ResourceRef"]):
    """An argument or flag that names one object: ``Kind/organization[/project]/name``.

    With a kind, only objects of that kind are meant, and the text may leave the kind out.
    """

    name = "ref"

    def __init__(self, kind: Kind | None = None) -> None:
        self._kind = kind

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> ResourceRef:
        """Return the ref that a text names.

        Raises:
            UsageError: it names none, or could name several: they are listed.
        """
        if isinstance(value, ResourceRef):
            return value
        flag = param.opts[0] if isinstance(param, click.Option) else ""
        return ref_named(str(value), flag, self._kind)


def ref_named(text: str, flag: str = "", kind: Kind | None = None) -> ResourceRef:
    """Return the ref that a text names; ``flag`` is where it was given, for the message.

    Raises:
        UsageError: it names none, or could name several: they are listed.
    """
    try:
        return parse_ref(text, kind)
    except RefError as fault:
        raise UsageError(f"{flag} {fault}".lstrip(), remedy=fault.remedy) from None
