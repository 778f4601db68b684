"""Addresses of repositories and refs: what is taken, and what is refused with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import UsageError
from reconciler.git.address import Access, Address, checked_ref, parse_address
from tests.rows import each_row


@each_row(
    ("written", "address"),
    [
        (
            "https://forge.example.com/a/b.git",
            Address("https://forge.example.com/a/b.git", "https"),
        ),
        (
            "ssh://git@forge.example.com:2222/a",
            Address("ssh://git@forge.example.com:2222/a", "ssh"),
        ),
        ("git@forge.example.com:a/b.git", Address("git@forge.example.com:a/b.git", "ssh")),
        ("file:///srv/a.git", Address("file:///srv/a.git", "file")),
        ("/srv/a.git", Address("/srv/a.git", "file")),
        ("a/b", Address(str(Path("a/b").absolute()), "file")),
    ],
)
def test_the_forms_of_an_address(written: str, address: Address) -> None:
    assert parse_address(written) == address


@each_row(
    "written",
    [
        *("", "-u", "--upload-pack=x", "ext::sh -c x", "http://a.example.com/b", "git://a/b"),
        *("https://user:secret@a.example.com/b", "https:///b", "https://-oProxy/b"),
        *("file://host/a", "ssh://-oProxyCommand=x/a", "https://a.example.com/b\n", "https://a:x/"),
        "git@-oProxyCommand=x:a",
    ],
)
def test_other_addresses_are_refused(written: str) -> None:
    """A helper that Git would run, an option, a plain connection, or a secret in an argument."""
    with pytest.raises(UsageError) as refused:
        parse_address(written)
    assert "secret" not in str(refused.value)


@each_row("written", ["refs/heads/main", "refs/heads/release/1.2", "refs/tags/v1"])
def test_full_names_of_refs_are_taken(written: str) -> None:
    assert checked_ref(written) == written


@each_row(
    "written",
    [
        *("main", "refs/heads/", "refs/heads/-x", "refs/heads/a..b", "refs/heads/a b", "HEAD"),
        *("refs/heads/a:refs/heads/b", "refs/heads/*", "refs/heads/a.lock", "refs/heads/a@{1}"),
    ],
)
def test_other_refs_are_refused(written: str) -> None:
    with pytest.raises(UsageError):
        checked_ref(written)


def test_ssh_needs_a_key_and_known_hosts_with_plain_names() -> None:
    """Without known hosts, anybody on the way could be the forge."""
    address = parse_address("git@forge.example.com:a")
    key, hosts = Path("/etc/key"), Path("/etc/hosts")

    Access(ssh_key_file=key, known_hosts=hosts).check(address)
    for access in (Access(), Access(ssh_key_file=key), Access(known_hosts=hosts)):
        with pytest.raises(UsageError):
            access.check(address)
    with pytest.raises(UsageError):
        Access(ssh_key_file=Path("/etc/%h key"), known_hosts=hosts).check(address)
    Access().check(parse_address("https://forge.example.com/a"))
