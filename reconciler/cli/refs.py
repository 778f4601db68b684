"""Refs as people type them on the command line: arguments and flags that name one object."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.shell_completion import CompletionItem

from reconciler.cli.completing import declared_refs
from reconciler.errors import UsageError
from reconciler.resources.ref import ESCAPES_IN_WORDS, Kind, RefError, ResourceRef, parse_ref

LONGEST_REASON = 500  # code points


class RefType(click.ParamType["ResourceRef"]):
    """An argument or flag that names one object: ``Kind/organization[/project]/name``.

    With a kind, only objects of that kind are meant, and the text may leave the kind out.
    """

    name = "ref"

    def __init__(self, kind: Kind | None = None) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the refs of the manifests that begin so."""
        return [CompletionItem(text) for text in declared_refs(self._kind, incomplete)]

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


@dataclass(frozen=True, slots=True)
class Glass:
    """An object that a plan may lock people out of, and why."""

    ref: ResourceRef
    reason: str

    def __str__(self) -> str:
        """Return it as the command line reads it."""
        return f"{self.ref.address}={self.reason}"


class GlassType(click.ParamType["Glass"]):
    """A flag of the form REF=REASON; in the environment, one on each line."""

    name = "glass"
    envvar_list_splitter = "\n"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the refs of the manifests that begin so; the reason is for a person to write."""
        return [CompletionItem(f"{text}=") for text in declared_refs(None, incomplete)]

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Glass:
        """Return the object and the reason.

        Raises:
            UsageError: the text names no object, or gives no reason that can be kept.
        """
        if isinstance(value, Glass):
            return value
        address, _, text = str(value).partition("=")
        ref, reason = ref_named(address, "--break-glass"), text.strip()
        if not reason:
            problem = "gives no reason"
        elif len(reason) > LONGEST_REASON:
            problem = f"gives a reason of {len(reason)} characters"
        elif not reason.isprintable():
            problem = "gives a reason with characters that cannot be printed"
        else:
            return Glass(ref, reason)
        raise UsageError(
            f"--break-glass {ref.address} {problem}",
            remedy=f"Write --break-glass '{ref.address}=REASON': why this may be done, in 1 to "
            f"{LONGEST_REASON} printable characters. `reconciler history` shows it. In REF, "
            f"{ESCAPES_IN_WORDS}.",
        )


def ref_named(text: str, flag: str = "", kind: Kind | None = None) -> ResourceRef:
    """Return the ref that a text names; the message of an error names ``flag``.

    Raises:
        UsageError: it names none, or could name several: they are listed.
    """
    try:
        return parse_ref(text, kind)
    except RefError as fault:
        raise UsageError(f"{flag} {fault}".lstrip(), remedy=fault.remedy) from None
