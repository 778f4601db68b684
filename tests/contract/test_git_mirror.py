"""The mirror against the real ``git``, over a file and over https: what it reads and refuses."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from reconciler.errors import InterruptedRunError, RepositoryError
from reconciler.git.address import Access, parse_address
from reconciler.git.mirror import Mirror
from reconciler.git.program import Limits
from tests.repository import PASSWORD, USER, Repository, a_signing_key, hosted

MAIN = "refs/heads/main"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.new(tmp_path / "origin")


@pytest.fixture
def mirror(tmp_path: Path, repository: Repository) -> Mirror:
    return a_mirror(tmp_path, str(repository.folder))


def a_mirror(tmp_path: Path, address: str, access: Access | None = None) -> Mirror:
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    path = os.environ["PATH"]
    return Mirror(state, parse_address(address), access or Access(), path)


def files_in(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".git"
    }


def test_the_tip_is_fetched_and_its_files_are_written(
    tmp_path: Path, repository: Repository, mirror: Mirror
) -> None:
    """Also what Git ignores where it is committed; nothing else that the commit does not hold."""
    files = {"manifests/a.yaml": "a: 1\n", "b/c/d.txt": "ü", ".gitignore": "*.txt\n"}
    commit = repository.commit(files)

    assert mirror.tip(MAIN) == commit
    left_out = mirror.write_out(commit, tmp_path / "out")

    assert left_out == []
    assert files_in(tmp_path / "out") == files
    assert (tmp_path / "out" / ".git").is_file()


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_both_forms_of_ids_are_read(tmp_path: Path, form: str) -> None:
    repository = Repository.new(tmp_path / "other", f"--object-format={form}")
    commit = repository.commit({"a": "1"})

    assert a_mirror(tmp_path, str(repository.folder)).tip(MAIN) == commit


def test_ancestors_are_known_after_the_ref_was_rewritten(
    repository: Repository, mirror: Mirror
) -> None:
    """The commit that was there before stays known, and is no ancestor."""
    first = repository.commit({"a": "1"})
    second = repository.commit({"a": "2"})
    assert mirror.tip(MAIN) == second
    assert mirror.is_ancestor(first, second)
    assert mirror.is_ancestor(second, second)
    assert not mirror.is_ancestor(second, first)

    repository.git("reset", "--quiet", "--hard", first)
    other = repository.commit({"a": "3"})

    assert mirror.tip(MAIN) == other
    assert not mirror.is_ancestor(second, other)
    assert mirror.is_ancestor(first, other)
    assert not mirror.is_ancestor("0" * 40, other)


def test_links_and_submodules_are_left_out_and_named(
    tmp_path: Path, repository: Repository, mirror: Mirror
) -> None:
    commit = repository.plant(
        {
            "plain.yaml": ("100644", "a: 1\n"),
            "link.yaml": ("120000", "/etc/passwd"),
            "module": ("160000", "1" * 40),
        }
    )
    mirror.tip(MAIN)

    left_out = mirror.write_out(commit, tmp_path / "out")

    expected = {("link.yaml", "symbolic link"), ("module", "submodule")}
    assert {(each.path, each.kind) for each in left_out} == expected
    assert files_in(tmp_path / "out") == {"plain.yaml": "a: 1\n"}


@pytest.mark.parametrize(
    "names",
    [("Shop.yaml", "shop.yaml"), ("\u00e9.yaml", "e\u0301.yaml"), ("\u1e9e", "SS")],
    ids=["case", "form of letters", "letters that fold to two"],
)
def test_names_that_are_one_on_some_disks_are_refused(
    tmp_path: Path, repository: Repository, mirror: Mirror, names: tuple[str, str]
) -> None:
    commit = repository.plant(dict.fromkeys(sorted(names), ("100644", "a: 1\n")))
    mirror.tip(MAIN)

    with pytest.raises(RepositoryError, match="differs from"):
        mirror.write_out(commit, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [".git", ".GIT", "..", "."])
def test_a_hostile_tree_is_refused_on_receipt(
    repository: Repository, mirror: Mirror, name: str
) -> None:
    """Objects are checked when they are fetched, so that the mirror never has them."""
    inner = repository._object("hash-object", "-w", "--stdin", given="x")
    tree = repository._object("mktree", given=f"100644 blob {inner}\tconfig\n")
    repository.plant({name: ("040000", tree)})

    with pytest.raises(RepositoryError, match=r"fsck|index-pack"):
        mirror.tip(MAIN)


def test_settings_and_hooks_of_anybody_are_not_used(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither those of this user nor those that the environment names."""
    ran = tmp_path / "ran"
    home = tmp_path / "home"
    home.mkdir()
    settings = f'[core]\n\tfsmonitor = "touch {ran}"\n\thooksPath = {home}\n'
    settings += '[url "/nowhere"]\n\tinsteadOf = /\n'
    (home / ".gitconfig").write_text(settings, encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url./nowhere.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "/")
    commit = repository.commit({"a": "1", ".gitattributes": "* filter=evil\n"})

    assert a_mirror(tmp_path, str(repository.folder)).tip(MAIN) == commit
    assert not ran.exists()


def test_a_commit_counts_as_signed_by_allowed_keys_alone(
    tmp_path: Path, repository: Repository, mirror: Mirror
) -> None:
    key, line = a_signing_key(tmp_path)
    other, _ = a_signing_key(tmp_path, "other")
    signers = tmp_path / "signers"
    signers.write_text(line, encoding="ascii")
    ours = repository.commit({"a": "1"}, key)
    theirs = repository.commit({"a": "2"}, other)
    nobodys = repository.commit({"a": "3"})
    mirror.tip(MAIN)

    counted = [not mirror.unsigned(each, signers) for each in (ours, theirs, nobodys)]

    assert counted == [True, False, False]
    assert mirror.unsigned(ours, tmp_path / "missing")


