"""``scriptFile``: beneath the root or not at all, and the bytes that were checked are used."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.loader import load
from reconciler.manifests.resolve import MAX_SCRIPT_FILE
from tests.unit.manifests.trees import an_action, codes, write_tree

SCRIPT = "function greet(ctx, api) {\r\n  // Grüße\n}\n"
OUTSIDE = "outside"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a tree with scripts and everything else a path can lead to."""
    monkeypatch.chdir(tmp_path)
    write_tree(
        tmp_path,
        {
            "secret.js": OUTSIDE,
            "tree/scripts/greet.js": SCRIPT,
            "tree/actions/scripts/near.js": SCRIPT,
            "tree/large.js": "x" * MAX_SCRIPT_FILE + "x",
            "tree/fits.js": "x" * MAX_SCRIPT_FILE,
            "tree/latin.js": "a\n\xfc".encode("latin-1"),
            "tree/mark.js": "\ufefffunction greet() {}",
            "tree/empty.js": "",
            "tree/odd\nname.js": SCRIPT,
        },
    )
    root = tmp_path / "tree"
    (root / "link.js").symlink_to(tmp_path / "secret.js")
    (root / "inner.js").symlink_to("scripts/greet.js")
    (root / ".folder").symlink_to(tmp_path)
    (root / "loop.js").symlink_to("loop.js")
    (root / "environment.js").symlink_to("/proc/self/environ")
    os.mkfifo(root / "pipe.js")
    return root


def script_of(root: Path, path: str) -> tuple[str | None, list[str]]:
    """Return the script a path leads to, and the codes of the findings."""
    write_tree(root, {"actions/greet.yaml": an_action(path)})
    loaded = load(["tree"])
    [manifest] = loaded.manifests
    return manifest.document["spec"].get("script"), codes(loaded.diagnostics)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../scripts/greet.js", id="another folder of the tree"),
        pytest.param("scripts/near.js", id="a folder beside the manifest"),
        pytest.param("./scripts//near.js", id="dots and slashes that mean nothing"),
        pytest.param("../actions/../actions/scripts/near.js", id="a detour"),
        pytest.param("nowhere/../scripts/near.js", id="a detour by text alone"),
        pytest.param('"../odd\\nname.js"', id="a name with a line break"),
    ],
)
def test_a_script_comes_as_it_stands_in_its_file(root: Path, path: str) -> None:
    """Line ends and all: what is read is what is hashed, shown and sent."""
    assert script_of(root, path) == (SCRIPT, [])


@pytest.mark.parametrize(
    ("path", "script"),
    [
        pytest.param("../fits.js", "x" * MAX_SCRIPT_FILE, id="as large as may be"),
        pytest.param("../mark.js", "\ufefffunction greet() {}", id="a byte order mark stays"),
        pytest.param("../empty.js", "", id="nothing is left to the schema"),
    ],
)
def test_nothing_is_taken_off_a_script(root: Path, path: str, script: str) -> None:
    assert script_of(root, path) == (script, [])


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("/etc/hostname", "SCRIPT-ABSOLUTE", id="absolute"),
        pytest.param("//etc/hostname", "SCRIPT-ABSOLUTE", id="absolute, two slashes"),
        pytest.param("../../secret.js", "SCRIPT-OUTSIDE", id="above the root"),
        pytest.param("../../tree/scripts/greet.js", "SCRIPT-OUTSIDE", id="out and in again"),
        pytest.param("x/../../../secret.js", "SCRIPT-OUTSIDE", id="above the root by a detour"),
        pytest.param("../../" + "../" * 50 + "etc/hostname", "SCRIPT-OUTSIDE", id="far above"),
        pytest.param("../link.js", "SCRIPT-SYMLINK", id="a link out of the tree"),
        pytest.param("../inner.js", "SCRIPT-SYMLINK", id="a link inside the tree"),
        pytest.param("../.folder/secret.js", "SCRIPT-SYMLINK", id="a link to a folder"),
        pytest.param("../.folder/../secret.js", "SCRIPT-MISSING", id="dots after a link are text"),
        pytest.param("../loop.js", "SCRIPT-SYMLINK", id="a link to itself"),
        pytest.param("../environment.js", "SCRIPT-SYMLINK", id="a link to our environment"),
        pytest.param("../missing.js", "SCRIPT-MISSING", id="missing"),
        pytest.param("../missing/x.js", "SCRIPT-MISSING", id="a missing folder"),
        pytest.param("../fits.js/x.js", "SCRIPT-NOT-A-FOLDER", id="a file used as a folder"),
        pytest.param("../scripts", "SCRIPT-NOT-REGULAR", id="a folder"),
        pytest.param("..", "SCRIPT-NOT-REGULAR", id="the root itself"),
        pytest.param("../pipe.js", "SCRIPT-NOT-REGULAR", id="a pipe nobody writes to"),
        pytest.param("../large.js", "SCRIPT-TOO-LARGE", id="too large"),
        pytest.param("../latin.js", "SCRIPT-ENCODING", id="not UTF-8"),
        pytest.param("x" * 300, "SCRIPT-UNREADABLE", id="a name too long for the disk"),
    ],
)
def test_a_script_that_may_not_be_used_is_told(root: Path, path: str, code: str) -> None:
    before = time.monotonic()

    script, found = script_of(root, path)

    assert (script, found) == (None, [code])
    assert time.monotonic() - before < 2


