"""A plan in which everything changes, under twenty policies, against the same plan without."""

from __future__ import annotations

import json
from pathlib import Path

from bench import generate
from bench.aims import Aim
from bench.measure import apply_in, interleaved, ours, section

APPLICATION = (
    "!after.devMode",
    "after.redirectUris.all(u, u.startsWith('https://'))",
    "after.redirectUris.all(u, host(u).endsWith('.example.com'))",
    "after.redirectUris.all(u, path(u) != '/')",
    "size(after.redirectUris) < 20",
    "!('OIDC_GRANT_TYPE_IMPLICIT' in after.grantTypes)",
    "after.responseTypes.all(r, !r.contains('TOKEN'))",
    "after.clockSkew <= duration('5s')",
    "!protected || !after.idTokenUserinfoAssertion",
    "after.appType != 'OIDC_APP_TYPE_NATIVE' || size(after.redirectUris) > 0",
    "change != 'delete' && ref.startsWith('OidcApplication/')",
    "!('additionalOrigins' in fields) || size(after.additionalOrigins) < 9",
)
ACTION = (
    "after.timeout <= duration('20s')",
    "size(after.script) < 2000",
    "!after.script.contains('eval(')",
    "!after.allowedToFail || !protected",
)
PROVIDER = (
    "after.issuer.startsWith('https://')",
    "host(after.keysEndpoint) != ''",
    "after.jwtEndpoint != after.keysEndpoint",
    "size(after.headerName) < 50",
)
RULES = [
    *(("OidcApplication", rule) for rule in APPLICATION),
    *(("Action", rule) for rule in ACTION),
    *(("IdpJwtConfig", rule) for rule in PROVIDER),
]


def write_policies(folder: Path) -> None:
    """Write twenty policies, which let everything pass that is generated."""
    folder.mkdir(parents=True)
    for number, (kind, rule) in enumerate(RULES):
        policy = {
            "apiVersion": "reconciler/v1",
            "kind": "Policy",
            "metadata": {"name": f"rule-{number}"},
            "spec": {"kinds": [kind], "rule": rule, "message": "Not so."},
        }
        (folder / f"{number}.yaml").write_text(json.dumps(policy), encoding="utf-8")


def policies_section(scratch: Path, count: int, rounds: int, aims: list[Aim]) -> list[str]:
    """Return the lines of the section; add its aim."""
    creates = scratch / "policies"
    generate.write(count, creates / "manifests")
    write_policies(creates / "policies")
    updates = scratch / "policies-in-step"
    generate.write(count, updates / "manifests")
    write_policies(updates / "policies")
    apply_in(updates)
    columns = f"| plan of {count:,} | without, s | under {len(RULES)}, s | ratio | of processor |"
    lines = section("Policies", columns)
    for name, folder, most in (
        ("creates", creates, 1.3),
        ("nothing", updates, None),
    ):
        jobs = [
            ours("without", folder, "plan"),
            ours("with", folder, "plan", "--policies", "policies"),
        ]
        series = interleaved(jobs, rounds)
        ratio = series["with"].median / series["without"].median
        lines.append(
            f"| {name} | {series['without'].median:.2f} | {series['with'].median:.2f} "
            f"| **{ratio:.2f}** | {series['with'].processor / series['without'].processor:.2f} |"
        )
        if most:
            aims.append(Aim(f"plan of {count:,} {name} under 20 policies / without", most, ratio))
    return lines
