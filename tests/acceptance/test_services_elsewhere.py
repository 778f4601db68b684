"""Every command against a service elsewhere: credentials, kinds, journals, and bad moments."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service_client.locks import ProcessIdentity
from tests.acceptance import zitadel
from tests.acceptance.conftest import Run, an_action, an_application, an_idp, write
from tests.acceptance.zitadel import ServeZitadel
from tests.fault_proxy import fault_proxy
from tests.http_clients import http_client
from tests.listening import listening
from tests.program import started
from tests.running import Server, running_server
from tests.zitadel.generations import only_from_4
from tests.zitadel.stand_in import IAM, FakeZitadel

SOME = 1000
WRONG = "rct_that-nobody-made"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with the organization acme and its project shop."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def manifests(tree: Path) -> Path:
    """Return manifests of applications and actions of the organization acme."""
    write(tree / "web.yaml", an_application("web"))
    write(tree / "greet.yaml", an_action())
    return tree


def at(server: Server, name: str = "editor") -> dict[str, str]:
    """Return the environment that names a service and a token."""
    return {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token(name)}


def test_a_run_against_a_server_converges(run: Run, manifests: Path, server: Server) -> None:
    """Plan, apply, plan empty, with the token of an editor of one organization."""
    here = at(server)
    planned = run("plan", "--detailed-exitcode", **here)
    assert planned.code == 2, planned.all
    assert "SECRET-NO-SINK" in planned.err

    applied = run("apply", "--auto-approve", "--secrets-to", "file:secrets", **here)

    assert applied.code == 0, applied.all
    assert "2 created" in applied.out
    assert "0 remaining" in applied.out
    assert run("plan", "--detailed-exitcode", **here).code == 0
    (secret,) = (manifests.parent / "secrets").glob("*.json")
    assert len(json.loads(secret.read_text(encoding="utf-8"))["client_secret"]) == 64
    told = run("outputs", "--format", "json", **here).json["applications"]
    assert [bool(one["client_id"]) for one in told] == [True]
    (journal,) = (manifests.parent / ".reconciler").glob("apply-*-default.jsonl")
    assert journal.read_bytes() == b""
    assert not (manifests.parent / ".reconciler" / "identity.db").exists()


def test_a_secret_with_nowhere_to_go_blocks_an_apply(
    run: Run, manifests: Path, server: Server
) -> None:
    """There is no default place for the secrets of a service elsewhere."""
    applied = run("apply", "--auto-approve", **at(server))

    assert applied.code == 3
    assert "--secrets-to" in applied.err


def test_credentials_that_do_not_do_are_told_apart(
    run: Run, manifests: Path, server: Server, tmp_path: Path
) -> None:
    """Missing, wrong, not enough: exit code 7 each time, and what to do about it."""
    address = {"RECONCILER_SERVICE": server.address}
    missing = run("plan", **address)
    wrong = run("plan", **address, RECONCILER_TOKEN=WRONG)
    viewer = run("apply", "--auto-approve", "--secrets-to", "file:s", **at(server, "viewer"))

    assert (missing.code, wrong.code, viewer.code) == (7, 7, 7)
    assert "RECONCILER_TOKEN" in missing.err
    assert "the token is not known to this service" in wrong.err
    assert WRONG not in wrong.all
    assert "org.lease" in viewer.err
    assert run("plan", **at(server, "viewer")).code == 0


def test_a_proxy_is_gone_through_where_it_is_asked_for_and_the_way_is_encrypted(
    run: Run, manifests: Path, server: Server
) -> None:
    """The proxy of these runs does not answer. A token in the clear would not even reach it."""
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:1"}

    local = run("plan", "--use-proxy", **at(server), **proxy)
    through = run("plan", "--use-proxy", "--service", "https://localhost:1", **at(server), **proxy)
    wrong = run(
        "plan",
        "--use-proxy",
        "--service",
        "https://localhost:1",
        **at(server),
        HTTPS_PROXY="socks5://127.0.0.1:1",
    )

    assert local.code == 0, local.all
    assert (through.code, "cannot be reached through the proxy" in through.err) == (1, True)
    assert (wrong.code, "not the address of an HTTP proxy" in wrong.err) == (1, True)


def test_a_token_can_come_from_a_private_file(
    run: Run, manifests: Path, server: Server, tmp_path: Path
) -> None:
    """A file wins over the environment, and one that others can read is refused."""
    file = tmp_path / "token"
    file.write_text(server.token() + "\n", encoding="ascii")
    file.chmod(0o600)
    here = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": WRONG}

    assert run("plan", "--token-file", "token", **here).code == 0
    file.chmod(0o644)
    refused = run("plan", "--token-file", "token", **here)
    assert refused.code == 1
    assert "chmod 600" in refused.err
    both = run("plan", "--token-file", "token", "--key-file", "key", **here)
    assert both.code == 1


@pytest.mark.parametrize(
    "address",
    ["http://id.example.com", "https://user:geheim@id.example.com", "https://id.example.com/?a=b"],
)
def test_an_address_that_endangers_the_token_is_refused(
    run: Run, manifests: Path, address: str
) -> None:
    """Before anything is sent."""
    refused = run("plan", RECONCILER_SERVICE=address, RECONCILER_TOKEN=WRONG)

    assert refused.code == 1
    assert "geheim" not in refused.all


def test_there_is_no_flag_that_takes_a_token(run: Run) -> None:
    """Arguments are seen by every user of the machine."""
    assert run("plan", "--token", "rct_x").code == 1
    assert "--token " not in run("plan", "--help").out


def test_a_service_that_is_not_there_is_told_at_once(run: Run, manifests: Path) -> None:
    """A wrong port is the most common mistake."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    began = time.monotonic()

    told = run("plan", RECONCILER_SERVICE=f"http://127.0.0.1:{port}", RECONCILER_TOKEN=WRONG)

    assert told.code == 1
    assert "cannot be reached: connection refused, no server listens there" in told.err
    assert time.monotonic() - began < 10


