"""Folders of secrets that several services, runs and names of one application share."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.apply import folder_sinks, secret_folder
from reconciler.apply.folder_sinks import AgeSink, FileSink, file_name
from reconciler.apply.sink import Application, Move
from reconciler.diagnostics import Diagnostic
from reconciler.errors import LocalFileError
from reconciler.resources.files import read_start, write_whole
from reconciler.resources.ref import ResourceRef
from tests.builders import WEB, a_ref
from tests.unit.apply.secret_files import (
    BESIDE,
    PLAIN,
    PORTAL,
    Sink,
    an_age_sink,
    delivered,
    delivery,
    secrets_in,
)

MOVED = "OidcApplication acme/shop/storefront is now acme/shop/portal; its client secret is"


def codes(followed: Sequence[tuple[Diagnostic, ...] | LocalFileError]) -> list[str]:
    """Return the codes of all findings; no error may be among them."""
    assert not [one for one in followed if isinstance(one, LocalFileError)], followed
    return [note.code for one in followed if not isinstance(one, LocalFileError) for note in one]


def remedies(followed: Sequence[tuple[Diagnostic, ...] | LocalFileError]) -> list[str]:
    """Return what all findings say to do."""
    return [note.remedy for one in followed if not isinstance(one, LocalFileError) for note in one]


# Another file is under the name.


def test_the_secret_of_another_client_id_is_kept(folder: Path) -> None:
    """Two services hold an application of the same name; both secrets are needed."""
    delivered(FileSink(folder), delivery(client_id="8", value="theirs"))

    (kept,) = delivered(FileSink(folder), delivery())

    assert secrets_in(folder) == {
        PLAIN: ("8", "theirs", "storefront"), BESIDE: ("7", "geheim", "storefront"),
    }  # fmt: skip
    assert kept.at == str(folder / BESIDE)
    assert [note.code for note in kept.notes] == ["SECRET-KEPT-BESIDE"]
    assert str(folder / PLAIN) in kept.notes[0].summary
    assert kept.at in kept.notes[0].remedy


def test_each_of_two_applications_stays_in_its_own_file(folder: Path) -> None:
    """A secret that is delivered again, or is new, replaces the one of the same client id."""
    sink = FileSink(folder)
    delivered(sink, delivery(client_id="8", value="theirs"), delivery())

    again = delivered(sink, delivery(value="new"), delivery(client_id="8", value="new too"))

    assert secrets_in(folder) == {
        PLAIN: ("8", "new too", "storefront"), BESIDE: ("7", "new", "storefront"),
    }  # fmt: skip
    assert [kept.notes for kept in again] == [(), ()]


# Applications that are renamed or deleted.


def test_a_secret_follows_a_renamed_application(sink: Sink, folder: Path) -> None:
    """It is the same secret; what reads it has to be told the new place."""
    delivered(sink, delivery())

    followed = sink.follow([Move(WEB, PORTAL, "7")])

    (now,) = secrets_in(folder)
    assert now == next(sink.names(Application(PORTAL, "7")))
    name = "portal" if isinstance(sink, FileSink) else "storefront"
    assert secrets_in(folder)[now] == ("7", "geheim", name)
    assert codes(followed) == ["SECRET-MOVED"]
    assert codes(sink.follow([Move(WEB, PORTAL, "7")])) == ["SECRET-MOVED"], "and is said again"
    assert sink.follow([Move(WEB, PORTAL, "8")]) == [()]


def test_a_new_application_may_have_the_old_name_then(folder: Path) -> None:
    """The plain name goes to the application that has it now."""
    sink = FileSink(folder)
    delivered(sink, delivery())
    sink.follow([Move(WEB, PORTAL, "7")])

    (kept,) = delivered(sink, delivery(client_id="8", value="other"))

    assert (kept.at, kept.notes) == (str(folder / PLAIN), ())
    assert secrets_in(folder) == {
        "acme.shop.portal.json": ("7", "geheim", "portal"), PLAIN: ("8", "other", "storefront"),
    }  # fmt: skip


def test_a_rename_leaves_the_files_of_other_client_ids_where_they_are(folder: Path) -> None:
    """Both names are taken by another service's applications."""
    sink = FileSink(folder)
    delivered(sink, delivery(client_id="8"), delivery(PORTAL, "9"), delivery())

    followed = sink.follow([Move(WEB, PORTAL, "7")])

    assert secrets_in(folder) == {
        PLAIN: ("8", "geheim", "storefront"),
        "acme.shop.portal.json": ("9", "geheim", "portal"),
        "acme.shop.portal.7.json": ("7", "geheim", "portal"),
    }
    assert codes(followed) == ["SECRET-MOVED", "SECRET-KEPT-BESIDE"]


