"""What each console block of a document needs before it runs, or the reason why it is not run.

A document has one entry for each of its blocks: a script that a shell runs first (empty where the
block needs nothing but what the blocks above it left), or `NotRun`. The blocks of a document run
in one shell, which begins in an empty folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NotRun:
    """A block that no test can run here, and the test that holds what it shows."""

    reason: str


Before = str | NotRun

ACME = """\
mkdir -p {folder}
cat > {folder}/acme.yaml <<'END'
{{apiVersion: reconciler/v1, kind: Organization, metadata: {{name: acme}}}}
---
{{apiVersion: reconciler/v1, kind: Project, metadata: {{organization: acme, name: shop}}}}
END
"""
WEB = """\
cat > {folder}/web.yaml <<'END'
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {{organization: acme, project: shop, name: web}}
spec: {{redirectUris: ["https://web.example.com/cb"]}}
END
"""
ACTION = """\
cat > {folder}/{name}.yaml <<'END'
apiVersion: reconciler/v1
kind: Action
metadata: {{organization: acme, name: {name}}}
spec: {{script: "function {name}(ctx, api) {{}}"}}
END
"""


def _tree(folder: str, *actions: str) -> str:
    parts = [ACME.format(folder=folder), WEB.format(folder=folder)]
    return "".join([*parts, *(ACTION.format(folder=folder, name=name) for name in actions)])


TWO_TREES = (
    f"{_tree('team-a', 'greet', 'stay')}{_tree('team-b')}"
    "reconciler apply team-a --tree team-a --auto-approve\n"
)
A_MOVED_OBJECT = (
    f"{_tree('manifests', 'greet')}reconciler apply --auto-approve\n"
    "sed -i 's/{}\"/{ return }\"/' manifests/greet.yaml\n"
    "reconciler plan --out plan.json\n"
    "cp -r manifests other; sed -i 's/{ return }/{ return 1 }/' other/greet.yaml\n"
    "reconciler apply other --auto-approve\n"
)
A_SECOND_TREE = (
    f"rm -r .reconciler; {_tree('team-a', 'addRolesClaim', 'greet')}"
    "reconciler apply team-a --tree team-a --auto-approve\n"
    "mkdir team-b; cp team-a/acme.yaml team-a/addRolesClaim.yaml team-b\n"
)
A_CHANGE_BY_HAND = (
    ACME.format(folder="manifests")
    + """\
cat > manifests/web.yaml <<'END'
apiVersion: reconciler/v1
kind: OidcApplication
metadata:
  organization: acme
  project: shop
  name: web
spec:
  redirectUris:
    - https://web.example.com/cb  # the shop
  devMode: false  # never in production
END
git init --quiet; echo .reconciler > .gitignore; git add .; git commit --quiet --message first
reconciler apply --auto-approve --secrets-to file:.reconciler/secrets
cp -r manifests ../by-hand
cat >> ../by-hand/web.yaml <<'END'
  clockSkew: 2s
END
sed -i '/the shop/a\\    - https://tv.example.com/cb' ../by-hand/web.yaml
reconciler apply ../by-hand --tree by-hand --auto-approve
"""
)
A_BAD_COMMIT = (
    f"mkdir live && cd live\n{_tree('manifests', 'greet')}"
    """\
git init --quiet; echo .reconciler > .gitignore; git add .; git commit --quiet --message first
reconciler apply --auto-approve --secrets-to file:.reconciler/secrets
sed -i 's/web.example.com/wrong.example.com/' manifests/web.yaml
sed -i 's/{}"/{ api.log(ctx) }"/' manifests/greet.yaml
git commit --quiet --all --message 'Move the shop'
reconciler apply --auto-approve
"""
)
A_WRONG_ADDRESS = (
    f"mkdir ../past && cd ../past\n{_tree('manifests')}"
    "reconciler apply --auto-approve --secrets-to file:kept > /dev/null\n"
    "sed -i 's/web.example.com/wrong.example.com/' manifests/web.yaml"
)
A_LATER_RUN = """\
cd ../live
sed -i 's/web.example.com/moved.example.com/' manifests/web.yaml
sed -i 's/{}"/{ return 1 }"/' manifests/greet.yaml
RUN=$(reconciler apply --auto-approve --format json | jq -r .run)
sed -i 's/return 1/return 2/' manifests/greet.yaml
reconciler apply --auto-approve
"""
TWO_SERVICES = (
    "git init --quiet\n"
    f"{_tree('development/acme', 'greet', 'stay')}{_tree('production/acme', 'greet', 'stay')}"
)
# Somebody gives an application another origin in a console, which sends all of its fields.
A_SHARED_FIELD = (
    f"{_tree('manifests')}"
    "sed -i 's/name: web}/name: web, ignore: [additionalOrigins]}/' manifests/web.yaml\n"
    "reconciler apply --auto-approve\n"
    """cat > console.py <<'END'
