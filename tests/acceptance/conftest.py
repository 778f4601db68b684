"""The real program, as a real process, in a folder of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.direct import Direct
from tests.effort import IS_USUAL
from tests.program import ROOT, Ran, Run, program
from tests.release import put_into_checkout
from tests.running import running_server

if TYPE_CHECKING:
    from tests.acceptance.zitadel import ServeZitadel

__all__ = ["ROOT", "Ran", "Run"]


@pytest.fixture(scope="session", autouse=True)
def _made_dist() -> None:
    """Let ``init`` find a wheel in this checkout, as after ``make dist``."""
    put_into_checkout()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the program in an empty folder; extra environment by keyword."""
    return program(tmp_path)


@pytest.fixture(params=["4.x", "3.x"])
def a_zitadel(request: pytest.FixtureRequest) -> ServeZitadel:
    """Return what serves a stand-in, for each generation of a ZITADEL."""
    from tests.acceptance.zitadel import a_zitadel as serve
    from tests.zitadel.stand_in import NEWEST, OLDER

    return partial(serve, version=NEWEST if request.param == "4.x" else OLDER)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate for localhost that nobody else trusts."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl is not None, "install openssl"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-keyout", "key.pem",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", "cert.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return the folder of manifests that the commands read by default, empty."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    return folder


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


ORGANIZATION = """\
apiVersion: reconciler/v1
kind: Organization
metadata:
  name: acme
---
apiVersion: reconciler/v1
kind: Project
metadata:
  organization: acme
  name: shop
"""


def an_application(name: str = "web", **spec: Any) -> str:
    """Return the manifest of an application that signs in with a secret."""
    fields = {"redirectUris": [f"https://{name}.example.com/cb"], **spec}
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": "OidcApplication",
            "metadata": {"organization": "acme", "project": "shop", "name": name},
            "spec": fields,
        }
    )


def an_action(name: str = "greet", **spec: Any) -> str:
    """Return the manifest of an action."""
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": "Action",
            "metadata": {"organization": "acme", "name": name},
            "spec": {"script": f"function {name}(ctx, api) {{}}", **spec},
        }
    )


def an_idp(name: str = "partner", **spec: Any) -> str:
    """Return the manifest of a JWT identity provider."""
    fields = {
        "jwtEndpoint": "https://login.partner.example.com/jwt",
        "issuer": "https://login.partner.example.com",
        "keysEndpoint": "https://login.partner.example.com/keys",
        "headerName": "authorization",
        "audience": "https://login.acme.example.com",
        **spec,
    }
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": "IdpJwtConfig",
            "metadata": {"organization": "acme", "name": name},
            "spec": fields,
        }
    )


@pytest.fixture
def small(tree: Path) -> Path:
    """Return a folder with one organization: two applications, an action, a provider."""
    return write_small(tree)


def write_small(tree: Path) -> Path:
    """Write the manifests of the small tree to a folder, and return it."""
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "web.yaml", an_application("web"))
    spa = an_application(
        "spa", appType="OIDC_APP_TYPE_USER_AGENT", authMethodType="OIDC_AUTH_METHOD_TYPE_NONE"
    )
    write(tree / "spa.yaml", spa)
    write(tree / "greet.yaml", an_action())
    write(tree / "partner.yaml", an_idp())
    return tree


@dataclass(frozen=True)
class Place:
    """A service, embedded or served, and the small tree beside it.

    Attributes:
        run: Runs the program against it, with a token that may do everything.
        direct: Writes to it behind the program's back.
        address: Where it is served; empty for an embedded one.
    """

    run: Run
    direct: Direct
    manifests: Path
    address: str = ""

    @property
    def folder(self) -> Path:
        return self.manifests.parent


@pytest.fixture
def here(run: Run, small: Path) -> Place:
    """Return an embedded service to apply the small tree to; nothing is applied yet.

    It is for what is decided by manifests and what was read, whichever way it came.
    """
    return Place(run, Direct(small.parent / ".reconciler" / "identity.db"), small)


PLACES = ("embedded", "served")
# What is decided by manifests and what was read, whichever way it came: `make laws` tries both.
as_it_was_read = pytest.mark.parametrize("place", PLACES[:1] if IS_USUAL else PLACES, indirect=True)


@pytest.fixture(params=PLACES)
def place(
    here: Place, run: Run, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Place]:
    """Return a service to apply the small tree to, on each way to it; nothing is applied yet."""
    if request.param == "embedded":
        yield here
        return
    with running_server(tmp_path_factory.mktemp("server")) as server:
        known = {
            "RECONCILER_SERVICE": server.address,
            "RECONCILER_TOKEN": server.token("admin"),
            "RECONCILER_SECRETS_TO": "file:.reconciler/secrets",
        }
        yield Place(partial(run, **known), Direct(server.store), here.manifests, server.address)
