"""Measures reading with variables, Defaults and an overlay against the same tree written out.

``python -m bench.layers COUNT FOLDER`` writes both trees only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bench import generate
from bench.aims import Aim
from bench.measure import apply_in, interleaved, ours, section

MOST = 1.15
PATCHED = 20  # one application in so many has a patch in the overlay

_CONFIGURATION = """\
apiVersion: reconciler/v1
kind: Configuration
manifests: manifests
variables:
  domain: {type: string}
environments:
  staging:
    overlay: environments/staging
    variables: {domain: example.com}
"""
_DEFAULTS = """\
apiVersion: reconciler/v1
kind: Defaults
metadata: {{organization: {organization}}}
spec:
  OidcApplication:
    responseTypes: [OIDC_RESPONSE_TYPE_CODE]
    accessTokenType: OIDC_TOKEN_TYPE_JWT
  IdpJwtConfig:
    headerName: authorization
  Action:
    allowedToFail: true
"""
_GIVEN = re.compile(
    r"^  (?:organization: .*|responseTypes: \[OIDC_RESPONSE_TYPE_CODE\]"
    r"|accessTokenType: OIDC_TOKEN_TYPE_JWT|headerName: authorization|allowedToFail: true)\n",
    re.MULTILINE,
)
_ORGANIZATION = re.compile(r"  organization: (.*)\n|kind: Organization\n(?s:.*?)  name: (.*)\n")
_SKEW = re.compile(r"^  clockSkew: (.*)\n", re.MULTILINE)


def write_trees(count: int, folder: Path) -> tuple[Path, Path]:
    """Write so many manifests in full, and again in layers; return the two folders."""
    plain, layered = folder / "written-out", folder / "in-layers"
    _write(layered / "reconciler.yaml", _CONFIGURATION)
    for number, text in enumerate(generate.manifests(count)):
        found = _ORGANIZATION.search(text)
        organization = (found[1] or found[2]) if found else ""
        path = (
            f"manifests/{organization}/{number // generate.FILES_PER_FOLDER:04d}/{number:06d}.yaml"
        )
        _write(plain / path, text)
        base = _GIVEN.sub("", text).replace("example.com", "${domain}")
        if number % PATCHED == 0 and (skew := _SKEW.search(text)):
            head, _, _ = text.partition("spec:\n")
            base = _SKEW.sub("  clockSkew: 5s\n", base)
            patch = f"{head}spec:\n  clockSkew: {skew[1]}\n"
            _write(layered / "environments" / "staging" / f"{number:06d}.yaml", patch)
        _write(layered / path, base)
        defaults = layered / "manifests" / organization / "defaults.yaml"
        if not defaults.exists():
            _write(defaults, _DEFAULTS.format(organization=organization))
    return plain, layered


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def layers_section(scratch: Path, count: int, rounds: int, aims: list[Aim]) -> list[str]:
    """Return a section of results about manifests in layers."""
    plain, layered = write_trees(count, scratch / "layers")
    chosen = ["--env", "staging"]
    for folder, options in ((plain, []), (layered, chosen)):
        apply_in(folder, *options)
    columns = "| command | ratio to the same written out | of processor | seconds |"
    lines = section(f"{count:,} manifests in layers", columns)
    for name in ("validate", "plan"):
        jobs = [
            ours("written out", plain, name),
            ours("in layers", layered, name, *chosen),
        ]
        series = interleaved(jobs, rounds)
        one, other = series["in layers"], series["written out"]
        ratio, work = one.median / other.median, one.processor / other.processor
        lines.append(f"| {name} | {ratio:.2f} | {work:.2f} | {one.median:.2f} |")
        aims.append(Aim(f"{name} {count:,} in layers / written out", MOST, ratio))
    return [
        *lines,
        "",
        "Organizations, two fields of applications and one of actions and providers come from",
        "Defaults, every host has a variable, and one application in twenty is patched.",
    ]


if __name__ == "__main__":
    write_trees(int(sys.argv[1]), Path(sys.argv[2]))