def test_a_new_case_of_a_name_is_written_into_the_file(folder: Path) -> None:
    """The name of the file is the same."""
    delivered(FileSink(folder), delivery())
    upper = a_ref(name="StoreFront")

    assert codes(FileSink(folder).follow([Move(WEB, upper, "7")])) == ["SECRET-MOVED"]
    assert secrets_in(folder) == {PLAIN: ("7", "geheim", "StoreFront")}


def test_a_newer_secret_under_the_new_name_stays(folder: Path) -> None:
    """A run was killed before the file moved, and the secret was made anew meanwhile."""
    sink = FileSink(folder)
    delivered(sink, delivery(value="old"), delivery(PORTAL, "7", "new"))

    followed = sink.follow([Move(WEB, PORTAL, "7")])

    assert secrets_in(folder) == {"acme.shop.portal.json": ("7", "new", "portal")}
    (remedy,) = remedies(followed)
    assert remedy == (
        f"{MOVED} in {folder / 'acme.shop.portal.json'}, and the file with the old one was "
        "removed. Change what reads the old file."
    )


def test_a_secret_is_called_the_same_only_where_its_own_file_moved(folder: Path) -> None:
    """A run that renames and replaces the secret delivers the new one under the new name."""
    sink = FileSink(folder)
    delivered(sink, delivery())

    moved = sink.follow([Move(WEB, PORTAL, "7")])
    again = sink.follow([Move(WEB, PORTAL, "7")])

    at = folder / "acme.shop.portal.json"
    assert remedies(moved) == [f"{MOVED} the same and is in {at}. Change what reads the old file."]
    assert remedies(again) == [f"{MOVED} in {at}. Change what reads the old file."]


def test_a_rename_that_was_cut_short_is_found_and_ended(sink: Sink, folder: Path) -> None:
    """The service has the new name, the folder still the old one."""
    delivered(sink, delivery(), delivery(a_ref(name="other"), "8"))

    assert sink.held([Application(PORTAL, "7"), Application(PORTAL, "9")]) == [True, False]
    assert sink.held([Application(PORTAL, "7")])[0] is True
    third = a_ref(name="third")
    assert codes(sink.follow([Move(PORTAL, third, "7")])) == ["SECRET-MOVED"]
    assert (folder / next(sink.names(Application(third, "7")))).is_file()


@pytest.mark.parametrize("more", [[], ["before"]], ids=["once", "under two names"])
def test_the_secret_of_a_deleted_application_is_removed(
    sink: Sink, more: list[str], folder: Path
) -> None:
    """And no other."""
    delivered(sink, delivery(), delivery(client_id="8"), delivery(PORTAL, "9"))
    delivered(sink, *[delivery(a_ref(name=name)) for name in more])

    followed = sink.follow([Move(WEB, None, "7"), Move(WEB, None, "77")])

    assert {client for client, _, _ in secrets_in(folder).values()} == {"8", "9"}
    assert codes(followed) == ["SECRET-REMOVED"] * (1 + len(more))


def test_a_folder_that_is_not_there_holds_nothing(sink: Sink, folder: Path) -> None:
    """An empty folder on a new machine is no error."""
    folder.rmdir()

    assert sink.held([Application(WEB, "7")])[0] is False
    assert codes(sink.follow([Move(WEB, PORTAL, "7")])) == []
    assert codes(sink.follow([Move(WEB, None, "7")])) == []


def test_a_secret_is_not_moved_over_something_else(folder: Path) -> None:
    """With both names taken it stays where it is, and the reason is told."""
    sink = FileSink(folder)
    delivered(sink, delivery())
    for name in sink.names(Application(PORTAL, "7")):
        (folder / name).mkdir()

    (failure,) = sink.follow([Move(WEB, PORTAL, "7")])

    assert isinstance(failure, LocalFileError)
    assert "something else is there" in failure.problem
    assert sink.held([Application(PORTAL, "7")])[0] is True


