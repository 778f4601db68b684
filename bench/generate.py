"""Writes realistic manifests from a fixed seed.

``python bench/generate.py COUNT FOLDER [PER_FILE [STYLE]]``

The mix is that of a grown organization: six applications to two and a half actions to one
project, a few identity providers, about a hundred to an organization. ``STYLES`` write the same
resources in another way, or with findings, which cost a reader more.
"""

from __future__ import annotations

import json
import random
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

MIX = (("app", 0.594), ("action", 0.250), ("project", 0.101), ("idp", 0.046), ("org", 0.009))
FILES_PER_FOLDER = 100


def manifests(count: int, seed: int = 1) -> Iterator[str]:
    """Yield documents; owners come before what they own."""
    dice = random.Random(seed)
    kinds = dice.choices([kind for kind, _ in MIX], [share for _, share in MIX], k=count)
    kinds[0], kinds[1] = "org", "project"
    organizations = projects = 0
    for number, kind in enumerate(kinds):
        if kind == "org":
            organizations += 1
            yield f"{_head('Organization')}  name: org-{organizations:05d}\n"
        elif kind == "project":
            projects += 1
            owner = _owner(organizations, projects)
            yield f"{_head('Project')}  organization: {owner}\n  name: project-{projects:06d}\n"
        else:
            project = dice.randint(max(1, projects - 10), projects)
            owner = _owner(organizations, project)
            yield _WRITERS[kind](dice, number, owner, project)


_OWNERS: dict[int, str] = {}


def _owner(organizations: int, project: int) -> str:
    """Return the organization of a project: the latest when the project was made."""
    return _OWNERS.setdefault(project, f"org-{organizations:05d}")


def _head(kind: str) -> str:
    return f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata:\n"


def _application(dice: random.Random, number: int, owner: str, project: int) -> str:
    method = dice.choice(["BASIC", "NONE", "PRIVATE_KEY_JWT", "POST", "NONE"])
    kind = "USER_AGENT" if method == "NONE" else "WEB"
    uris = "\n".join(
        f"    - https://app-{number}.example.com/callback/{index}"
        for index in range(dice.randint(1, 4))
    )
    return (
        f"{_head('OidcApplication')}  organization: {owner}\n  project: project-{project:06d}\n"
        f"  name: app-{number:06d}\nspec:\n"
        f"  redirectUris:\n{uris}\n"
        f"  postLogoutRedirectUris:\n    - https://app-{number}.example.com/\n"
        "  responseTypes: [OIDC_RESPONSE_TYPE_CODE]\n"
        "  grantTypes:\n    - OIDC_GRANT_TYPE_AUTHORIZATION_CODE\n"
        "    - OIDC_GRANT_TYPE_REFRESH_TOKEN\n"
        f"  appType: OIDC_APP_TYPE_{kind}\n"
        f"  authMethodType: OIDC_AUTH_METHOD_TYPE_{method}\n"
        "  accessTokenType: OIDC_TOKEN_TYPE_JWT\n"
        f"  accessTokenRoleAssertion: {dice.choice(['true', 'false'])}\n"
        f"  clockSkew: {dice.choice(['0s', '1s', '1.5s'])}\n"
        f"  additionalOrigins:\n    - https://console-{number}.example.com\n"
    )


def _action(dice: random.Random, number: int, owner: str, project: int) -> str:
    name = f"action{number:06d}"
    claims = [
        f"      api.v1.claims.setClaim('claim{index}', ctx.v1.user.field{index});"
        for index in range(dice.randint(4, 28))
    ]
    script = "\n".join([f"    function {name}(ctx, api) {{", *claims, "    }"])
    return (
        f"{_head('Action')}  organization: {owner}\n  name: {name}\nspec:\n"
        f"  timeout: {dice.choice(['5s', '10s'])}\n  allowedToFail: true\n  script: |\n{script}\n"
    )


def _provider(dice: random.Random, number: int, owner: str, project: int) -> str:
    host = f"https://login-{number}.partner.example.com"
    return (
        f"{_head('IdpJwtConfig')}  organization: {owner}\n  name: partner-{number:06d}\nspec:\n"
        f"  jwtEndpoint: {host}/jwt\n  issuer: {host}\n  keysEndpoint: {host}/keys\n"
        "  headerName: authorization\n"
    )


_WRITERS = {"app": _application, "action": _action, "idp": _provider}


_SCRIPT = re.compile(r"script: \|\n(.*)", re.DOTALL)
_SCALAR = re.compile(r"^( *(?:- )?(?:\w+: )?)([A-Za-z][^\n\[]*[^:\n]|[0-9.]+s)$", re.MULTILINE)


def _quoted_script(document: str) -> str:
    """Return a document with its script in double quotes on one line."""
    return _SCRIPT.sub(lambda found: f"script: {json.dumps(textwrap.dedent(found[1]))}\n", document)


def _quoted(document: str) -> str:
    """Return a document with every text in double quotes."""
    head, script, rest = _quoted_script(document).partition("  script: ")
    plain = _SCALAR.sub(lambda found: f'{found[1]}"{found[2]}"', head)
    return re.sub('"(true|false)"', r"\1", plain) + script + rest


def _warned(document: str) -> str:
    """Return a document with one warning, if it is of a kind that has a dangerous setting."""
    if "kind: OidcApplication" in document:
        return f"{document}  devMode: true\n"
    return document.replace("  issuer: https:", "  issuer: http:")


def _every_tenth_warned(documents: list[str]) -> list[str]:
    """Warn as often as one document in ten; those that cannot hold a warning leave it to others."""
    owed, written = 0.0, []
    for document in documents:
        owed += 0.1
        warned = _warned(document) if owed >= 1 else document
        owed -= warned != document
        written.append(warned)
    return written


def _second_population(documents: list[str]) -> list[str]:
    """Warn in a quarter of the applications, and write scripts in double quotes."""
    applications = 0
    written = []
    for document in documents:
        applications += "kind: OidcApplication" in document
        warns = "kind: OidcApplication" in document and applications % 4 == 0
        written.append(_warned(document) if warns else _quoted_script(document))
    return written


STYLES: Mapping[str, Callable[[list[str]], list[str]]] = {
    "plain": lambda documents: documents,
    "quoted": lambda documents: [_quoted(each) for each in documents],
    "tenth": _every_tenth_warned,
    "second": _second_population,
}


def write(count: int, folder: Path, per_file: int = 1, style: str = "plain") -> None:
    """Write so many manifests into a folder."""
    documents = STYLES[style](list(manifests(count)))
    for start in range(0, len(documents), per_file):
        number = start // per_file
        target = folder / f"{number // FILES_PER_FOLDER:04d}" / f"{number:06d}.yaml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("---\n".join(documents[start : start + per_file]), encoding="utf-8")


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:4]), *sys.argv[4:5])