def test_two_applies_exclude_each_other(run: Run, manifests: Path, server: Server) -> None:
    """The lease is the service's, so it holds between machines."""
    other = ProcessIdentity("ben", "build-7", "b", 42, "s", "n")
    with http_client(server.address, server.token(), holder=other) as client:
        client.acquire(["acme"])
        second = run("apply", "--auto-approve", "--secrets-to", "file:s", **at(server))
        client.release()

    assert second.code == 6
    assert "locked by ben on build-7" in second.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_between_batches_and_the_next_apply_goes_on(
    run: Run, tree: Path, server: Server, number: signal.Signals
) -> None:
    """Over HTTP batches are small, so it does not take long."""
    write(tree / "a.yaml", "\n---\n".join(an_action(f"a{index}") for index in range(SOME)))
    applying = started(tree.parent, "apply", "--auto-approve", **at(server))
    wait_for_events(server, 100)
    applying.send_signal(number)
    _, err = applying.communicate(timeout=30)

    assert applying.returncode == 128 + number
    assert "Stopping" in err
    assert "Traceback" not in err
    assert server.event_count() < SOME
    again = run("apply", "--auto-approve", **at(server))
    assert again.code == 0, again.all
    assert names(server) == SOME


def wait_for_events(server: Server, count: int) -> None:
    deadline = time.monotonic() + 60
    while server.event_count() < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def names(server: Server) -> int:
    """Return how many actions there are; no two have the same name."""
    made = [event for event in server.events() if "action" in event.type]
    found = [json.loads(event.payload)["name"] for event in made]
    assert len(set(found)) == len(found)
    return len(found)


# A service of another kind.