def test_proving_leaves_nothing_behind_and_touches_nothing(folder: Path) -> None:
    """It happens before every apply that makes a secret, and in doctor."""
    sink = FileSink(folder)
    sink.prove()
    assert list(folder.iterdir()) == []
    sink.deliver([delivery()])
    before = {path: path.read_bytes() for path in folder.iterdir()}

    sink.prove()

    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_empty_folder_of_plain_secrets_is_kept_out_of_git(folder: Path) -> None:
    """Adding everything to Git adds no secret."""
    sink = FileSink(folder)
    delivered(sink, delivery())
    assert (folder / ".gitignore").read_text(encoding="ascii") == "*\n"

    (folder / ".gitignore").write_text("*.tmp\n", encoding="ascii")
    delivered(sink, delivery())
    assert (folder / ".gitignore").read_text(encoding="ascii") == "*.tmp\n"

    (folder / ".gitignore").unlink()
    delivered(sink, delivery())
    assert [path.name for path in folder.iterdir()] == [PLAIN]


def test_it_is_kept_out_of_git_before_the_first_secret_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed leaves no secret that Git would take."""
    seen: list[str] = []

    def look(descriptor: int, content: bytes) -> None:
        seen.extend(path.name for path in folder.iterdir())
        write_whole(descriptor, content)

    monkeypatch.setattr(secret_folder, "write_whole", look)
    delivered(FileSink(folder), delivery())

    assert ".gitignore" in seen


def test_a_kill_while_it_is_kept_out_of_git_leaves_that_to_the_next_run(folder: Path) -> None:
    """The folder is as good as empty."""
    (folder / "..gitignore.0123456789abcdef").write_bytes(b"")

    delivered(FileSink(folder), delivery())

    assert {path.name for path in folder.iterdir()} == {".gitignore", PLAIN}


def test_sealed_secrets_may_be_kept_in_git(folder: Path) -> None:
    (kept,) = delivered(an_age_sink(folder), delivery())

    assert [str(path) for path in folder.iterdir()] == [kept.at]


def test_a_sink_that_cannot_take_secrets_says_so_before_there_is_one(folder: Path) -> None:
    """A secret that was answered and has nowhere to go is lost."""
    folder.rmdir()
    folder.write_bytes(b"a file")
    folder.chmod(0o600)

    with pytest.raises(LocalFileError, match="is not a folder"):
        FileSink(folder).prove()


def test_a_folder_where_a_secret_goes_is_found_before_there_is_one(folder: Path) -> None:
    """Writing would fail only when the secret is there, and it is answered once."""
    (folder / file_name(WEB)).mkdir()
    sink = FileSink(folder)

    with pytest.raises(LocalFileError, match=r"storefront.json: a folder is there$"):
        sink.prove([a_ref(name="other"), WEB])
    sink.prove([a_ref(name="other")])


@pytest.mark.parametrize(
    ("content", "held"),
    [
        pytest.param(b'{"client_id": "7"}', True, id="of this client"),
        pytest.param(b'{"client_id": "8"}', False, id="of another client"),
        pytest.param(b'["client_id"]', False, id="of another shape"),
        pytest.param(b"{", False, id="damaged"),
        pytest.param(b"\xff", False, id="no text"),
        pytest.param(b"[" * 200_000, False, id="nested deeply"),
        pytest.param(None, False, id="no file"),
    ],
)
def test_the_sink_holds_a_secret_only_for_the_client_it_was_made_for(
    folder: Path, content: bytes | None, held: object
) -> None:
    """An application that was deleted and made again has another client id and secret."""
    sink = FileSink(folder)
    sink.prove()
    if content is not None:
        (folder / file_name(WEB)).write_bytes(content)

    assert sink.held([Application(WEB, "7")])[0] is held


def test_names_are_as_documented() -> None:
    """Scripts build them."""
    assert file_name(WEB) == PLAIN
    assert file_name(WEB, "7") == BESIDE
    assert file_name(WEB, "7", AgeSink.suffix) == "acme.shop.storefront.7.json.age"


def test_it_is_not_known_what_a_folder_holds_that_cannot_be_read(tmp_path: Path) -> None:
    """A secret that is there must not be taken for one that is missing."""
    place = tmp_path / "secrets"
    place.write_bytes(b"")

    assert FileSink(place).held([Application(WEB, "7")]) == [None]


# A file of another user, such as one of a run as root.


@pytest.fixture
def unreadable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of an application, which this user may not read."""
    delivered(FileSink(folder), delivery())

    def read(path: Path, limit: int, flags: int = 0) -> tuple[bytes, os.stat_result]:
        if path.name == PLAIN:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read_start(path, limit, flags)

    monkeypatch.setattr(folder_sinks, "read_start", read)
    return folder / PLAIN


