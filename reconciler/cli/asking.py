"""Asking for the word ``yes`` before something that cannot be undone."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from reconciler.cli.options import option
from reconciler.errors import UsageError

auto_approve_option = option(
    "--auto-approve", is_flag=True, help="Do not ask before anything is written."
)


def ask_for_yes(deed: str, command: str, about: Iterable[str] = ()) -> None:
    """Return once the word ``yes`` was typed.

    ``deed`` is the question ("apply this plan"), ``command`` the one that asks; the lines
    of ``about`` stand above the question.

    Raises:
        UsageError: there is no terminal to ask in, or another word was typed.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            f"there is no terminal to ask whether to {deed}",
            remedy=f"Give --auto-approve, or run {command} in a terminal. Nothing was written.",
        )
    click.echo("".join(f"\n{line}" for line in about), err=True)
    question = f"{deed[0].upper()}{deed[1:]}? Only the word yes will do: "
    click.echo(question, err=True, nl=False)
    if sys.stdin.readline().strip() != "yes":
        raise UsageError(
            "not approved: the answer was not the word yes", remedy="Nothing was written."
        )