def test_drift_on_a_zitadel_says_what_it_cannot_judge(
    a_zitadel: ServeZitadel, run: Run, manifests: Path
) -> None:
    """Without a history a missing object was never applied, or somebody removed it."""
    with a_zitadel() as (_, here):
        assert run("apply", "--auto-approve", "--secrets-to", "file:s", **here).code == 0
        in_step = run("drift", "--detailed-exitcode", **here)
        write(manifests / "other.yaml", an_action("other"))
        missing = run("drift", "--detailed-exitcode", **here)
        told = run("drift", "--format", "json", **here).json
        markdown = run("drift", "--format", "markdown", **here)

    assert (in_step.code, missing.code) == (0, 0)
    for report in (in_step.out, markdown.out):
        assert "This service keeps no history and no record of trees" in report
        assert "  - which tree or tool an object belongs to" in report
        assert "  - whether a difference was made on the service or in the manifests" in report
        assert "  - what was removed" in report
        assert "  - whether an object was deleted and made again" in report
    assert told["unknown"] == ["owners", "origins", "removals", "replacements", "undone"]
    assert in_step.out.endswith("\nNo drift found.\n")
    assert "  Action acme/other  (not held: never applied, or removed)\n" in missing.out
    assert missing.out.endswith("\nNo drift found; 1 cannot be judged.\n")
    assert (told["history"], told["unjudged"][0]["reason"]) == (False, "no_history")


def test_a_run_against_a_zitadel_converges(
    a_zitadel: ServeZitadel, run: Run, manifests: Path
) -> None:
    """Nobody says what it is, and its lists show what was written."""
    with a_zitadel() as (fake, here):
        applied = run("apply", "--auto-approve", "--secrets-to", "file:s", **here)
        assert applied.code == 0, applied.all
        assert run("plan", "--detailed-exitcode", **here).code == 0

    (made,) = fake.named("apps", "web")
    (secret,) = (manifests.parent / "s").glob("*.json")
    assert (
        json.loads(secret.read_text(encoding="utf-8"))["client_secret"]
        == (fake.secrets[made["id"]])
    )
    assert (manifests.parent / ".reconciler" / "lock-zitadel-277").exists()
    assert list((manifests.parent / ".reconciler").glob("apply-zitadel-277-*.jsonl"))


def test_a_provider_that_the_console_changed_is_planned_and_set_right(
    a_zitadel: ServeZitadel, run: Run, tree: Path
) -> None:
    """Keys of an attacker, written with the calls that the console uses, and a deletion."""
    write(tree / "partner.yaml", an_idp(audience=""))  # not every server knows it
    with a_zitadel() as (fake, here):
        assert run("apply", "--auto-approve", **here).code == 0
        (held,) = fake.named("idps", "partner")
        held["config"]["jwt"]["keysEndpoint"] = "https://evil.example.com/keys"
        fake.things.touch("idps", held)
        planned = run("plan", "--detailed-exitcode", **here)
        drifted = run("drift", **here)
        repaired = run("apply", "--auto-approve", **here)
        in_step = run("plan", "--detailed-exitcode", **here)
        fake.providers.remove({"id": held["id"]}, fake.organization)
        removed = run("plan", "--detailed-exitcode", **here)

    assert planned.code == 2, planned.all
    assert "https://evil.example.com/keys" in planned.out
    assert "  IdpJwtConfig acme/partner\n" in drifted.out, drifted.all
    assert (repaired.code, in_step.code) == (0, 0), repaired.all
    assert held["config"]["jwt"]["keysEndpoint"] == "https://login.partner.example.com/keys"
    assert removed.code == 2
    assert "+ IdpJwtConfig acme/partner" in removed.out, removed.out


def test_an_audience_goes_all_the_way_to_our_service(run: Run, tree: Path, server: Server) -> None:
    """Written, read back, changed, emptied and removed; where there is none, the plan warns."""
    here = at(server)
    write(tree / "partner.yaml", an_idp())
    assert run("apply", "--auto-approve", **here).code == 0
    in_step = run("plan", "--detailed-exitcode", **here)
    write(tree / "partner.yaml", an_idp(audience="us"))
    assert run("apply", "--auto-approve", **here).code == 0
    write(tree / "partner.yaml", an_idp(audience=""))
    emptied = run("plan", **here)
    assert run("apply", "--auto-approve", **here).code == 0
    last = run("plan", "--detailed-exitcode", **here)

    assert in_step.code == 0, in_step.all
    assert "PLAN-NO-AUDIENCE" not in in_step.all
    assert "audience-unchecked" in emptied.out, emptied.all
    assert emptied.all.count("PLAN-NO-AUDIENCE: 1 JWT identity provider(s)") == 1
    assert last.code == 0, last.all
    stored = [json.loads(event.payload).get("spec", {}) for event in server.events()]
    said = [spec.get("audience") for spec in stored if "jwtEndpoint" in spec]
    assert said == ["https://login.acme.example.com", "us", ""]


