"""``reconciler trust`` and ``machine``: who gets short tokens for tokens that they sign.

Both work where the store is, or over HTTP with an admin's token: they call the same operations.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.clients import remote_service
from reconciler.cli.connection import Connection, is_remote, require_extra
from reconciler.cli.options import command, group
from reconciler.cli.output import print_json, stdout_style, time_in_words
from reconciler.cli.process import ExitCode
from reconciler.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    LocalFileError,
    ReconcilerError,
    UsageError,
    writing,
)
from reconciler.report.visible import visible
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.files import new_private, read_start, sync, write_whole
from reconciler.service.domain.trust import ISSUER, MACHINE, MAX_KEYS_BYTES, PRESETS, role_given
from reconciler.service.eventstore.rows import TrustRow
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service_client.wire import Wire, answers_of

if TYPE_CHECKING:
    from reconciler.service.keyless.signatures import SignedToken

Shown = Mapping[str, Any]
"""A rule or a machine, as the service answers it."""

trust_group = group("trust", "Manage rules for keyless login: add, list, show, remove, test.")
machine_group = group("machine", "Manage machines with keys of their own: add, list, remove.")


@contextmanager
def _operations(connection: Connection) -> Iterator[Wire]:
    """Open a way to call operations, of a store here or of a service elsewhere.

    Raises:
        ServiceError: there is no store at the address, or it cannot be used.
        UsageError, AccessDeniedError: the credentials are missing, or contradict themselves.
    """
    if is_remote(connection.service):
        with remote_service(connection) as remote:
            yield remote.wire
        return
    from reconciler.cli.embedded import InProcessWire, open_service

    with open_service(connection) as opened:
        yield InProcessWire(opened)


def _called(connection: Connection, operation: str, fields: JsonObject) -> JsonObject:
    """Call one operation. Raises as ``_operations``, and where it is refused."""
    with _operations(connection) as wire:
        try:
            (answer,) = answers_of(wire, [Call(operation, fields)])
        except InvalidArgumentError as failure:
            raise UsageError(
                failure.problem, remedy="docs/keyless.md says what a rule must have."
            ) from None
        except AlreadyExistsError as failure:
            raise UsageError(
                failure.problem, remedy="Choose another name, or remove the other one first."
            ) from None
    return answer


def _rules(connection: Connection, kind: str) -> Sequence[Shown]:
    found = _called(connection, "ListTrust", {})["rules"]
    return [rule for rule in found if rule["kind"] == kind]


def _ends(expires: int | None) -> int:
    """Return a time from now on, in microseconds since the epoch; 0 for none."""
    return time.time_ns() // 1000 + expires * MICROSECONDS if expires else 0


@command(
    "trust add",
    example="github-apply --preset github --role editor --claim repository_id=123 ...",
    within=trust_group,
)
@click.argument("name")
def add_command(
    connection: Connection,
    name: str,
    issuer: str | None,
    preset: str | None,
    role: str,
    organization: Sequence[str],
    claim: Sequence[str],
    keys: Path | None,
    issuer_ca: Path | None,
    expires: int | None,
    *,
    once: bool,
) -> None:
    """Make a rule: tokens of an issuer that have these claims get a short token of this role."""
    known = PRESETS[preset].issuer if preset else ""
    if not (issuer or known):
        raise UsageError(
            "no issuer is named",
            remedy="Give --issuer https://..., or --preset github or gitlab.",
        )
    fields = {
        "kind": ISSUER,
        "name": name,
        "issuer": issuer or known,
        "preset": preset or "",
        "role": role,
        "organizations": list(organization),
        "claims": _claims(claim),
        "keys": _content(keys),
        "authority": _content(issuer_ca),
        "once": once,
        "expiresAt": _ends(expires),
    }
    _called(connection, "GrantTrust", fields)
    click.echo(f"Made the rule {visible(name)}.", err=True)


def _claims(written: Sequence[str]) -> Mapping[str, Sequence[object]]:
    """Return claims, each with the values that were given for it."""
    found: dict[str, list[object]] = {}
    for text in written:
        name, sign, value = text.partition("=")
        if not sign or not name.removesuffix(":"):
            raise UsageError(
                f"--claim {visible(text)} has no name and value",
                remedy="Write --claim NAME=VALUE, or NAME:=JSON for a number, true or false.",
            )
        is_text = not name.endswith(":")
        found.setdefault(name.removesuffix(":"), []).append(value if is_text else _value(value))
    return found


def _value(text: str) -> object:
    with suppress(ValueError):
        value = json.loads(text)
        if isinstance(value, (str, int)):
            return value
    raise UsageError(
        f"{visible(text)} is not the value of a claim",
        remedy="After := comes a whole number, true, false, or a text in double quotes.",
    )


def _content(path: Path | None) -> str:
    """Return the text of a small file; empty without one."""
    if path is None:
        return ""
    with writing(f"read {visible(str(path))}", "Name a file that this user may read."):
        content, _ = read_start(path, MAX_KEYS_BYTES + 1)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or len(content) > MAX_KEYS_BYTES:
        raise LocalFileError(
            f"{visible(str(path))} is not a text of at most {MAX_KEYS_BYTES} bytes",
            remedy="Name the file itself.",
        )
    return text


@command("trust list", formats=("text", "json"), within=trust_group)
def list_command(connection: Connection, form: str) -> None:
    """List every rule."""
    _list(connection, ISSUER, "rules", form)


def _list(connection: Connection, kind: str, member: str, form: str) -> None:
    rules = _rules(connection, kind)
    if form == "json":
        print_json({member: rules})
    for rule in rules if form == "text" else ():
        click.echo(visible(_line(rule)))


def _line(rule: Shown) -> str:
    scope = "all" if rule["allOrganizations"] else ", ".join(rule["organizations"])
    ends = f"  expires {rule['expires']}" if rule["expires"] else ""
    issuer = f"  {rule['issuer']}" if rule["kind"] == ISSUER else f"  id {rule['id']}"
    return f"{rule['name']}  {rule['role']}  {scope}{issuer}{ends}"


@command("trust show", example="github-apply", formats=("text", "json"), within=trust_group)
@click.argument("name")
def show_command(connection: Connection, name: str, form: str) -> None:
    """Show a rule with its claims."""
    rule = _called(connection, "GetTrust", {"name": name})["rule"]
    if form == "json":
        print_json(rule)
        return
    click.echo(visible(_line(rule)))
    for claim, values in rule["claims"].items():
        click.echo(visible(f"  {claim} is {' or '.join(map(json.dumps, values))}"))
    if rule["once"]:
        click.echo("  each token once")
    keys = "of its own file" if rule["hasKeys"] else "fetched from the issuer"
    click.echo(f"  keys {keys}")
    click.echo(visible(f"  made {rule['created']} by {rule['createdBy']}"))


@command("trust remove", example="github-apply", within=trust_group)
@click.argument("name")
def remove_command(connection: Connection, name: str) -> None:
    """Remove a rule. Its tokens end at once, in every running server."""
    _remove(connection, ISSUER, name)


def _remove(connection: Connection, kind: str, name: str) -> None:
    if name not in {rule["name"] for rule in _rules(connection, kind)}:
        group_name, noun = ("trust", "rule") if kind == ISSUER else ("machine", "machine")
        raise UsageError(
            f"there is no {noun} {visible(name)}",
            remedy=f"`reconciler {group_name} list` names them all.",
        )
    _called(connection, "RevokeTrust", {"name": name})
    click.echo(f"Removed {visible(name)}. Its tokens have ended.", err=True)


@command(
    "trust test",
    example="id-token.txt --origin https://id.example.com",
    formats=("text", "json"),
    within=trust_group,
)
@click.argument("tokenfile", metavar="TOKENFILE", type=click.Path(path_type=Path))
def test_command(
    connection: Connection, tokenfile: Path, origin: str, allow_issuer: Sequence[str], form: str
) -> int:
    """Show which rule a signed token meets, and in what it differs from the others.

    The keys of an issuer are fetched from here, not by the service.
    """
    require_extra("trust test", "serve")
    from reconciler.service.keyless.signatures import SignedTokenError, read_signed

    origin = origin or _origin_of(connection)
    try:
        token = read_signed(_content(tokenfile).strip())
    except SignedTokenError as failure:
        raise UsageError(
            f"{visible(str(tokenfile))} is refused: {visible(str(failure))}",
            remedy="It must hold a signed token (JWT) of an issuer, and nothing else.",
        ) from None
    rules = [rule for rule in _rules(connection, ISSUER) if rule["issuer"] == token.issuer]
    judged = [
        {
            "rule": rule["name"],
            "role": role_given(rule["role"], token.claims),
            "problems": _problems(connection, rule["name"], token, origin, allow_issuer),
        }
        for rule in rules
    ]
    is_met = any(not each["problems"] for each in judged)
    if form == "json":
        print_json({"issuer": token.issuer, "met": is_met, "rules": judged})
    else:
        _show_judged(token.issuer, judged)
    return ExitCode.DONE if is_met else ExitCode.ERROR


def _origin_of(connection: Connection) -> str:
    if not is_remote(connection.service):
        raise UsageError(
            "the origin of the service is not named",
            remedy="Give --origin https://HOST, as serve has it.",
        )
    from reconciler.service_client.endpoint import parse_endpoint

    return parse_endpoint(connection.service).same_origin


def _problems(
    connection: Connection, name: str, token: SignedToken, origin: str, allowed: Sequence[str]
) -> Sequence[str]:
    from reconciler.service.domain.trust import public_keys
    from reconciler.service.keyless.exchange import problems
    from reconciler.service.keyless.issuers import Fetcher, Issuers
    from reconciler.service.keyless.signatures import SignedTokenError, check_signature

    rule = _row(_called(connection, "GetTrust", {"name": name})["rule"])
    found = list(problems(token, rule, origin, int(time.time())))
    try:
        if rule.keys:
            keys = public_keys(rule.keys.encode())
        else:
            issuers = Issuers(Fetcher(allowed))
            keys = asyncio.run(issuers.keys(rule.issuer, rule.authority, token.key_id))
        check_signature(token, keys)
    except SignedTokenError as failure:
        found.append(str(failure))
    return found


def _row(rule: Shown) -> TrustRow:
    """Return a rule as a store keeps it, as far as it is compared with a token."""
    claims = json.dumps(rule["claims"])
    expires = datetime.fromisoformat(rule["expires"]).timestamp() if rule["expires"] else 0
    return TrustRow(
        rule["name"], rule["id"], rule["kind"], rule["role"], "", rule["issuer"], claims,
        rule["preset"], rule["keys"], rule["authority"], int(rule["once"]), 0, "",
        int(expires * MICROSECONDS),
    )  # fmt: skip


def _show_judged(issuer: str, judged: Sequence[Shown]) -> None:
    style = stdout_style()
    if not judged:
        click.echo(f"No rule is for the issuer {visible(issuer)}.")
    for each in judged:
        if not each["problems"]:
            words = f"meets {visible(each['rule'])}, which gives the role {each['role']}"
            click.echo(f"{style('+', 'green', 'bold')} {words}")
            continue
        click.echo(f"{style('-', 'red', 'bold')} does not meet {visible(each['rule'])}:")
        for problem in each["problems"]:
            click.echo(f"    {visible(problem)}")


@command("machine add", example="backup --role viewer --key-out backup.json", within=machine_group)
@click.argument("name")
def machine_add_command(
    connection: Connection,
    name: str,
    role: str,
    organization: Sequence[str],
    key_out: Path,
    algorithm: str,
    expires: int,
) -> None:
    """Make a machine with a key of its own, and write the key into a new file.

    The service keeps the public half only, so the file is the only copy.
    """
    require_extra("machine add", "key-file")
    from reconciler.service_client.machine_keys import make_key

    key, ends = make_key(algorithm), _ends(expires)
    fields = {
        "kind": MACHINE,
        "name": name,
        "role": role,
        "organizations": list(organization),
        "keys": key.public,
        "expiresAt": ends,
    }
    with _new_file(key_out) as descriptor:  # before the machine is made: it must be writable
        made = _called(connection, "GrantTrust", fields)
        content = {
            "type": "serviceaccount",
            "keyId": key.id,
            "key": key.private.reveal(),
            "userId": made["id"],
            "expirationDate": time_in_words(ends // MICROSECONDS),
        }
        try:
            write_whole(descriptor, json.dumps(content).encode() + b"\n")
            sync(key_out)
        except OSError:
            _called(connection, "RevokeTrust", {"name": name})
            raise
    click.echo(
        f"Made the machine {visible(name)}; its key is in {visible(str(key_out))}.", err=True
    )


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    """Yield a new file for this user alone, which is removed again if the block fails."""
    shown = visible(str(path))
    remedy = "Name a new file in a folder that this user may write to."
    with writing(f"make {shown}", remedy):
        descriptor = new_private(path)
    remedy = "Free some space and run the command again. No machine was made."
    try:
        with writing(f"write {shown}", remedy):
            yield descriptor
    except ReconcilerError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


@command("machine list", formats=("text", "json"), within=machine_group)
def machine_list_command(connection: Connection, form: str) -> None:
    """List every machine."""
    _list(connection, MACHINE, "machines", form)


@command("machine remove", example="backup", within=machine_group)
@click.argument("name")
def machine_remove_command(connection: Connection, name: str) -> None:
    """Remove a machine. Its key and its tokens end at once, in every running server."""
    _remove(connection, MACHINE, name)
