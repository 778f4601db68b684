"""A proxy in front of a ZITADEL that lets through what the page lists, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from docs.zitadel.make import PAGE, with_addresses
from tests.acceptance.conftest import ORGANIZATION, an_action, an_application, an_idp, write
from tests.acceptance.test_action_flows import a_flow
from tests.acceptance.test_project_roles import a_role
from tests.listening import listening
from tests.program import Run, program
from tests.zitadel.stand_in import IAM, MEMBER, NEWEST, OLDER, OLDEST, FakeZitadel

FAR = ("--auto-approve", "--secrets-to", "file:s", "--allow-updates", "99", "--allow-deletes", "99")
ACME, _ = ORGANIZATION.split("---\n")


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield what each row of the page is for, its verb and its path."""
    page = PAGE.read_text(encoding="utf-8")
    for row in re.finditer(r"^\| (read|write) \| `([A-Z]+) (\S+)` \|", page, re.MULTILINE):
        yield row[1], row[2], row[3]


class Proxy:
    """Refuses every other address.

    Attributes:
        used: The rows that something went through, as verb and path.
        refused: What was refused.
    """

    def __init__(self, app: ASGIApp, purposes: Collection[str] = ("read", "write")) -> None:
        self._app = app
        # A fixed path comes before one with a parameter in its place.
        self._let = sorted(
            ((verb, path) for purpose, verb, path in rows() if purpose in purposes),
            key=lambda row: row[1].replace("{", "\x7f"),
        )
        self.used: set[tuple[str, str]] = set()
        self.refused: list[tuple[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = (scope["method"], scope["path"])
        for verb, path in self._let:
            if verb == asked[0] and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), asked[1]):
                self.used.add((verb, path))
                await self._app(scope, receive, send)
                return
        self.refused.append(asked)
        await JSONResponse({"message": "not here"}, 403)(scope, receive, send)


def write_tree(folder: Path, ids: Mapping[str, str], *, is_old: bool, active: bool) -> None:
    """Write every kind: new without ``ids``, and renamed, changed and switched with them."""
    later, audience = bool(ids), ""  # not every server has one
    metadata = {"organization": "acme", "name": "shop"}
    spec = {"projectRoleCheck": later}
    kind = {"apiVersion": "reconciler/v1", "kind": "Project"}
    project = {**kind, "metadata": metadata, "spec": spec}
    issuer = f"https://{'later' if later else 'first'}.example.com"
    trigger = "PRE_ACCESS_TOKEN_CREATION" if later else "PRE_USERINFO_CREATION"
    documents = {
        "shop": (json.dumps(project), {} if is_old else {"active": active}),
        "apps": (an_application(f"web{later:d}", devMode=later), {"active": active}),
        "actions": (an_action(timeout=f"{5 + later}s"), {"active": active}),
        "idps": (an_idp(f"partner{later:d}", issuer=issuer, audience=audience), {}),
        # Made by an old call: the only provider whose state can be switched.
        "legacy": (an_idp("legacy", audience=audience), {"active": active}),
        "flow": (a_flow({trigger: ["greet"]}), {}),
        "role": (a_role("manage", group=str(later)), {}),
    }
    for name, (text, more) in documents.items():
        document = json.loads(text)
        document["metadata"] |= {**more, **({"id": ids[name]} if name in ids else {})}
        write(folder / f"{name}.yaml", json.dumps(document))


def run_everything(run: Run, folder: Path, fake: FakeZitadel, here: dict[str, str]) -> None:
    """Run the commands that read and write, until nothing is left."""
    is_old = not fake.has_templates
    fake.put("projects", name="shop")
    fake.put_old_provider("legacy", **json.loads(an_idp())["spec"])
    write(folder / "acme.yaml", ACME)
    write(folder / "north.yaml", ORGANIZATION.replace("acme", "north"))
    write_tree(folder, {}, is_old=is_old, active=True)
    done = [run("apply", *FAR, **here)]
    ids = {kind: fake.named(kind, name)[0]["id"] for kind, name in (
        ("apps", "web0"), ("actions", "greet"), ("idps", "partner0"),
    )}  # fmt: skip
    for active in (False, True):
        write_tree(folder, ids, is_old=is_old, active=active)
        done.append(run("apply", *FAR, **here))
    done += [run(command, **here) for command in ("plan", "drift", "export", "outputs")]
    rotate = ("secret", "rotate", "acme/shop/web1", *FAR[:3])
    done.append(run(*rotate, **here))
    for file in folder.iterdir():
        if file.name not in {"acme.yaml", "north.yaml"}:
            file.unlink()
    lost = "--break-glass=ProjectRole/acme/shop/manage=not used"
    done.append(run("apply", *FAR, "--prune-unmanaged", lost, **here))
    assert not any(ran.code for ran in done), "\n\n".join(ran.all for ran in done if ran.code)
    assert fake.held["apps"] == fake.held["actions"] == {}


def test_what_the_page_lists_is_enough_and_all_of_it_is_used(tmp_path: Path) -> None:
    """Every command works behind such a proxy, against a server of every age."""
    used: set[tuple[str, str]] = set()
    for version in (NEWEST, OLDER, OLDEST):
        folder = tmp_path / version
        fake = FakeZitadel(version=version)
        proxy = Proxy(fake.app())
        (tree := folder / "manifests").mkdir(parents=True)
        with listening(proxy) as address:
            here = {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": IAM}
            run = program(folder)
            run_everything(run, tree, fake, here)
            run("plan", "--capabilities", "zitadel-4", **here)
            write(tree / "north.yaml", ORGANIZATION.replace("acme", "elsewhere"))
            hidden = run("plan", **{**here, "RECONCILER_TOKEN": MEMBER})
        assert hidden.code == 7, hidden.all
        assert proxy.refused == []
        used |= proxy.used
    assert {(verb, path) for _, verb, path in rows()} == used


def test_the_reading_rows_are_enough_for_what_only_reads(tmp_path: Path) -> None:
    fake = FakeZitadel()
    fake.put_old_provider("legacy", **json.loads(an_idp())["spec"])
    proxy = Proxy(fake.app(), ["read"])
    write(tmp_path / "manifests" / "acme.yaml", ACME)
    run = program(tmp_path)
    with listening(proxy) as address:
        here = {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": IAM}
        done = [run(command, **here) for command in ("plan", "drift", "export", "outputs")]

    assert [ran.code for ran in done] == [0] * 4
    assert proxy.refused == []


def test_the_page_is_made_from_the_table_of_calls() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert with_addresses(page) == page, "run `make codes`"