def test_a_zitadel_knows_no_owners(a_zitadel: ServeZitadel, run: Run, manifests: Path) -> None:
    """Nothing is pruned as this tree's, nothing can be taken over, and a delete says so."""
    with a_zitadel() as (fake, service):
        here = {"RECONCILER_SECRETS_TO": "file:s", **service}
        assert run("apply", "--auto-approve", **here).code == 0
        fake.put("actions", name="old", script="function old(ctx, api) {}")

        pruned = run("plan", "--prune", "--detailed-exitcode", **here)
        taken = run("plan", "--take-over", "Action/acme/greet", "--detailed-exitcode", **here)
        deleted = run("apply", "--auto-approve", "--prune-unmanaged", **here)

    assert pruned.code == 0, pruned.all
    assert "--prune-unmanaged would delete it" in pruned.out
    assert taken.code == 3, taken.all
    assert "GUARD-TAKE-OVER" in taken.err
    assert "does not record owners" in taken.err
    assert deleted.code == 0, deleted.all
    assert "PLAN-NO-OWNERS" in deleted.err
    assert (fake.named("actions", "old"), len(fake.held["actions"])) == ([], 1)


def test_where_no_secret_is_kept_the_sink_is_the_witness(
    a_zitadel: ServeZitadel, run: Run, manifests: Path
) -> None:
    """A secret that cannot be had again is told once as an error, then as a warning."""
    here = {"RECONCILER_SECRETS_TO": "file:s"}
    with a_zitadel() as (fake, service):
        here |= service
        crashed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4", **here)
        assert crashed.code == -signal.SIGKILL
        (made,) = fake.named("apps", "web")
        lost = fake.secrets[made["id"]]

        told = run("apply", "--auto-approve", **here)
        again = run("apply", "--auto-approve", **here)
        required = run("apply", "--auto-approve", "--require-secrets", **here)
        untouched = fake.secrets[made["id"]]
        replaced = run("apply", "--auto-approve", "--rotate-missing", "acme/shop/web", **here)
        last = run("apply", "--auto-approve", "--require-secrets", **here)

    assert (told.code, again.code, required.code, replaced.code, last.code) == (5, 0, 5, 0, 0)
    assert "error SECRET-NOT-IN-SINK" in told.all
    assert "warning SECRET-NOT-IN-SINK" in again.all
    assert "--rotate-missing OidcApplication/acme/shop/web" in again.all
    assert "SECRET-NOT-IN-SINK" not in last.all
    (secret,) = (manifests.parent / "s").glob("*.json")
    delivered = json.loads(secret.read_text(encoding="utf-8"))["client_secret"]
    assert delivered == fake.secrets[made["id"]] != lost
    assert (untouched, len(fake.held["apps"])) == (lost, 1)


def test_what_a_killed_run_could_not_tell_is_told_by_the_next(
    a_zitadel: ServeZitadel, run: Run, manifests: Path
) -> None:
    """The sink still has the secret before; only the journal knows that it ended."""
    with a_zitadel() as (_, service):
        here = {"RECONCILER_SECRETS_TO": "file:s", **service}
        assert run("apply", "--auto-approve", **here).code == 0
        rotate = ("secret", "rotate", "acme/shop/web", "--auto-approve")
        run(*rotate, RECONCILER_CRASHPOINT="C6", **here)
        write(manifests / "other.yaml", an_action("other"))
        killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C2", **here)
        told = run("apply", "--auto-approve", **here)
        last = run("apply", "--auto-approve", **here)
        run(*rotate, RECONCILER_CRASHPOINT="C6", **here)
        rotated = run(*rotate, **here)
        nothing = run("apply", "--auto-approve", **here)

    assert (killed.code, told.code, last.code) == (-signal.SIGKILL, 5, 0), told.all
    assert "error SECRET-NOT-IN-SINK" in told.all
    assert (rotated.code, nothing.code) == (0, 0), nothing.all