def test_a_repository_is_read_over_https_with_its_own_authority(
    tmp_path: Path, repository: Repository
) -> None:
    """The password is in a file, which Git reads and never changes."""
    commit = repository.commit({"a": "1"})
    credentials = tmp_path / "credentials"
    with hosted(repository, tmp_path) as server:
        right = server.address.replace("https://", f"https://{USER}:{PASSWORD}@")
        credentials.write_text(right.removesuffix("/.git") + "\n", encoding="ascii")
        access = Access(credentials_file=credentials, ca_file=server.authority)

        assert a_mirror(tmp_path, server.address, access).tip(MAIN) == commit

        wrong = right.replace(PASSWORD, "wrong").removesuffix("/.git") + "\n"
        credentials.write_text(wrong, encoding="ascii")
        with pytest.raises(RepositoryError) as refused:
            a_mirror(tmp_path, server.address, access).tip(MAIN)
        assert "wrong" not in str(refused.value)
        assert credentials.read_text(encoding="ascii") == wrong

        with pytest.raises(RepositoryError, match="certificate"):
            a_mirror(tmp_path, server.address, Access(credentials)).tip(MAIN)


def test_a_redirect_is_not_followed(tmp_path: Path, repository: Repository) -> None:
    repository.commit({"a": "1"})
    with hosted(repository, tmp_path) as server:
        server.redirect = server.address.removesuffix("/.git") + "/elsewhere"
        access = Access(ca_file=server.authority)

        with pytest.raises(RepositoryError, match=r"redirect|302"):
            a_mirror(tmp_path, server.address, access).tip(MAIN)
        assert not any("elsewhere" in path for path in server.requests)


def test_a_missing_ref_is_said(repository: Repository, mirror: Mirror) -> None:
    repository.commit({"a": "1"})

    with pytest.raises(RepositoryError, match="has no refs/heads/other"):
        mirror.tip("refs/heads/other")


def test_a_signal_ends_a_command(tmp_path: Path, repository: Repository) -> None:
    repository.commit({"a": "1"})
    state = tmp_path / "state"
    state.mkdir()
    address = parse_address(str(repository.folder))
    fifo_path = tmp_path / "bin"
    fifo_path.mkdir()
    (fifo_path / "git").write_text("#!/bin/sh\nexec sleep 600\n", encoding="ascii")
    (fifo_path / "git").chmod(0o755)
    path = f"{fifo_path}:{os.environ['PATH']}"
    mirror = Mirror(state, address, Access(), path, stops=lambda: 15)

    with pytest.raises(InterruptedRunError) as stopped:
        mirror.tip(MAIN)
    assert stopped.value.signal_number == 15


def test_a_git_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """It would read the settings of this user."""
    programs = tmp_path / "bin"
    programs.mkdir()
    state = tmp_path / "state"
    state.mkdir()
    address = parse_address(str(tmp_path))
    for said, is_taken in (("2.31.9", False), ("2.34.1", True), ("3.0", True), ("new", False)):
        (programs / "git").write_text(f"#!/bin/sh\necho git version {said}\n", encoding="ascii")
        (programs / "git").chmod(0o755)
        mirror = Mirror(state, address, Access(), f"{programs}:{os.environ['PATH']}")
        if is_taken:
            mirror.check()
            continue
        with pytest.raises(RepositoryError, match="too old"):
            mirror.check()


def test_ssh_is_given_the_key_and_the_hosts_and_nothing_else(
    tmp_path: Path, repository: Repository
) -> None:
    """No configuration of this user, no agent, no host that is not known."""
    commit = repository.commit({"a": "1"})
    programs, asked = tmp_path / "bin", tmp_path / "asked"
    programs.mkdir()
    script = f'#!/bin/sh\nprintf "%s\\n" "$@" > {asked}\nfor last; do :; done\neval "exec $last"\n'
    (programs / "ssh").write_text(script, encoding="ascii")
    (programs / "ssh").chmod(0o755)
    state = tmp_path / "state"
    state.mkdir()
    access = Access(ssh_key_file=tmp_path / "key", known_hosts=tmp_path / "hosts")
    address = parse_address(f"ssh://git@forge.example.com{repository.folder}")
    mirror = Mirror(state, address, access, f"{programs}:{os.environ['PATH']}")

    assert mirror.tip(MAIN) == commit

    words = asked.read_text(encoding="utf-8").splitlines()
    assert words[:2] == ["-F", os.devnull]
    assert {
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        f"IdentityFile={tmp_path / 'key'}",
        f"UserKnownHostsFile={tmp_path / 'hosts'}",
        f"GlobalKnownHostsFile={os.devnull}",
    } <= {*words}


def test_a_history_that_is_too_large_is_refused(
    repository: Repository, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel stops Git at the limit, before the disk is full."""
    small = Limits(60, 64 * 1024)
    monkeypatch.setattr("reconciler.git.mirror.FETCHING", small)
    repository.commit({"a": "small"})
    assert mirror.tip(MAIN)
    repository.commit({"large": secrets.token_hex(500_000)})

    with pytest.raises(RepositoryError, match="limit"):
        mirror.tip(MAIN)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    assert mirror.tip(MAIN) == repository.head


def test_a_commit_of_too_many_bytes_is_not_written(
    tmp_path: Path, repository: Repository, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes in a pack can be many in files."""
    monkeypatch.setattr("reconciler.git.mirror.MOST_BYTES", 100)
    commit = repository.commit({"a": "x" * 101})
    mirror.tip(MAIN)

    with pytest.raises(RepositoryError, match="holds more than"):
        mirror.write_out(commit, tmp_path / "out")
    assert not (tmp_path / "out").exists()
