"""Keyless login through real servers and the command line: rules, machines, short tokens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.node_program import told_by_node
from tests.postgres_server import PostgresServer
from tests.program import Run, program
from tests.rows import each_row
from tests.running import Server, a_free_port, another_server, running_server
from tests.signing import GITHUB, GITLAB, ORIGIN, RULE, Forge, github_claims

EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
}
CLAIMS = [word for name in RULE for word in ("--claim", f"{name}={RULE[name]}")]
VIEWS = ["--claim", "repository_id=1001", "--claim", "repository_owner_id=77"]
OWN = ["--issuer", "https://ci.example.com", "--claim", "sub=backup"]


@dataclass
class Keyless:
    """Two servers on one store, an issuer, and the command line where the store is."""

    first: Server
    second: str
    forge: Forge
    run: Run
    folder: Path

    def trust(self, *words: str) -> None:
        ran = self.run("trust", *words, "--service", f"sqlite:{self.first.store}")
        assert ran.code == 0, ran.all

    def add(self, name: str, *words: str) -> None:
        """Add a rule, with the key set of the issuer."""
        self.trust("add", name, "--keys", "keys.json", "--organization", "acme", *words)

    def exchange(self, token: str, address: str = "") -> httpx.Response:
        form = {**EXCHANGE, "subject_token": token}
        return httpx.post(f"{address or self.first.address}/oauth/v2/token", data=form)

    def short(self, **changes: Any) -> str:
        """Return a short token for one of GitHub with these changes."""
        answer = self.exchange(self.forge.token(**changes))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def call(
        self, token: str, verb: str, path: str, address: str = "", **more: Any
    ) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}", **more.pop("headers", {})}
        where = f"{address or self.first.address}{path}"
        return httpx.request(verb, where, headers=headers, **more)

    def me(self, token: str, address: str = "") -> Mapping[str, Any]:
        found: dict[str, Any] = self.call(token, "GET", "/reconciler/v1/service", address).json()
        return found

    def add_action(self, token: str, name: str, key: str = "", context: str = "") -> httpx.Response:
        headers = {"idempotency-key": key, "x-reconciler-context": context}
        body = {"name": name, "script": f"function {name}() {{}}", "timeout": "1s"}
        return self.call(
            token,
            "POST",
            "/management/v1/actions",
            json=body,
            headers={name: value for name, value in headers.items() if value},
        )


@pytest.fixture
def keyless(tmp_path: Path) -> Iterator[Keyless]:
    forge = Forge()
    (tmp_path / "keys.json").write_text(forge.keys, encoding="ascii")
    arguments = ("--origin", ORIGIN)
    with (
        running_server(tmp_path, *arguments) as first,
        another_server(tmp_path, f"sqlite:{first.store}", *arguments) as second,
    ):
        yield Keyless(first, second, forge, program(tmp_path), tmp_path)


def test_a_job_has_the_role_and_the_organizations_of_its_rule(keyless: Keyless) -> None:
    """On every server, for the minutes that are left to its own token."""
    keyless.add("apply", "--preset", "github", "--role", "editor", *CLAIMS)
    short = keyless.short()

    for address in ("", keyless.second):
        me = keyless.me(short, address)
        assert (me["role"], me["allOrganizations"]) == ("editor", False)
        assert me["expires"]
    assert keyless.add_action(short, "greet").status_code == 200
    assert keyless.call(short, "POST", "/management/v1/orgs", json={"name": "x"}).status_code == 403
    assert keyless.call(short, "GET", "/reconciler/v1/trust").status_code == 403


def test_the_same_token_is_exchanged_again_unless_its_rule_says_once(keyless: Keyless) -> None:
    """Once means once on all servers. GitLab gives one token for a whole job."""
    keyless.add("apply", "--preset", "github", "--role", "editor", *CLAIMS)
    keyless.add("once", *OWN, "--role", "viewer", "--once")
    claims = github_claims(keyless.forge.now, iss="https://ci.example.com", sub="backup")
    once, again = keyless.forge.signed(claims), keyless.forge.token()

    answers = [keyless.exchange(once), keyless.exchange(once, keyless.second)]

    assert [answer.status_code for answer in answers] == [200, 400]
    assert [keyless.exchange(again).status_code for _ in range(3)] == [200] * 3
    other = keyless.forge.signed({**claims, "jti": "two"})
    assert keyless.exchange(other, keyless.second).status_code == 200


def test_tokens_end_with_their_rule_on_every_server(keyless: Keyless) -> None:
    """A rule of the same name that is made later does not bring them back."""
    rule = ("apply", "--preset", "github", "--role", "editor", *CLAIMS)
    keyless.add(*rule)
    short = keyless.short()
    assert keyless.me(short, keyless.second)["role"] == "editor"

    keyless.trust("remove", "apply")
    gone = [keyless.add_action(short, "late"), keyless.call(short, "GET", "/reconciler/v1/service")]
    keyless.add(*rule)
    back = keyless.add_action(short, "later")

    assert [answer.status_code for answer in (*gone, back)] == [401] * 3
    assert keyless.exchange(keyless.forge.token()).status_code == 200


def test_a_pull_request_has_a_viewer_whatever_the_rule_says(keyless: Keyless) -> None:
    """The branch and the workflow of pull_request_target are those of the default branch."""
    keyless.add("own", *OWN, "--role", "editor")
    events = ["pull_request", "pull_request_target", "workflow_run", "issue_comment", "merge_group"]
    claims = github_claims(keyless.forge.now, iss="https://ci.example.com", sub="backup")
    roles = []
    for event in [*events, "push"]:
        token = keyless.forge.signed({**claims, "event_name": event})
        roles.append(keyless.me(keyless.exchange(token).json()["access_token"])["role"])
    merge = keyless.forge.signed({**claims, "pipeline_source": "merge_request_event"})

    assert roles == [*["viewer"] * len(events), "editor"]
    assert keyless.me(keyless.exchange(merge).json()["access_token"])["role"] == "viewer"


def test_a_later_rule_for_other_organizations_takes_no_job_away(keyless: Keyless) -> None:
    """Their admins could make one, with a name and a role that come first."""
    keyless.add("plan", "--preset", "github", "--role", "viewer", *VIEWS)
    admin = keyless.first.token("admin")
    made = keyless.call(admin, "POST", "/management/v1/orgs", json={"name": "beta"})
    assert made.status_code == 200, made.text
    keyless.trust(
        "add", "a", "--keys", "keys.json", "--organization", "beta", "--preset", "github",
        "--role", "editor", *CLAIMS,
    )  # fmt: skip

    other = keyless.me(keyless.short())
    keyless.add("b", "--preset", "github", "--role", "editor", *CLAIMS)
    short = keyless.short()
    own = keyless.me(short)
    written = keyless.add_action(short, "greet").json()["id"]
    shown = keyless.call(short, "GET", f"/reconciler/v1/objects/{written}/history")

    assert (other["role"], own["role"]) == ("viewer", "editor")
    assert shown.json()["events"][0]["verified"]["rule"] == "b"


def test_a_key_of_idempotency_is_of_the_run(keyless: Keyless) -> None:
    """A renewed token, and a second attempt, get the first answer. Another run does not."""
    keyless.add("apply", "--preset", "github", "--role", "editor", *CLAIMS)
    first = keyless.add_action(keyless.short(), "greet", "key")

    renewed = keyless.add_action(keyless.short(jti="two", run_attempt="2"), "greet", "key")
    other = keyless.add_action(keyless.short(run_id="4712"), "greet", "key")

    assert first.status_code == 200
    assert renewed.json() == first.json()
    assert other.status_code == 409


def test_what_was_verified_stands_beside_what_is_claimed(keyless: Keyless) -> None:
    """In the history, by its own name; a client cannot write it."""
    keyless.add("apply", "--preset", "github", "--role", "editor", *CLAIMS)
    short = keyless.short()
    forged = '{"tree":"web","verified":"repository eve/identity"}'
    for token in (short, keyless.first.token("editor")):
        assert keyless.add_action(token, "greet", context=forged).status_code == 400
    made = keyless.add_action(short, "greet", context='{"tree":"web","actor":"eve"}').json()["id"]

    history = keyless.call(short, "GET", f"/reconciler/v1/objects/{made}/history").json()
    shown = keyless.run(
        "history",
        "Action/acme/greet",
        "--service",
        f"sqlite:{keyless.first.store}",
        "--format",
        "json",
    )

    (event,) = history["events"]
    assert event["writer"] == "trust:apply"
    assert event["context"] == {"tree": "web", "actor": "eve"}
    assert event["verified"] == {
        "rule": "apply",
        "issuer": GITHUB,
        "subject": "repo:acme/identity:environment:production",
        "repository": "acme/identity",
        "ref": "refs/heads/main",
        "run": "4711",
        "actor": "ada",
    }
    assert shown.code == 0, shown.all
    assert shown.json["events"][0]["verified"] == event["verified"]
    log = keyless.first.store.with_name("stderr.txt").read_text(encoding="utf-8")
    assert "a token was given to trust:apply" in log
    verified = keyless.run("store", "verify", "--service", f"sqlite:{keyless.first.store}")
    assert verified.code == 0, verified.all


def test_an_admin_makes_rules_from_elsewhere_within_its_organizations(keyless: Keyless) -> None:
    """By a token; an editor may not even list them."""
    there = ("--service", keyless.first.address)
    admin, editor = ({"RECONCILER_TOKEN": keyless.first.token(n)} for n in ("admin", "editor"))
    add = ("trust", "add", "own", *OWN, "--role", "viewer", "--keys", "keys.json", *there)

    made = keyless.run(*add, **admin)
    shown = keyless.run("trust", "show", "own", "--format", "json", *there, **admin)
    refused = [
        keyless.run("trust", "list", *there, **editor),
        keyless.run(*add, **editor),
        keyless.run("trust", "remove", "own", *there, **editor),
    ]
    listed = keyless.run("trust", "list", *there, **admin)
    removed = keyless.run("trust", "remove", "own", *there, **admin)

    assert (made.code, removed.code) == (0, 0), made.all
    assert shown.json["claims"] == {"sub": ["backup"]}
    assert shown.json["createdBy"] == "admin"
    assert [ran.code for ran in refused] == [7] * 3
    assert listed.out == "own  viewer  all  https://ci.example.com\n"


def test_a_test_of_a_token_says_what_differs(keyless: Keyless) -> None:
    """The answer of the endpoint never does."""
    keyless.add("apply", "--preset", "github", "--role", "editor", *CLAIMS)
    token = keyless.folder / "token.txt"
    where = ("--service", f"sqlite:{keyless.first.store}", "--origin", ORIGIN)

    token.write_text(keyless.forge.token(ref="refs/heads/x", aud="https://b.example"))
    differs = keyless.run("trust", "test", "token.txt", *where)
    token.write_text(keyless.forge.token())
    meets = keyless.run("trust", "test", "token.txt", *where)
    token.write_text(keyless.forge.token(iss=GITLAB))
    unknown = keyless.run("trust", "test", "token.txt", *where)
    token.write_text("hello")
    none = keyless.run("trust", "test", "token.txt", *where)

    assert differs.code == unknown.code == none.code == 1
    assert differs.out.splitlines() == [
        "- does not meet apply:",
        f"    its aud 'https://b.example' is not {ORIGIN} alone",
        '    ref is "refs/heads/x", and the rule accepts "refs/heads/main"',
    ]
    assert (meets.code, meets.out) == (0, "+ meets apply, which gives the role editor\n")
    assert unknown.out == f"No rule is for the issuer {GITLAB}.\n"
    assert "it is not a signed token in three parts" in none.err


def test_a_rule_and_its_tokens_end_in_time(keyless: Keyless) -> None:
    """The row of a rule is moved back, as if its time had come."""
    keyless.add("apply", "--preset", "github", "--role", "editor", "--expires", "1m", *CLAIMS)
    short = keyless.short()
    (keyless.folder / "token.txt").write_text(keyless.forge.token())
    with closing(sqlite3.connect(keyless.first.store)) as connection, connection:
        connection.execute("UPDATE trusts SET expires_at = created_at - 60000000")

    tested = keyless.run(
        "trust",
        "test",
        "token.txt",
        "--service",
        f"sqlite:{keyless.first.store}",
        "--origin",
        ORIGIN,
    )

    assert keyless.call(short, "GET", "/reconciler/v1/service").status_code == 401
    assert keyless.exchange(keyless.forge.token()).status_code == 400
    assert (tested.code, tested.out) == (1, "- does not meet apply:\n    the rule has ended\n")


GITLAB_CLAIMS = {
    "project_id": "9",
    "ref": "main",
    "ref_protected": "true",
    "pipeline_source": "push",
}


def words(preset: str, role: str, claims: Mapping[str, str]) -> list[str]:
    given = [word for name in claims for word in ("--claim", f"{name}={claims[name]}")]
    return ["--preset", preset, "--role", role, *given]


def without(claims: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {key: value for key, value in claims.items() if key != name}


REFUSED = {
    **{
        f"github editor without {name}": (words("github", "editor", without(RULE, name)), name)
        for name in RULE
        if name != "environment"
    },
    **{
        f"github viewer without {name}": (words("github", "viewer", without(RULE, name)), name)
        for name in ("repository_id", "repository_owner_id")
    },
    **{
        f"github editor of {event}": (
            words("github", "editor", {**RULE, "event_name": event}),
            "push, schedule, workflow_dispatch",
        )
        for event in ("pull_request", "pull_request_target", "workflow_run", "issue_comment",
                      "merge_group", "release")
    },
    **{
        f"gitlab editor without {name}": (
            words("gitlab", "editor", without(GITLAB_CLAIMS, name)),
            name,
        )
        for name in GITLAB_CLAIMS
    },
    "gitlab editor of a merge request": (
        words("gitlab", "editor", {**GITLAB_CLAIMS, "pipeline_source": "merge_request_event"}),
        "push, schedule, web",
    ),
    "gitlab editor of a branch that is not protected": (
        words("gitlab", "editor", {**GITLAB_CLAIMS, "ref_protected": "false"}),
        "must be one of true",
    ),
    "one push beside a pull request": (
        [*words("github", "editor", RULE), "--claim", "event_name=pull_request"],
        "push, schedule, workflow_dispatch",
    ),
    "the ref of a pull request": (
        words("github", "editor", {**RULE, "ref": "refs/pull/7/merge"}),
        "must not be of a pull request",
    ),
    "a number where GitHub has a text": (
        [*words("github", "editor", without(RULE, "repository_id")), "--claim",
         "repository_id:=1001"],
        "must be a text, as github has it",
    ),
    "sub alone at github": (words("github", "viewer", {"sub": "repo:a/b:ref:x"}), "repository_id"),
    "sub alone at gitlab": (words("gitlab", "viewer", {"sub": "project_path:a/b"}), "project_id"),
    "sub alone at github, no preset": (
        ["--issuer", GITHUB, "--role", "viewer", "--claim", "sub=x"],
        "must be github for this issuer",
    ),
    "an enterprise at github, no preset": (
        ["--issuer", f"{GITHUB}/acme", "--role", "viewer", "--claim", "sub=x"],
        "must be github for this issuer",
    ),
    "the preset of another forge": (
        ["--issuer", GITHUB, *words("gitlab", "viewer", GITLAB_CLAIMS)],
        "must be github for this issuer",
    ),
    "no claim": (["--issuer", "https://a.example", "--role", "viewer"], "must be 1 to 20 claims"),
    "a claim that is judged always": (
        ["--issuer", "https://a.example", "--role", "viewer", "--claim", "aud=x"],
        "aud is judged always",
    ),
    "no issuer": (["--role", "viewer", "--claim", "sub=x"], "no issuer is named"),
    "a plain issuer": (
        ["--issuer", "http://a.example", "--role", "viewer", "--claim", "sub=x"],
        "must be an https address",
    ),
    "an issuer with a query": (
        ["--issuer", "https://a.example/?x", "--role", "viewer", "--claim", "sub=x"],
        "must be an https address",
    ),
    "an issuer with a password": (
        ["--issuer", "https://a:b@c.example", "--role", "viewer", "--claim", "sub=x"],
        "issuer: ",
    ),
    "an admin": ([*OWN, "--role", "admin"], "'viewer', 'editor'"),
    "an unknown organization": ([*OWN, "--role", "viewer", "--organization", "nobody"], "names of"),
    "an authority that is none": (
        [*OWN, "--role", "viewer", "--issuer-ca", "keys.json"],
        "must be certificates in PEM",
    ),
    "a fraction": ([*OWN, "--role", "viewer", "--claim", "n:=1.5"], "not the value of a claim"),
    "a claim without a value": ([*OWN, "--role", "viewer", "--claim", "n"], "no name and value"),
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return the command line beside a store without rules."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "keys.json").write_text(Forge().keys, encoding="ascii")
    run = program(folder)
    assert run("token", "create", "--name", "x", "--role", "admin").code == 0
    return run


@each_row(("name", "row"), REFUSED.items())
def test_a_rule_that_accepts_too_much_is_refused(
    store: Run, name: str, row: tuple[list[str], str]
) -> None:
    arguments, reason = row
    ran = store("trust", "add", "rule", *arguments)

    assert ran.code == 1, ran.all
    assert reason in ran.err
    assert store("trust", "list").out == ""


def test_private_keys_are_refused_and_rules_are_named_once(store: Run, tmp_path: Path) -> None:
    private = tmp_path / "private.json"
    private.write_text('{"keys": [{"kty": "RSA", "kid": "1", "n": "x", "e": "AQAB", "d": "x"}]}')
    add = ("trust", "add", "Twice", *OWN, "--role", "viewer")
    refused = store(*add, "--keys", str(private))

    made = [store(*add), store("trust", "add", "twice", *OWN, "--role", "viewer")]
    machine = store("machine", "add", "TWICE", "--role", "viewer", "--key-out", "twice.json")

    assert "one of them is private" in refused.err
    assert (made[0].code, made[1].code, machine.code) == (0, 1, 1)
    assert "ignoring case" in made[1].err
    assert store("trust", "remove", "Twice").code == 0
    again = store("machine", "add", "twice", "--role", "viewer", "--key-out", "twice.json")
    assert again.code == 0, "the file of a machine that was not made would be in the way"
    assert store("trust", "remove", "twice").code == 1
    assert store("machine", "remove", "twice").code == 0


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_machine_signs_in_with_its_key_file(tmp_path: Path, algorithm: str) -> None:
    """By the reconciler's own login; with RS256 by the client of ZITADEL for Node.js, too."""
    run, port = program(tmp_path), a_free_port()
    address = f"http://127.0.0.1:{port}"
    arguments = ("--origin", address, "--listen", f"127.0.0.1:{port}")
    with running_server(tmp_path, *arguments) as server:
        service = ("--service", f"sqlite:{server.store}")
        file = tmp_path / "key.json"
        machine = ("backup", "--role", "viewer", "--organization", "acme", "--key-out", "key.json")
        made = run("machine", "add", *machine, "--algorithm", algorithm, *service)
        key = json.loads(file.read_text(encoding="utf-8"))
        planned = run("export", "--service", address, "--key-file", "key.json")
        if algorithm == "RS256":
            told = told_by_node("zitadel_login.js", {"key": json.dumps(key), "address": address,
                                                     "descriptors": "/dev/null"})  # fmt: skip
            headers = {"authorization": f"Bearer {told['token']}"}
            found = httpx.get(f"{address}/reconciler/v1/service", headers=headers).json()
            assert found["role"] == "viewer"
        removed = run("machine", "remove", "backup", *service)
        ended = run("export", "--service", address, "--key-file", "key.json")

    assert (made.code, planned.code, removed.code) == (0, 0, 0), made.all + planned.all
    assert file.stat().st_mode & 0o777 == 0o600
    assert key.keys() == {"type", "userId", "keyId", "key", "expirationDate"}
    assert ended.code == 7, ended.all


