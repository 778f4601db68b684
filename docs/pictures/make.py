"""Make the pictures of the documents: ``python -m docs.pictures.make``, at the top of a checkout.

A small organization is applied and then changed in a temporary folder. Its plan is what the
pictures show: in the terminal, and as a page in a light, a dark and a narrow window. Chromium
draws the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from docs.pictures.terminal import as_svg
from tests.devtools import open_page
from tests.program import program

HERE = Path(__file__).parent
STATUS = """\
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: example, project: website, name: status}
spec:
  appType: OIDC_APP_TYPE_USER_AGENT
  authMethodType: OIDC_AUTH_METHOD_TYPE_NONE
  redirectUris: ["https://status.example.com/callback"]
"""
WIDE, PHONE = (1080, 840), (390, 844)  # CSS pixels


def a_changed_tree(folder: Path) -> None:
    """Apply the starter organization, then change its manifests in every way a plan can show."""
    run = program(folder)
    run("init")
    run("apply", "--auto-approve")
    tree = folder / "manifests" / "example"
    applications = tree / "projects" / "website" / "applications"
    _replace(tree / "actions" / "add-locale-claim.yaml", "timeout: 5s", "timeout: 10s")
    _replace(
        applications / "portal.yaml", "https://www.example.com/login", "https://login.example.com"
    )
    (applications / "dashboard.yaml").unlink()
    (applications / "status.yaml").write_text(STATUS, encoding="utf-8")


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"{path} does not say {old}")
    path.write_text(text.replace(old, new), encoding="utf-8")


def main() -> None:
    """Make every picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        a_changed_tree(folder)
        run = program(folder)
        options = ("plan", "--prune", "--allow-deletes", "1")
        shown = run(*options, "--color", "always", "--quiet")
        words = f"$ reconciler plan --prune\n{shown.out}"
        (HERE / "plan.svg").write_text(as_svg(words, "A plan in the terminal"), encoding="utf-8")
        page = folder / "plan.html"
        page.write_text(run(*options, "--format", "html").out, encoding="utf-8")
        with open_page(page.as_uri()) as window:
            for form, size, dark in (
                ("light", WIDE, False),
                ("dark", WIDE, True),
                ("phone", PHONE, False),
            ):
                picture = window.picture(*size, dark=dark)
                (HERE / f"plan-{form}.png").write_bytes(picture)


if __name__ == "__main__":
    main()
