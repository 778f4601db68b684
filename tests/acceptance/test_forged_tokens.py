"""Forged and stale tokens, and issuers that misbehave: each is refused, and all refused alike."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from reconciler.resources.secret import Secret
from reconciler.service_client.machine_keys import NewKey
from tests.certificates import a_certificate
from tests.listening import listening
from tests.program import program
from tests.rows import each_row
from tests.running import Server, running_server
from tests.signing import GITHUB, ORIGIN, RULE, Forge, encoded, github_claims, part

EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
}
JWT_PROFILE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
HUGE = 200_000
REFUSED = {
    "error": "invalid_grant",
    "error_description": "the token is refused; the log of the service says why, by the id of this"
    " request",
}


@dataclass
class Issuers:
    """Issuers of one server, by the first part of the path; each misbehaves in its own way."""

    forge: Forge
    address: str = ""
    closed: str = ""
    seen: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the issuer of the path does."""
        _, way, rest = scope["path"].split("/", 2)
        self.seen[way] += 1
        status, headers, body = self.answer(way, is_keys=rest == "keys")
        if way == "silent":
            await receive()
            await receive()  # until the caller goes away
            return
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            }
        )
        if way == "slow":
            for _ in range(100):
                await send({"type": "http.response.body", "body": b" ", "more_body": True})
                await asyncio.sleep(0.2)
        await send({"type": "http.response.body", "body": body})

    def answer(self, way: str, *, is_keys: bool) -> tuple[int, dict[str, str], bytes]:
        if is_keys:
            keys = {
                "private": json.dumps({"keys": [{"kty": "RSA", "kid": "1", "d": "x"}]}),
                "no-set": "[]",
                "huge": " " * HUGE + self.forge.keys,
                "empty": '{"keys": []}',
                "rotated": self.forge.stranger.public,
            }.get(way, self.forge.keys)
            return 200, {}, keys.encode()
        here = f"{self.address}/{way}"
        odd_documents: dict[str, dict[str, str | None]] = {
            "other-issuer": {"issuer": f"{here}/"},
            "plain-keys": {"jwks_uri": f"http://127.0.0.1/{way}/keys"},
            "keys-of-this-machine": {"jwks_uri": f"{self.closed}/keys"},
            "no-keys": {"jwks_uri": None},
            "keys-in-a-file": {"jwks_uri": "file:///etc/passwd"},
        }
        document = {"issuer": here, "jwks_uri": f"{here}/keys", **odd_documents.get(way, {})}
        content = json.dumps(document).encode()
        odd: dict[str, tuple[int, dict[str, str], bytes]] = {
            "redirecting": (302, {"location": f"{self.address}/good/.well-known/x"}, b""),
            "failing": (500, {}, content),
            "no-json": (200, {}, b"<html>"),
            "compressed": (200, {"content-encoding": "gzip"}, gzip.compress(content)),
            "long": (200, {}, b" " * HUGE + content),
        }
        return odd.get(way, (200, {}, content))


@dataclass
class Tried:
    """A server with rules, and what may be sent to it."""

    server: Server
    forge: Forge
    machine: Mapping[str, str]
    issuers: Issuers
    trap: socket.socket
    client: httpx.Client

    def post(self, form: Mapping[str, str]) -> httpx.Response:
        return self.client.post(f"{self.server.address}/oauth/v2/token", data=dict(form))

    def exchange(self, token: str) -> httpx.Response:
        return self.post({**EXCHANGE, "subject_token": token})

    def of_issuer(self, issuer: str) -> str:
        return self.forge.signed(github_claims(self.forge.now, iss=issuer))

    def statement(self, key: NewKey | None = None, **changes: Any) -> str:
        """Return what the machine signs to sign in, but for these claims."""
        me, now = self.machine["userId"], self.forge.now
        claims = {"iss": me, "sub": me, "aud": ORIGIN, "iat": now, "exp": now + 3600, **changes}
        return self.forge.signed(claims, key or self.own_key)

    @property
    def own_key(self) -> NewKey:
        return NewKey(self.machine["keyId"], Secret(self.machine["key"]), "")

    def connections_to_trap(self) -> int:
        """Return how many connections came to the port that nobody may connect to."""
        count = 0
        while True:
            try:
                self.trap.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1


