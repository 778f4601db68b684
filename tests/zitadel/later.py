"""Fields and values of applications and actions that a ZITADEL has from some version on.

A real gateway drops what its server is too old for. Here it is refused: a client that knows the
server must not send it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from google.protobuf.message import Message

from tests.zitadel.held import Item
from tests.zitadel.refusals import FakeError

Version: TypeAlias = tuple[int, int, int]

_FIELDS: Mapping[str, Version] = {
    "back_channel_logout_uri": (2, 65, 0),
    "login_version": (2, 68, 0),
}
_TOKEN_EXCHANGE, _HAS_EXCHANGE = 4, (2, 49, 0)  # the number of the grant
_LONG_SCRIPTS, _OLD_LIMIT = (2, 37, 0), 2000  # from when, and the characters before
_CHECKS_LOGOUT: Version = (4, 0, 0)
_OWN_HOSTS = {"localhost", "127.0.0.1", "::1"}


def check_version(at: Version, message: Message) -> None:
    """Refuse what a server of a version does not know."""
    for field, value in message.ListFields():
        if at < _FIELDS.get(field.name, at):
            raise FakeError(3, "", f'proto: unknown field "{field.json_name}"')
        if field.name == "grant_types" and _TOKEN_EXCHANGE in value and at < _HAS_EXCHANGE:
            raise FakeError(3, "", "proto: invalid value for enum field grantTypes")
        if field.name == "script" and at < _LONG_SCRIPTS and len(value) > _OLD_LIMIT:
            raise FakeError(3, "", "value length must be between 1 and 2000 runes, inclusive")


def login_of(asked: Item, before: Mapping[str, Any]) -> Item:
    """Return the login version after a write: one that is left out, or empty, stays.

    Login V2 without an address of its own has an empty one.
    """
    version = asked.get("loginVersion") or before.get("loginVersion")
    if version and "loginV2" in version:
        version = {"loginV2": {"baseUri": "", **version["loginV2"]}}
    return {"loginVersion": version} if version else {}


def check_logout(at: Version, asked: Item) -> None:
    """Refuse an address that cannot be resolved or is of the server itself, also one held already.

    Any other address is taken, whether or not something answers there.
    """
    host = urlsplit(asked["backChannelLogoutUri"]).hostname or ""
    if at >= _CHECKS_LOGOUT and (host in _OWN_HOSTS or host.endswith(".invalid")):
        raise FakeError(3, "PROJECT-msNebo", "Errors.Project.App.OIDCBackChannelLogoutURI")