def test_a_socket_is_no_script(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.js")
        monkeypatch.chdir(root.parent)

        assert script_of(root, "../socket.js") == (None, ["SCRIPT-NOT-REGULAR"])


def test_what_cannot_be_resolved_stays_as_it_was_written(root: Path) -> None:
    write_tree(root, {"actions/greet.yaml": an_action("../missing.js")})

    loaded = load(["tree"])

    assert loaded.manifests[0].document["spec"] == {"scriptFile": "../missing.js"}
    assert loaded.diagnostics[0].location == SourceLocation("tree/actions/greet.yaml", 7, 15)
    assert not loaded.whole


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("{scriptFile: a.js, script: x}", id="both"),
        pytest.param("{scriptFile: [a.js]}", id="a list"),
        pytest.param("{scriptFile: }", id="nothing"),
        pytest.param("{scriptFile: ''}", id="empty"),
        pytest.param('{scriptFile: "a\\0b"}', id="a NUL"),
        pytest.param(f"{{scriptFile: {'x' * 1001}}}", id="longer than the schema allows"),
        pytest.param("[scriptFile]", id="a spec that is a list"),
        pytest.param("", id="no spec"),
    ],
)
def test_what_the_schema_refuses_is_left_to_it(root: Path, spec: str) -> None:
    text = f"apiVersion: reconciler/v1\nkind: Action\nspec: {spec}\n"
    write_tree(root, {"actions/greet.yaml": text})

    loaded = load(["tree"])

    assert loaded.diagnostics == ()
    assert "scriptFile" in spec or loaded.manifests[0].document["spec"] is None


def test_a_script_that_two_actions_share_is_read_once(root: Path) -> None:
    """Both plan and apply the same text, whatever happens to the file in between."""
    write_tree(
        root,
        {
            "actions/a.yaml": an_action("../scripts/greet.js"),
            "scripts/b.yaml": an_action("greet.js"),
        },
    )

    one, other = load(["tree"]).manifests

    assert one.document["spec"]["script"] is other.document["spec"]["script"]


def test_other_kinds_have_no_scripts(root: Path) -> None:
    text = an_action("../missing.js").replace("kind: Action", "kind: Project")
    write_tree(root, {"actions/greet.yaml": text})

    assert load(["tree"]).diagnostics == ()


def test_the_root_of_a_single_file_is_its_folder(root: Path) -> None:
    write_tree(root, {"actions/greet.yaml": an_action("scripts/near.js")})
    assert load(["tree/actions/greet.yaml"]).diagnostics == ()

    write_tree(root, {"actions/greet.yaml": an_action("../scripts/greet.js")})
    assert codes(load(["tree/actions/greet.yaml"]).diagnostics) == ["SCRIPT-OUTSIDE"]


def test_a_script_knows_both_of_its_places(root: Path) -> None:
    """The path in the manifest for the whole, the file itself for a line in it."""
    write_tree(root, {"actions/greet.yaml": an_action("../scripts/greet.js")})
    [manifest] = load(["tree"]).manifests

    assert manifest.place("spec", "script") == SourceLocation("tree/actions/greet.yaml", 7, 15)
    assert manifest.place_of_key("spec", "script") == SourceLocation(
        "tree/actions/greet.yaml", 7, 3
    )
    within = manifest.place_within(2, 3, "spec", "script")
    assert within == SourceLocation("tree/scripts/greet.js", 2, 3)


@pytest.mark.slow
def test_a_script_that_is_swapped_while_we_read_never_leads_outside(root: Path) -> None:
    """Whatever the moment of the swap, the answer is the script, a refusal, or nothing."""
    write_tree(root, {"actions/greet.yaml": an_action("../race/x.js"), "race/x.js": SCRIPT})
    write_tree(root.parent, {"evil/x.js": OUTSIDE})
    stop = threading.Event()
    swapper = threading.Thread(target=_swap_until, args=(stop, root, root.parent / "evil"))
    swapper.start()
    seen: set[str | None] = set()
    try:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            [manifest] = load(["tree"]).manifests
            seen.add(manifest.document["spec"].get("script"))
    finally:
        stop.set()
        swapper.join()

    assert OUTSIDE not in seen
    assert seen <= {SCRIPT, None}


def _swap_until(stop: threading.Event, root: Path, evil: Path) -> None:
    """Exchange folder and file for links and back, without a moment in which they are missing."""
    link, real = root / "race-link", root / "race-real"
    file_link = root / "x-link"
    while not stop.is_set():
        (root / "race").rename(real)
        link.symlink_to(evil)
        link.rename(root / "race")
        (root / "race").unlink()
        real.rename(root / "race")
        file_link.symlink_to(evil / "x.js")
        (root / "race" / "x.js").rename(root / "x-real")
        file_link.rename(root / "race" / "x.js")
        (root / "x-real").rename(root / "race" / "x.js")