@contextmanager
def a_trap() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0)
        yield trap, trap.getsockname()[1]


WAYS = (
    "good", "silent", "slow", "redirecting", "failing", "no-json", "compressed", "long",
    "other-issuer", "plain-keys", "keys-of-this-machine", "no-keys", "keys-in-a-file", "private",
    "no-set", "huge", "empty", "rotated",
)  # fmt: skip


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """Serve a store with a rule for GitHub, one for each issuer of the tests, and a machine."""
    folder = tmp_path_factory.mktemp("keyless")
    certificate, key = a_certificate(folder)
    forge, run = Forge(), program(folder)
    issuers = Issuers(forge)
    allowed = ("--origin", ORIGIN, "--allow-issuer", "127.0.0.1")
    with (
        a_trap() as (trap, port),
        listening(issuers, certificate, key) as issuers.address,
        running_server(folder, *allowed) as server,
        httpx.Client(timeout=60) as client,
    ):
        issuers.closed = f"https://localhost:{port}"
        service = ("--service", f"sqlite:{server.store}", "--organization", "acme")
        (folder / "keys.json").write_text(forge.keys, encoding="ascii")
        claims = [word for name in RULE for word in ("--claim", f"{name}={RULE[name]}")]
        editor = ("--role", "editor", *claims, *service)
        made = [
            run("trust", "add", "apply", "--preset", "github", "--keys", "keys.json", *editor),
            run("machine", "add", "backup", "--role", "viewer", "--key-out", "m.json", *service),
        ]
        for way in WAYS:
            issuer = f"{issuers.address}/{way}"
            words = ("--issuer", issuer, "--issuer-ca", str(certificate), *editor)
            made.append(run("trust", "add", way, *words))
        for number, issuer in enumerate(local_issuers(port)):
            made.append(run("trust", "add", f"local-{number}", "--issuer", issuer, *editor))
        assert [ran.all for ran in made if ran.code] == []
        machine = json.loads((folder / "m.json").read_text(encoding="utf-8"))
        yield Tried(server, forge, machine, issuers, trap, client)


def local_issuers(port: int) -> list[str]:
    """Return issuers that are this machine, by names and addresses of it."""
    hosts = ("localhost", "[::1]", "[::ffff:127.0.0.1]", str(IPv4Address(0)), "127.0.0.2")
    return [f"https://{host}:{port}" for host in hosts]


def cut(token: str, parts: int) -> str:
    return ".".join(token.split(".")[:parts])


def changed(token: str, at: int, new: str) -> str:
    parts = token.split(".")
    return ".".join([*parts[:at], new, *parts[at + 1 :]])


def with_twice(forge: Forge) -> str:
    """Return a token with a claim that stands there twice."""
    text = json.dumps(github_claims(forge.now))
    text = text.replace('"repository_id"', '"repository_id": "1001", "repository_id"')
    claims = encoded(text.encode())
    return changed(forge.token(), 1, claims)


