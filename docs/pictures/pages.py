"""Make the pictures of served pages: ``python -m docs.pictures.pages``, at the top of a checkout.

Each state of a run is one that the tests go through (``tests/run_states.py``). The pages of the
service are those of a server with a small store. Chromium draws them.
"""

from __future__ import annotations

import tempfile
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from docs.pictures.make import PHONE, WIDE
from reconciler.cli.run.page import StatusPage
from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import Caller, Role
from tests.builders import BASIC
from tests.devtools import Page, open_page
from tests.examples import SCRIPT, Clock
from tests.run_states import APPLIED, all_states
from tests.running import Server, running_server
from tests.unit.service.asking import Asking

HERE = Path(__file__).parent
URL = "https://git.example.com/identity/commit/{commit}"
DARK_AND_PHONE = "drifted"


def pictures_of_run(window: Page, folder: Path) -> None:
    """Make a picture of each state of a run; of one also in the dark and on a phone."""
    for name, status in all_states().items():
        page = folder / f"{name}.html"
        page.write_text(StatusPage(URL).draw(status, {}), encoding="utf-8")
        window.open(page.as_uri())
        _keep(window, f"run-{name}")
    window.open((folder / f"{DARK_AND_PHONE}.html").as_uri())
    _keep(window, f"run-{DARK_AND_PHONE}-dark", dark=True)
    _keep(window, f"run-{DARK_AND_PHONE}-phone", size=PHONE)


def _keep(window: Page, name: str, *, size: tuple[int, int] = WIDE, dark: bool = False) -> None:
    (HERE / f"{name}.png").write_bytes(window.picture(*size, dark=dark))


def furnish(server: Server) -> str:
    """Fill the store of a server; return the id of the action whose history is shown."""
    acme, shop = server.known.organization, server.known.project
    ci, ana = Caller("ci", Role.ADMIN), Caller("ana", Role.ADMIN)
    applied: dict[str, Any] = {
        "by": ci, "context": f'{{"tree":"default","revision":"{APPLIED}"}}'
    }  # fmt: skip
    with closing(open_sqlite(server.store)) as service:
        ask = Asking(service, Clock(), acme, shop)
        action = ask.an_action(**applied)["id"]
        held = {"id": action, "name": "greet", "script": SCRIPT}
        ask("UpdateAction", **held, **applied, timeout="5s")
        ask("UpdateAction", **held, by=ana, timeout="1s")
        for name in ("status", "storefront"):
            ask.an_app(name, **applied, authMethodType=BASIC, custody="run-1")
        old = ask.an_action("old", **applied)["id"]
        ask("DeactivateAction", id=old, by=ana)
        for name in ("acme", "other"):
            tree = {"named": name, "tree": "default", "by": ci}
            lease = ask("AcquireLease", **tree, holder="ci", seconds=60)["lease"]
            ask("RecordCommit", **tree, commit=APPLIED, outcome="changed", lease=lease)
        paused = {"named": "acme", "tree": "default", "seconds": 14_400, "by": ana}
        ask("PauseTree", **paused, reason="The partner is under attack")
    return str(action)


def pictures_of_service(window: Page, folder: Path) -> None:
    """Make a picture of each page of a service."""
    with running_server(folder) as server:
        action, acme = furnish(server), server.known.organization
        window.open(f"{server.address}/ui")
        token = b64encode(f"ana:{server.token('admin')}".encode()).decode()
        window.send_with_all({"authorization": f"Basic {token}"})
        for name, path in (
            ("organizations", ""),
            ("objects", f"/organizations/{acme}"),
            ("changes", f"/organizations/{acme}/changes"),
            ("owed", f"/organizations/{acme}/owed"),
            ("history", f"/objects/{action}"),
            ("tokens", "/tokens"),
        ):
            window.open(f"{server.address}/ui{path}")
            _keep(window, f"ui-{name}")
        window.open(f"{server.address}/ui/organizations/{acme}")
        _keep(window, "ui-objects-dark", dark=True)
        _keep(window, "ui-objects-phone", size=PHONE)
        with httpx.Client() as client:  # a browser asks for a token in a window of its own
            refused = folder / "refused.html"
            refused.write_bytes(client.get(f"{server.address}/ui").content)
        window.open(refused.as_uri())
        _keep(window, "ui-sign-in")


def main() -> None:
    """Make every picture."""
    with tempfile.TemporaryDirectory() as name, open_page() as window:
        pictures_of_run(window, Path(name))
        pictures_of_service(window, Path(name))


if __name__ == "__main__":
    main()