def test_nothing_is_replaced_where_another_machine_may_have_made_it(
    a_zitadel: ServeZitadel, run: Run, manifests: Path
) -> None:
    """Killed before anything was sent; whose object has the name cannot be known there."""
    with a_zitadel() as (fake, service):
        here = {"RECONCILER_SECRETS_TO": "file:s", **service}
        run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C2", **here)
        project = fake.named("projects", "shop")[0]["id"]
        config = {"clientId": "7", "redirectUris": ["https://web.example.com/cb"]}
        fake.put("apps", name="web", project=project, oidcConfig=config)

        told = run("apply", "--auto-approve", **here)
        again = run("apply", "--auto-approve", **here)

        assert fake.secrets == {}
    assert (told.code, again.code) == (5, 0), told.all + again.all
    assert "error SECRET-NOT-IN-SINK" in told.all


@pytest.mark.parametrize("sink", ["file:s", "exec:/bin/true"])
def test_a_secret_in_a_lost_answer_is_reported_and_not_replaced(
    a_zitadel: ServeZitadel, run: Run, manifests: Path, sink: str
) -> None:
    """The object that is found after it may be another run's; not every sink can tell."""

    def choose(first: bytes) -> str:
        return "reset after" if first.startswith(b"POST") and b"/apps/oidc" in first else ""

    with a_zitadel() as (fake, service), fault_proxy(service["RECONCILER_SERVICE"], choose) as line:
        here = {**service, "RECONCILER_SERVICE": line.address, "RECONCILER_SECRETS_TO": sink}
        told = run("apply", "--auto-approve", **here)
        again = run("apply", "--auto-approve", **here)

    assert (told.code, again.code) == (5, 0), told.all + again.all
    assert "error SECRET-NOT-IN-SINK" in told.all
    assert "--rotate-missing OidcApplication/acme/shop/web" in told.all
    assert (len(fake.held["apps"]), fake.replaced) == (1, 0)


def test_a_list_that_cannot_be_emptied_is_named_after_apply(
    run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not tell its generation says yes and keeps it; the run says which."""
    moved = only_from_4()._replace(path="/elsewhere")
    monkeypatch.setattr("tests.zitadel.stand_in.only_from_4", lambda: moved)
    write(tree / "web.yaml", an_application("web", redirectUris=[]))
    with zitadel.a_zitadel() as (fake, here):
        project = fake.named("projects", "shop")[0]["id"]
        config = {"clientId": "7", "redirectUris": ["https://web.example.com/cb"]}
        fake.put("apps", name="web", project=project, oidcConfig=config)
        applied = run("apply", "--auto-approve", "--secrets-to", "file:s", **here)

    assert applied.code == 5, applied.all
    assert "redirectUris" in applied.out.partition("APPLY-REMAINING")[2]


def test_who_signs_in_with_a_key_file_needs_no_token(
    run: Run, manifests: Path, tmp_path: Path
) -> None:
    """Discovery, one signed form, and then the token that came back."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    file = tmp_path / "key.json"
    fields = {"userId": "7", "keyId": "9", "key": key.decode()}
    file.write_text(json.dumps(fields), encoding="utf-8")
    file.chmod(0o600)
    fake = FakeZitadel()
    fake.put("projects", name="shop")
    app = fake.app()

    async def discovery(request: Request) -> Response:
        here = str(request.base_url).rstrip("/")
        return JSONResponse({"issuer": here, "token_endpoint": f"{here}/oauth/v2/token"})

    async def token(request: Request) -> Response:
        assert b"assertion=" in await request.body()
        return JSONResponse({"access_token": IAM, "token_type": "Bearer", "expires_in": 43199})

    app.routes.append(Route("/.well-known/openid-configuration", discovery))
    app.routes.append(Route("/oauth/v2/token", token, methods=["POST"]))
    with listening(app) as address:
        planned = run("plan", "--key-file", "key.json", RECONCILER_SERVICE=address)

    assert planned.code == 0, planned.all
    assert "2 to create" in planned.out