Make = Callable[[Tried], str]
FORGED: Mapping[str, Make] = {
    # Not a token.
    "nothing like one": lambda t: t.forge.rsa.id,
    "two parts": lambda t: cut(t.forge.token(), 2),
    "four parts": lambda t: t.forge.token() + ".x",
    "encrypted": lambda t: f"{t.forge.token()}.d.e",
    "a header that is no base64": lambda t: changed(t.forge.token(), 0, "a$b"),
    "a header that is no JSON": lambda t: changed(t.forge.token(), 0, encoded(b"{")),
    "claims that are a list": lambda t: t.forge.signed([]),
    "a claim twice": lambda t: with_twice(t.forge),
    "padded": lambda t: changed(t.forge.token(), 1, part({}) + "=="),
    # Algorithms.
    "algorithm none": lambda t: t.forge.unsigned("none"),
    "algorithm None": lambda t: t.forge.unsigned("None", "x"),
    "algorithm none, signature kept": lambda t: changed(
        t.forge.token(), 0, part({"alg": "none", "kid": t.forge.rsa.id})
    ),
    "HMAC with the public key": lambda t: t.forge.with_hmac(t.forge.public_pem()),
    "HMAC with the key set": lambda t: t.forge.with_hmac(t.forge.keys.encode()),
    "HMAC with nothing": lambda t: t.forge.with_hmac(b"", "HS512"),
    "a list as algorithm": lambda t: t.forge.signed({}, header={"alg": ["RS256"]}),
    "no algorithm": lambda t: t.forge.signed(github_claims(t.forge.now), header={"alg": None}),
    "ES256 by an RSA key": lambda t: t.forge.signed(
        github_claims(t.forge.now), header={"alg": "ES256"}
    ),
    "RS256 by an EC key": lambda t: t.forge.signed(
        github_claims(t.forge.now), t.forge.ec, {"alg": "RS256"}
    ),
    "PS256 by a key for RS256": lambda t: t.forge.with_pss(),
    # Keys and signatures.
    "an unknown key": lambda t: t.forge.signed(github_claims(t.forge.now), t.forge.stranger),
    "no key named": lambda t: t.forge.signed(github_claims(t.forge.now), header={"kid": None}),
    "a number as key": lambda t: t.forge.signed(github_claims(t.forge.now), header={"kid": 1}),
    "a path as key": lambda t: t.forge.signed(
        github_claims(t.forge.now), header={"kid": "../../../../dev/null"}
    ),
    "another key under the id of the right one": lambda t: t.forge.signed(
        github_claims(t.forge.now), t.forge.stranger, {"kid": t.forge.rsa.id}
    ),
    "a key in the header": lambda t: t.forge.signed(
        github_claims(t.forge.now),
        t.forge.stranger,
        {"kid": t.forge.rsa.id, "jwk": json.loads(t.forge.stranger.public)["keys"][0]},
    ),
    "the address of a key in the header": lambda t: t.forge.signed(
        github_claims(t.forge.now),
        t.forge.stranger,
        {"jku": f"{t.issuers.closed}/keys", "x5u": f"{t.issuers.closed}/cert"},
    ),
    "an extension in the header": lambda t: t.forge.signed(
        github_claims(t.forge.now), header={"crit": ["exp"]}
    ),
    "a body that is not encoded": lambda t: t.forge.signed(
        github_claims(t.forge.now), header={"b64": False}
    ),
    "the signature of another token": lambda t: changed(
        t.forge.token(), 2, t.forge.token(jti="two").split(".")[2]
    ),
    "half a signature": lambda t: t.forge.token()[:-20],
    "claims changed later": lambda t: changed(
        t.forge.token(), 1, part(github_claims(t.forge.now, actor="eve"))
    ),
    "the key of a machine": lambda t: t.forge.signed(github_claims(t.forge.now), t.own_key),
    "the statement of a machine": lambda t: t.statement(),
    # For whom, by whom.
    "no audience": lambda t: t.forge.token(aud=None),
    "another audience": lambda t: t.forge.token(aud="https://other.example.com"),
    "the audience with a slash": lambda t: t.forge.token(aud=f"{ORIGIN}/"),
    "two audiences": lambda t: t.forge.token(aud=[ORIGIN, "https://other.example.com"]),
    "no audience in a list": lambda t: t.forge.token(aud=[]),
    "GitHub's usual audience": lambda t: t.forge.token(aud="https://github.com/acme"),
    "no issuer": lambda t: t.forge.token(iss=None),
    "the issuer with a slash": lambda t: t.forge.token(iss=f"{GITHUB}/"),
    "the issuer in capitals": lambda t: t.forge.token(iss=GITHUB.upper()),
    "an issuer of an enterprise": lambda t: t.forge.token(iss=f"{GITHUB}/acme"),
    "an unknown issuer": lambda t: t.forge.token(iss=t.issuers.closed + "/unknown"),
    "an issuer that is no text of a store": lambda t: t.forge.token(iss="\ud800"),
    "an issuer with a NUL": lambda t: t.forge.token(iss=f"{GITHUB}\0"),
    "claims that are no text of a store": lambda t: t.forge.token(repository_id="\ud800"),
    "issuers in a list": lambda t: t.forge.token(iss=[GITHUB]),
    "a machine as issuer": lambda t: t.forge.token(iss=t.machine["userId"]),
    # Times.
    "no end": lambda t: t.forge.token(exp=None),
    "ended": lambda t: t.forge.token(exp=t.forge.now - 3600),
    "ended just now": lambda t: t.forge.token(exp=t.forge.now - 1),
    "an end as text": lambda t: t.forge.token(exp=str(t.forge.now + 300)),
    "true as an end": lambda t: t.forge.token(exp=True),
    "no end in sight": lambda t: t.forge.token(exp=10**17),
    "a negative end": lambda t: t.forge.token(exp=-1),
    "no beginning": lambda t: t.forge.token(nbf=None),
    "not begun": lambda t: t.forge.token(nbf=t.forge.now + 300),
    "no time of issue": lambda t: t.forge.token(iat=None),
    "issued in the future": lambda t: t.forge.token(iat=t.forge.now + 300),
    # Of another job.
    "a recycled repository": lambda t: t.forge.token(repository_id="2002"),
    "a recycled owner": lambda t: t.forge.token(repository_owner_id="88"),
    "a fork": lambda t: t.forge.token(repository_id="3003", repository="eve/identity"),
    "a number for a text": lambda t: t.forge.token(repository_id=1001),
    "a list for a text": lambda t: t.forge.token(repository_id=["1001"]),
    "a pull request": lambda t: t.forge.token(
        event_name="pull_request", ref="refs/pull/7/merge", environment=None
    ),
    "pull_request_target": lambda t: t.forge.token(event_name="pull_request_target"),
    "workflow_run": lambda t: t.forge.token(event_name="workflow_run"),
    "issue_comment": lambda t: t.forge.token(event_name="issue_comment"),
    "a merge queue": lambda t: t.forge.token(event_name="merge_group"),
    "no environment": lambda t: t.forge.token(environment=None),
    "another environment": lambda t: t.forge.token(environment="staging"),
    "the environment in capitals": lambda t: t.forge.token(environment="Production"),
    "another branch": lambda t: t.forge.token(ref="refs/heads/feature"),
    "a tag of the branch's name": lambda t: t.forge.token(ref="refs/tags/main"),
    "another workflow": lambda t: t.forge.token(
        job_workflow_ref="acme/identity/.github/workflows/other.yml@refs/heads/main"
    ),
    "the subject alone": lambda t: t.forge.token(**dict.fromkeys(RULE)),
}
STATEMENTS: Mapping[str, Make] = {
    "by another key": lambda t: t.statement(t.forge.stranger),
    "by another key under its id": lambda t: t.forge.signed(
        {"iss": t.machine["userId"], "sub": t.machine["userId"]},
        t.forge.stranger,
        {"kid": t.machine["keyId"]},
    ),
    "for another subject": lambda t: t.statement(sub="1"),
    "of another issuer": lambda t: t.statement(iss="1", sub="1"),
    "for a day": lambda t: t.statement(exp=t.forge.now + 86_400),
    "for another service": lambda t: t.statement(aud="https://other.example.com"),
    "without a time of issue": lambda t: t.statement(iat=None),
    "ended": lambda t: t.statement(iat=t.forge.now - 7200, exp=t.forge.now - 3600),
    "the token of a job": lambda t: t.forge.token(),
}