def test_a_secret_goes_beside_a_file_that_cannot_be_read_and_says_so(unreadable: Path) -> None:
    """It may be an older one of the same application, which somebody still reads."""
    sink = FileSink(unreadable.parent)
    made = [delivered(sink, delivery(value=value))[0] for value in ("new", "newer")]

    assert {kept.at for kept in made} == {str(unreadable.parent / BESIDE)}
    ((note,), again) = (kept.notes for kept in made)
    assert (note.code, again) == ("SECRET-KEPT-BESIDE", ())
    assert note.summary == f"{unreadable} cannot be read and was left as it is"
    assert "may hold an older secret" in note.remedy


def test_it_is_not_known_whether_a_file_that_cannot_be_read_holds_a_secret(
    unreadable: Path,
) -> None:
    """One that is taken for missing is made anew, and the old one ends where it is deployed."""
    sink = FileSink(unreadable.parent)
    delivered(sink, delivery(PORTAL, "8"))

    asked = [Application(WEB, "7"), Application(PORTAL, "8"), Application(PORTAL, "9")]

    assert sink.held(asked) == [None, True, None]


@pytest.mark.parametrize("now", [a_ref(name="third"), None])
def test_a_file_from_before_a_rename_that_cannot_be_read_is_told(
    unreadable: Path, now: ResourceRef | None
) -> None:
    """The application is "portal" now, and its file still has the name before."""
    (failed,) = FileSink(unreadable.parent).follow([Move(PORTAL, now, "7")])

    assert isinstance(failed, LocalFileError)
    assert failed.problem == f"cannot read {unreadable}: Permission denied"


def test_what_can_be_read_of_a_deleted_application_is_removed(unreadable: Path) -> None:
    """The rest is told."""
    sink = FileSink(unreadable.parent)
    delivered(sink, delivery(value="new"), delivery(PORTAL))

    (failed,) = sink.follow([Move(WEB, None, "7")])

    assert isinstance(failed, LocalFileError)
    assert [path.name for path in unreadable.parent.glob("*.json")] == [PLAIN]


@pytest.mark.parametrize("now", [PORTAL, None])
def test_a_file_that_cannot_be_read_is_told_where_it_should_follow(
    unreadable: Path, now: ResourceRef | None
) -> None:
    """Its intent stays open, and the rest is done."""
    sink = FileSink(unreadable.parent)
    other = a_ref(name="other")
    delivered(sink, delivery(other, "8"))

    failed, followed = sink.follow([Move(WEB, now, "7"), Move(other, None, "8")])

    assert isinstance(failed, LocalFileError)
    assert failed.problem == f"cannot read {unreadable}: Permission denied"
    assert codes([followed]) == ["SECRET-REMOVED"]
    assert unreadable.exists()


def test_it_is_not_known_what_a_folder_of_another_user_holds(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file in it can even be looked at."""

    def refuse(path: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(Path, "lstat", refuse)

    assert sink.held([Application(WEB, "7")]) == [None]


def test_a_file_that_is_removed_meanwhile_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run deletes an application between the look and the reading."""
    sink = FileSink(folder)
    delivered(sink, delivery())

    def read(path: Path, limit: int, flags: int = 0) -> tuple[bytes, os.stat_result]:
        path.unlink()
        return read_start(path, limit, flags)

    monkeypatch.setattr(folder_sinks, "read_start", read)

    assert sink.held([Application(WEB, "7")]) == [False]


def test_a_link_or_a_folder_is_no_file_of_a_secret(sink: Sink, folder: Path) -> None:
    """A link may lead anywhere."""
    delivered(sink, delivery())
    name = next(sink.names(Application(WEB, "7")))
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)
    (folder / next(sink.names(Application(PORTAL, "8")))).mkdir()

    assert sink.held([Application(WEB, "7"), Application(PORTAL, "8")]) == [False, False]
