"""Where fuzzing begins: inputs of ours for each target, good ones and bad ones.

They are made from what the repository has anyway; only what a fuzzer found is kept in files.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reconciler.apply.journal import FORMAT, Intent
from reconciler.diagnostics import SourceLocation, warning
from reconciler.plan.integrity import as_json
from reconciler.plan.model import Adopt, Create, Delete, Unmanaged, Update
from reconciler.plan.planfile import PlanFile, SavedFinding, SavedResource, plan_file_content
from reconciler.plan.planfile import Snapshot as Against
from reconciler.plan.snapshot import SnapshotFile, snapshot_content
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.transport.http_messages import json_answer
from reconciler.service.transport.protobuf import METHODS, message_of
from tests.builders import (
    GREET,
    HOUSE,
    PARTNER,
    SHOP,
    WEB,
    a_plan,
    a_public_application,
    a_ref,
    an_action,
    declared,
    held,
    observed,
)
from tests.examples import JWT, SCRIPT
from tests.fuzz.clients import true_answers
from tests.fuzz.services import ODD_NAMES
from tests.hostile import PAYLOADS, marked
from tests.unit.kinds.oidc_application.test_redirect_uris import (
    ERRORS,
    FINE,
    NATIVE_ERRORS,
    NATIVE_FINE,
)
from tests.unit.validation.documents import ACTION, APPLICATION, IDP, ORGANIZATION, PROJECT

EXAMPLES = Path(__file__).parents[2] / "manifests"

_YAML = (
    "a: no\nb: 010\nc: 1e3\nd: 0x1F\ne: .5\nf: ~\ng: 'it''s'\nh: \"\\u263a \\x41\\n\"\n",
    "a:\n- |\n   a\n    b\n- >-\n   a\n   b\n- [a, {b: c, ? d : e}]\n- {}\n",
    "%YAML 1.2\n---\na: 1\n...\n---\n# nothing\n--- text\n",
    "a: &x 1\nb: *x\n<<: {c: 2}\nc: !!str 3\na: 4\n",
    "? a\n: b\n? [c]\n: d\n", "a: 'open\n", "a: [1, 2\n", "\ta: 1\n", "a: b: c\n", "a: @b\n",
    "\ufeffa: 1\n", "a: \u2028b\n", "a: .inf\n", "a: 1" + "0" * 80, "[" * 40 + "]" * 40,
    "a: |2+\n   b\n\n", "a: >\n\n  b\n\n\n  c\n", "- - - a\n    - b\n", "a:\r\n  b: c\r\n",
)  # fmt: skip
_JSON = (
    "{}", '{"a": [1, -0, 1.0, 1e3, 0.5, true, null, "\\ud83d\\ude00", {"b": {}}]}',
    '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999}', '{"a": "\\u0000"}', '{"a": "\\udc00"}',
    '{"a": 18446744073709551615}', '{"a": ' + "1" * 4400 + "}", '{"a":' * 33 + "1" + "}" * 33,
    "[]", "null", "\ufeff{}", '{"\\ud800": 1}', "{'a': 1}", '{"a": 9007199254740993.0}',
)  # fmt: skip
_REQUESTS = (
    (
        b"POST /a?b=c HTTP/1.1\r\nHost: x.example:80\r\nContent-Length: 5\r\n\r\nhello"
        b"GET / HTTP/1.0\r\nHost: x\r\n\r\n"
    ),
    (
        b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
        b"3\r\nhel\r\n002\r\nlo\r\n0\r\n\r\nGET / HTTP/1.1\r\nhost: [::1]:1\r\nUpgrade: h2c\r\n\r\n"
    ),
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
    b"HEAD /%2e HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET",
)
_STORY = (
    (
        b'@x-service-orgid $0\n@idempotency-key k\nCreateAction {"name":"a","script":"x"}\n'
        b'UpdateAction {"id":"$2","name":"b","script":"y","timeout":"5s"}\n'
        b'GetAction {"id":"$2"}\nDeleteAction {"id":"$2"}\nListObjects {"organizationId":"$0"}\n'
        b'GetObjectHistory {"id":"$2"}'
    ),
    (
        b'@x-reconciler-context {"tree":"t"}\n'
        b'AddOIDCApp {"projectId":"$1","name":"w","authMethodType":"OIDC_AUTH_METHOD_TYPE_POST",'
        b'"redirectUris":["https://a.example/cb"],"clockSkew":"1.5s"}\n'
        b'RegenerateOIDCClientSecret {"projectId":"$1","appId":"$2"}\n'
        b'@if-match "1"\nUpdateOIDCAppConfig {"projectId":"$1","appId":"$2"}\n'
        b'GetAppByID {"projectId":"$1","appId":"$2"}\nRemoveApp {"projectId":"$1","appId":"$2"}'
    ),
    b"@x-service-orgid $0\nAddOrgJWTIDP "
    + json.dumps({"name": "p", **JWT}).encode()
    + b'\nUpdateOrgIDP {"idpId":"$2","name":"q"}\nRemoveOrgIDP {"idpId":"$2"}',
    (
        b'@x-reconciler-context {"tree":[1],"preventDelete":"x","critical":1}\n'
        b'AddOrg {"name":"c"}\nListObjects {"organizationId":"$2"}\nListTrees {}\n'
        b'@x-reconciler-context {"a":NaN}\nAddOrg {"name":"d"}\nListObjects {"organizationId":"$3"}'
    ),
    b'AcquireLease {"organization":"acme","holder":"me","seconds":60}\nHealthz {}\nGetMyOrg {}',
    (
        b'AddOrg {"name":"b"}\n@x-service-orgid $2\nAddProject {"name":"p"}\n'
        b'GetProjectByID {"id":"$3"}\nUpdateProject {"id":"$3","name":"q","projectRoleCheck":true}'
    ),
)
_LISTS = ("ListActions", "ListOrgIDPs", "ListProjects", "ListOrgs")
_METHODS_OF_NAMES = ("EQUALS", "STARTS_WITH", "CONTAINS_IGNORE_CASE", "ENDS_WITH_IGNORE_CASE")
_NAME_QUERIES = {"ListActions": "actionNameQuery", "ListOrgIDPs": "idpNameQuery"}
_DURATIONS = (
    "5s", "0s", "1.5s", "20s", "20.000000001s", "5.000000000s", "0.000000001s", "1.0s", "-1s",
    "+1s", "1.s", ".5s", "05s", "1.1234567890s", "1e1s", "5s\n", "5", "٣s", "315576000000s", "21s",
)  # fmt: skip
_ORIGINS = (
    "https://app.example.com", "http://localhost:3000", "https://[2001:db8::1]:8443",
    "http://127.0.0.1", "com.example.app://x", "https://a.example.com:443", "https://A.example",
    "https://a.example/", "https://a.example?x", "https://1.2.3", "https://0x7f", "https://[::1%25]",
    "https://[::ffff:1.2.3.4]", "https://a..b", "null", "https://a.example\n",
)  # fmt: skip
_HEADER_NAMES = ("x-partner-token", "authorization", "Host", "a b", "a:b", "", "é", "a\n", "~!#$")


def _examples() -> Iterator[bytes]:
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        yield path.read_bytes()
    for document in (APPLICATION, IDP, ACTION, PROJECT, ORGANIZATION):
        yield json.dumps(document).encode()
    yield from (text.encode() for text in _YAML)


def _manifests() -> Iterator[bytes]:
    yield from _examples()
    yield json.dumps({**ACTION, "spec": {"scriptFile": "greet.js"}}).encode()
    for payload in PAYLOADS[::4]:
        spec = {"redirectUris": [payload], "clockSkew": payload, payload: payload}
        document = {**APPLICATION, "kind": "OidcApplication", "spec": spec}
        yield json.dumps(document).encode("utf-8", "replace")


_FINDING = warning("A-CODE", "a summary", "a remedy", SourceLocation("a.yaml", 1, 2))
_APP_BEFORE = held(WEB, a_public_application(devMode=True), changed_by="me", carried={"new": [1]})
_RESOURCES = (declared(), declared(GREET), declared(PARTNER, critical=True), declared(SHOP))
_OBJECTS = (_APP_BEFORE, held(GREET, an_action(script="old")), held(PARTNER), held(SHOP))


def _plans() -> Iterator[bytes]:
    resources, objects = _RESOURCES, _OBJECTS
    plan = a_plan(
        Create(declared(a_ref(name="new"))),
        Update(resources[0], objects[0]),
        Adopt(resources[1], objects[1]),
        Delete(objects[2]),
        unmanaged=(Unmanaged(SHOP),),
        warnings=(_FINDING,),
    )
    for against in (None, Against(1, "sha256:0")):
        yield plan_file_content(
            PlanFile(plan, "1", "sqlite:x", ("manifests",), "d", 1, 2, against, (_FINDING,))
        )
    for organizations in (None, ("acme",)):
        state = observed(*HOUSE, objects[0], incomplete=("a doubt",))
        yield snapshot_content(SnapshotFile(state, "1", "sqlite:x", 1, organizations))


def _saved() -> Iterator[bytes]:
    lines = [
        *(as_json(SavedResource.of(resource)) for resource in _RESOURCES),
        *(as_json(found) for found in _OBJECTS),
        as_json(SavedFinding.of(_FINDING)),
    ]
    for at in range(4):
        yield "\n".join((lines[at], lines[at + 4], lines[8])).encode()


def _journals() -> Iterator[bytes]:
    spec = {"script": SCRIPT}
    intents = (
        Intent("inactive", "k1", GREET, spec=spec),
        Intent("secret", "k2", WEB),
        Intent("rename", "k3", WEB, "7", "c"),
    )
    records: list[Any] = [{"journal": FORMAT}, *({"begin": asdict(each)} for each in intents)]
    text = "\n".join(map(json.dumps, [*records, {"end": "k1"}]))
    yield f"{text}\n".encode()
    yield f"{text}\n".encode()[:-20]
    yield b'{"journal": 2}\n'
    yield b'{"journal": 1}\n{"begin": {"ref": []}}\n'


def _frames() -> Iterator[bytes]:
    for content in (b"", b"message"):
        yield b"\0" + struct.pack(">BI", 0, len(content)) + content
        packed = gzip.compress(content, mtime=0)
        for encoding in range(4):
            yield bytes([encoding]) + struct.pack(">BI", 1, len(packed)) + packed
    yield b"\0" + struct.pack(">BI", 0, 2**32 - 1)
    yield b"\0" + struct.pack(">BI", 0x80, 0)
    yield b"\x005S"


def _messages() -> Iterator[bytes]:
    asked: Mapping[str, dict[str, Any]] = {
        "AddOIDCApp": {"projectId": "1", "name": "web", "clockSkew": "1.5s",
                       "redirectUris": ["https://a.example/cb"],
                       "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"]},
        "CreateAction": {"name": "greet", "script": SCRIPT, "timeout": "5s"},
        "AddOrgJWTIDP": {"name": "partner", **JWT},
        "AddOrg": {"name": "acme"},
        "ListActions": {"queries": [{"actionNameQuery": {"name": "a"}}]},
        "ListOrgs": {"queries": [{"nameQuery": {"name": "a"}}]},
    }  # fmt: skip
    for index, path in enumerate(sorted(METHODS)):
        method = METHODS[path]
        fields = asked.get(method.operation, {})
        yield bytes([index]) + message_of(method.request, fields).SerializeToString()


def _replies() -> Iterator[bytes]:
    for status in (200, 400, 409, 503):
        for text in _JSON:
            yield struct.pack(">H", status) + text.encode("utf-8", "surrogatepass")
    refusal = Refusal(
        Code.PRECONDITION_FAILED, "no (COMMAND-2m9fs)", "object.moved_on", sequence="1"
    )
    yield struct.pack(">H", 409) + json_answer(refusal).body


def _list_questions() -> Iterator[bytes]:
    for operation in _LISTS:
        query = _NAME_QUERIES.get(operation, "nameQuery")
        for at, name in enumerate(ODD_NAMES):
            method = f"TEXT_QUERY_METHOD_{_METHODS_OF_NAMES[at % 4]}"
            asked = {"queries": [{query: {"name": name, "method": method}}],
                     "query": {"offset": at % 3, "limit": at % 5, "asc": at % 2 == 0}}  # fmt: skip
            yield f"@x-service-orgid $0\n{operation} {json.dumps(asked)}".encode()
    yield b'ListObjects {"organizationId":"$0","limit":5,"cursor":"$5"}'
    yield b'ListObjects {"organizationId":"$0","cursor":"\xff\xfe"}\nGetObjectHistory {"id":"$3"}'
    yield b'ListApps {"projectId":"$1","query":{"limit":"3"}}'
    yield b'@x-service-orgid $0\nListActions {"sortingColumn":"ACTION_FIELD_NAME_NAME"}'


def _texts(*texts: str) -> Iterator[bytes]:
    yield from (text.encode("utf-8", "surrogatepass") for text in texts)


def _uris() -> Iterator[str]:
    yield from (uri for uri, *_ in (*ERRORS, *NATIVE_ERRORS))
    yield from (*FINE, *NATIVE_FINE)


_SEEDS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "yaml": _examples,
    "manifest": _manifests,
    "json": lambda: _texts(*_JSON),
    "plan": _plans,
    "saved": _saved,
    "journal": _journals,
    "frames": _frames,
    "messages": _messages,
    "framing": lambda: (bytes([at]) + each for at, each in enumerate(_REQUESTS)),
    "replies": _replies,
    "observed": true_answers,
    "calls": lambda: iter(_STORY),
    "lists": _list_questions,
    "uri": lambda: _texts(*(f"{at % 4}{uri}" for at, uri in enumerate(_uris()))),
    "endpoint": lambda: _texts(*_uris()),
    "origin": lambda: _texts(*_ORIGINS),
    "duration": lambda: _texts(*_DURATIONS),
    "header": lambda: _texts(*_HEADER_NAMES),
    "visible": lambda: _texts(*PAYLOADS),
    "comment": lambda: _texts(*PAYLOADS, *map(marked, PAYLOADS[::8])),
}


_APPLICATION = """apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: acme, project: shop, name: web}
spec:
"""
_ACTION = """---
apiVersion: reconciler/v1
kind: Action
metadata: {organization: acme, name: greet}
spec:
  script: |
    function greet() {}
    x(
"""
LARGE = {
    "wrong origins": f"{_APPLICATION}  additionalOrigins:\n"
    + "".join(f"  - h{number}\n" for number in range(25_000)),
    "wrong URIs": f"{_APPLICATION}  redirectUris:\n" + "  - ht!tp:x\n" * 25_000,
    "scripts that do not compile": _ACTION * 1800,
    "unknown fields": _APPLICATION + "".join(f"  redirectUri{at}: x\n" for at in range(12_000)),
    "deep": "[" * 250_000,
    "flat": "- " * 125_000,
    "anchors": "- &a x\n" * 36_000,
    "documents": "---\n" * 60_000,
}
"""Manifests of a quarter of what is read at most: work that is not linear shows."""


def seeds_of(target: str) -> list[bytes]:
    """Return the inputs that a target begins with."""
    return list(_SEEDS[target]())