def test_the_right_token_is_exchanged(tried: Tried) -> None:
    """Else the table below would prove nothing."""
    answer = tried.exchange(tried.forge.token())
    found = answer.json()

    assert answer.status_code == 200
    assert found.keys() == {"access_token", "token_type", "expires_in", "issued_token_type"}
    assert 0 < found["expires_in"] <= 300
    assert answer.headers["cache-control"] == "no-store"
    assert tried.exchange(tried.forge.token(jti="more", aud=[ORIGIN])).status_code == 200
    by_ec = tried.forge.signed(github_claims(tried.forge.now), tried.forge.ec)
    assert tried.exchange(by_ec).status_code == 200
    statement = tried.post({"grant_type": JWT_PROFILE, "assertion": tried.statement()})
    long = tried.exchange(tried.forge.token(exp=tried.forge.now + 86_400))
    assert {statement.json()["expires_in"], long.json()["expires_in"]} <= {899, 900}


def refused_alike(tried: Tried, answer: httpx.Response) -> None:
    """Check that an answer is that of every refused token, with its reason in the log alone."""
    assert (answer.status_code, answer.json()) == (400, REFUSED)
    log = tried.server.store.with_name("stderr.txt").read_text(encoding="utf-8")
    assert f"(request_id={answer.headers['x-request-id']}): " in log
    assert tried.connections_to_trap() == 0