from contextlib import closing
from pathlib import Path

from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request

with closing(open_sqlite(Path(".reconciler/identity.db"))) as service:
    def call(operation, **fields):
        return service.call(Request(operation, fields, caller=EMBEDDED))

    (owner,) = (each["id"] for each in call("ListOrgs")["result"])
    held = call("ListObjects", organizationId=owner)["objects"]
    (web,) = (each for each in held if each["name"] == "web")
    fields = {**web["spec"], "additionalOrigins": ["https://preview.example.com"]}
    call("UpdateOIDCAppConfig", projectId=web["projectId"], appId=web["id"], **fields)
END
python console.py
"""
)
SIGNED_BY_OTHERS = """\
python - <<'END'
import time
from tests.signing import Forge
forge = Forge()
now = int(time.time())
claims = {"iss": "https://ci.example.com", "aud": "https://other.example.com", "sub": "eve"}
claims |= {"exp": now + 300, "iat": now, "nbf": now}
open("token.txt", "w").write(forge.signed(claims))
open("keys.json", "w").write(forge.keys)
END
reconciler trust add ci --issuer https://ci.example.com --keys keys.json \\
  --role viewer --claim sub=build
"""
NO_GRPCURL = NotRun("needs grpcurl; tests/contract/test_transports.py makes the same call")
A_PORT = NotRun("needs the port of the page; tests/acceptance/test_serving_docs.py has another")
A_SERVER = NotRun("a server does not end by itself; tests/acceptance/test_serve.py runs it")

SERVED = {"docs/roles.md"}
"""Documents that are about a server: one runs, and the shell has a token of its viewer."""

A_POLICY = """\
mkdir policies
cat > policies/no-dev-mode.yaml <<'END'
# policies/no-dev-mode.yaml
apiVersion: reconciler/v1
kind: Policy
metadata:
  name: no-dev-mode
spec:
  kinds: [OidcApplication]
  rule: "!after.devMode"
  message: Development mode allows plain http redirect URIs.
  remedy: Remove devMode, or ask the security team for a waiver.
  examples:
    pass: [{after: {redirectUris: [https://a.example.com/cb]}}]
    fail: [{after: {redirectUris: [https://a.example.com/cb], devMode: true}}]
END
"""
A_WAIVER = """\
cp -r policies trusted
cat > policies/web-moves.yaml <<'END'
# policies/web-moves.yaml
apiVersion: reconciler/v1
kind: Waiver
metadata:
  name: web-moves
spec:
  policy: no-dev-mode
  refs: [OidcApplication/acme/shop/web]
  reason: The shop moves to its new domain.
  owner: team-shop
  until: 2099-12-31
END
"""

BLOCKS: Mapping[str, Sequence[Before]] = {
    "README.md": ("",) * 5,
    "docs/doctor.md": ("",),
    "docs/environments.md": ("",) * 7 + ("sed -i s/Hots/Host/ manifests/acme/shop/*.yaml", ""),
    "docs/grpc.md": (NO_GRPCURL,),
    "docs/guards.md": (TWO_TREES,),
    "docs/install.md": (
        NotRun("needs a core without extras: tests/acceptance/test_distribution.py has one"),
        NotRun("needs the files of a release: tests/acceptance/test_distribution.py makes them"),
    ),
    "docs/keyless.md": (
        f"{_tree('manifests')}reconciler apply --auto-approve\n",
        "",
        SIGNED_BY_OTHERS,
        "",
    ),
    "docs/plans.md": (
        A_MOVED_OBJECT,
        NotRun("needs a run that was killed: tests/acceptance/test_resuming.py kills them"),
        f"rm -r .reconciler; {_tree('urgent', 'greet', 'stay')}",
        A_SECOND_TREE,
    ),
    "docs/policies.md": (_tree("manifests") + A_POLICY, A_WAIVER, ""),
    "docs/remote-services.md": ("reconciler init",),
    "docs/pauses.md": (f"{_tree('manifests', 'greet')}reconciler apply --auto-approve\n",),
    "docs/roles.md": (_tree("manifests", "greet"),),
    "docs/several-services.md": (TWO_SERVICES, ""),
    "docs/serving.md": (A_SERVER, A_PORT),
    "docs/shared-fields.md": (
        A_SHARED_FIELD,
        "sed -i 's/spec: {/spec: {clockSkew: 1s, /' manifests/web.yaml",
        "sed -i 's/\\[additionalOrigins\\]/[additionalOrigins, redirectUris]/' manifests/web.yaml",
    ),
    "docs/tutorial.md": ("",) * 18,
    "docs/way-back.md": (
        *(A_BAD_COMMIT, "", "", "", ""),
        *(A_WRONG_ADDRESS, A_LATER_RUN, ""),
        f"mkdir ../accept && cd ../accept\n{A_CHANGE_BY_HAND}",
    ),
}