def test_two_servers_on_postgresql_share_rules_and_tokens(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """A token of one counts on the other, ends there with its rule, and is used once for both."""
    run, forge = program(tmp_path), Forge()
    (tmp_path / "keys.json").write_text(forge.keys, encoding="ascii")
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    with postgres.empty_store() as store:
        arguments = ("--seal-key-file", str(tmp_path / "seal.key"), "--origin", ORIGIN)
        rule = (*OWN, "--role", "viewer", "--once", "--keys", "keys.json", "--service", store)
        made = run("trust", "add", "once", *rule)
        claims = github_claims(forge.now, iss="https://ci.example.com", sub="backup")
        form = {**EXCHANGE, "subject_token": forge.signed(claims)}
        with (
            another_server(folders[0], store, *arguments) as first,
            another_server(folders[1], store, *arguments) as second,
        ):
            given = httpx.post(f"{first}/oauth/v2/token", data=form)
            again = httpx.post(f"{second}/oauth/v2/token", data=form)
            headers = {"authorization": f"Bearer {given.json()['access_token']}"}
            me = httpx.get(f"{second}/reconciler/v1/service", headers=headers)
            removed = run("trust", "remove", "once", "--service", store)
            ended = httpx.get(f"{second}/reconciler/v1/service", headers=headers)

    assert (made.code, removed.code) == (0, 0), made.all + removed.all
    said = (folders[0] / "stderr-of-another.txt").read_text(encoding="utf-8")
    assert "has no token yet" not in said, "a rule is enough to be called"
    assert (given.status_code, again.status_code) == (200, 400)
    assert (me.status_code, me.json()["role"], ended.status_code) == (200, "viewer", 401)