@each_row(("name", "make"), FORGED.items())
def test_a_forged_or_stale_token_is_refused(tried: Tried, name: str, make: Make) -> None:
    """No connection is made for any of them: the key set is in the rule."""
    refused_alike(tried, tried.exchange(make(tried)))


@each_row(("name", "make"), STATEMENTS.items())
def test_a_forged_statement_of_a_machine_is_refused(tried: Tried, name: str, make: Make) -> None:
    refused_alike(tried, tried.post({"grant_type": JWT_PROFILE, "assertion": make(tried)}))


def test_the_table_is_long_enough() -> None:
    assert len(FORGED) + len(STATEMENTS) + len(WAYS) >= 60


def test_keys_are_fetched_from_an_issuer_that_behaves(tried: Tried) -> None:
    """Once: the second token finds them, and an unknown key does not fetch them again so soon."""
    issuer = f"{tried.issuers.address}/good"
    assert tried.exchange(tried.of_issuer(issuer)).status_code == 200
    assert tried.exchange(tried.of_issuer(issuer)).status_code == 200
    claims = github_claims(tried.forge.now, iss=issuer)
    refused_alike(tried, tried.exchange(tried.forge.signed(claims, tried.forge.stranger)))

    assert tried.issuers.seen["good"] == 2  # the document and the keys


@pytest.mark.slow
def test_an_issuer_that_misbehaves_gives_no_token(tried: Tried) -> None:
    """All at once. A silent one is given up, and does not delay the others."""
    ways = [way for way in WAYS if way != "good"]
    with ThreadPoolExecutor(len(ways)) as callers:
        answers = callers.map(
            lambda way: tried.exchange(tried.of_issuer(f"{tried.issuers.address}/{way}")), ways
        )
        for answer in answers:
            refused_alike(tried, answer)

    assert all(tried.issuers.seen[way] for way in ways)
    assert tried.issuers.seen["redirecting"] == 1
    log = tried.server.store.with_name("stderr.txt").read_text(encoding="utf-8")
    for reason in (
        "did not give its keys within 5 s",
        "the answer has the status 302, not 200",
        "the answer is compressed",
        "the answer is longer than 65536 bytes",
        "is of another issuer",
        "localhost has an address that is not public",
        "one of them is private",
    ):
        assert reason in log


def test_an_issuer_that_is_this_machine_is_not_connected_to(tried: Tried) -> None:
    port = tried.trap.getsockname()[1]
    for issuer in local_issuers(port):
        refused_alike(tried, tried.exchange(tried.of_issuer(issuer)))


@each_row(
    ("form", "error"),
    [
        ({"grant_type": ""}, "unsupported_grant_type"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": JWT_PROFILE}, "invalid_request"),
        ({**EXCHANGE}, "invalid_request"),
        ({**EXCHANGE, "subject_token": "x", "actor_token": "y"}, "invalid_request"),
        ({**EXCHANGE, "subject_token": "x" * 30_000}, "invalid_request"),
        ({**EXCHANGE, "subject_token_type": "x", "subject_token": "x"}, "invalid_request"),
    ],
)
def test_a_form_that_asks_for_nothing_is_told_so(
    tried: Tried, form: Mapping[str, str], error: str
) -> None:
    """No token is looked at, so nothing is learned about one."""
    answer = tried.post(form)

    assert (answer.status_code, answer.json()["error"]) == (400, error)


def test_the_discovery_document_leads_to_the_endpoint(tried: Tried) -> None:
    found = httpx.get(f"{tried.server.address}/.well-known/openid-configuration").json()

    assert found["issuer"] == ORIGIN
    assert found["token_endpoint"] == f"{ORIGIN}/oauth/v2/token"
    assert httpx.get(f"{tried.server.address}/oauth/v2/token").status_code == 405


def test_there_is_no_endpoint_without_an_origin(tmp_path: Path) -> None:
    """No token could be meant for a service without a name. Unknown addresses need a token."""
    with running_server(tmp_path) as server:
        discovery = httpx.get(f"{server.address}/.well-known/openid-configuration")
        token = httpx.post(f"{server.address}/oauth/v2/token", data=EXCHANGE)

    assert (discovery.status_code, token.status_code) == (401, 401)
