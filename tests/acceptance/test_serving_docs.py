"""The files that show how to run a server say what the server understands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.serve import serve_command
from reconciler.service.transport.limits import KIB, Limits
from reconciler.service.transport.pages import PATHS
from tests.acceptance.conftest import ROOT
from tests.docs.session import blocks_of, matches, run_session
from tests.running import running_server

SERVING = ROOT / "docs" / "serving"
DOCKERFILE = (SERVING / "Dockerfile").read_text(encoding="utf-8")
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
FLAGS = {flag for option in serve_command.params for flag in option.opts}
VARIABLES = {option.envvar for option in serve_command.params if hasattr(option, "envvar")}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((SERVING / name).read_text(encoding="utf-8")))


def commands() -> Iterator[tuple[str, list[str]]]:
    yield "Dockerfile", json.loads(re.findall(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)[0])
    yield "compose.yaml", documents("compose.yaml")[0]["services"]["identity"]["command"]
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    yield "kubernetes.yaml", pod["containers"][0]["args"]


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=[name for name, _ in commands()]
)
def test_every_flag_is_one_of_serve(name: str, command: list[str]) -> None:
    """A flag that was renamed is renamed there, too."""
    assert command[0] == "serve"
    assert {word for word in command if word.startswith("--")} <= FLAGS


def test_only_examples_with_a_proxy_say_that_there_is_one() -> None:
    """The image alone may be reached without one: then the server has to warn."""
    behind_proxy = {name for name, command in commands() if "--behind-proxy" in command}

    assert behind_proxy == {"compose.yaml", "kubernetes.yaml"}


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "kubernetes.yaml"])
def test_every_variable_is_one_of_serve(name: str) -> None:
    """A variable that nobody reads would be a setting that does nothing."""
    text = (SERVING / name).read_text(encoding="utf-8")

    assert set(re.findall(r"RECONCILER_\w+", text)) <= VARIABLES


def test_probes_ask_where_health_is() -> None:
    """Ready where the store is asked, alive where it is not."""
    container = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"][0]

    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert {"/readyz", "/healthz"} <= PATHS


def test_the_example_runs_more_than_one_replica_without_rights() -> None:
    """On a file system that nobody can write to."""
    deployment = documents("kubernetes.yaml")[0]["spec"]
    pod = deployment["template"]["spec"]

    assert deployment["replicas"] > 1
    assert pod["securityContext"]["runAsNonRoot"]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_health_check_of_the_image_tells_a_server_from_none(tmp_path: Path) -> None:
    """Python asks; there is no curl in the image."""
    (written,) = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (.+)$", DOCKERFILE, re.MULTILINE)
    _, flag, script = json.loads(written)
    with running_server(tmp_path) as server:
        there = script.replace(":8080", f":{server.port}")
        healthy = subprocess.run([sys.executable, flag, there], check=False)
    gone = subprocess.run([sys.executable, flag, there], check=False, capture_output=True)

    assert (healthy.returncode, gone.returncode) == (0, 1)


def images() -> Iterator[str]:
    yield from re.findall(r"^ARG BASE=(.+)$", DOCKERFILE, re.MULTILINE)
    yield from (service["image"] for service in documents("compose.yaml")[0]["services"].values())
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    yield from (made["image"] for made in (*pod["initContainers"], *pod["containers"]))


def test_every_image_has_an_exact_tag() -> None:
    """A tag such as ``latest`` or ``3.12`` is another image tomorrow."""
    assert len(list(images())) == 5
    assert not [image for image in images() if not re.search(r":\d+\.\d+(\.\d+|-\w+)", image)]
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE}"}


def test_the_server_has_the_same_memory_everywhere() -> None:
    """What its own limits add up to fits in that."""
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]

    assert pod["containers"][0]["resources"]["limits"]["memory"] == "512Mi"
    assert documents("compose.yaml")[0]["services"]["identity"]["mem_limit"] == "512m"


def test_the_front_door_lets_in_what_the_server_takes() -> None:
    """Its connections end before the server ends them, which would lose the request just sent."""
    limits = Limits()
    (listener,) = documents("envoy.yaml")[0]["static_resources"]["listeners"]
    door = listener["filter_chains"][0]["filters"][0]["typed_config"]
    clusters = documents("envoy.yaml")[0]["static_resources"]["clusters"]
    options = "typed_extension_protocol_options"
    idle = [
        protocol["common_http_protocol_options"]["idle_timeout"]
        for cluster in clusters
        for protocol in cluster[options].values()
    ]
    connections = [
        each["circuit_breakers"]["thresholds"][0]["max_connections"] for each in clusters
    ]

    assert sum(connections) < limits.connections
    assert {float(time.rstrip("s")) <= limits.idle_seconds for time in idle} == {True}
    assert door["max_request_headers_kb"] * KIB == limits.head_bytes
    assert door["common_http_protocol_options"]["max_headers_count"] == limits.headers
    assert float(door["request_timeout"].rstrip("s")) > limits.body_seconds


def test_the_database_beside_it_is_out_of_reach() -> None:
    """On a network without a way out, without rights, with a password that is in no variable."""
    compose = documents("compose.yaml")[0]
    database = compose["services"]["database"]

    assert "ports" not in database
    assert [compose["networks"][name] for name in database["networks"]] == [{"internal": True}]
    assert database["environment"]["POSTGRES_PASSWORD_FILE"].startswith("/run/secrets/")
    assert database["environment"]["POSTGRES_HOST_AUTH_METHOD"] == "scram-sha-256"
    assert not [name for name in compose["services"]["identity"]["environment"] if "WORD" in name]
    for service in compose["services"].values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {"mem_limit", "pids_limit"} <= service.keys()


def test_secrets_of_the_example_are_kept_out_of_the_repository() -> None:
    """They lie beside the file that names them."""
    files = {Path(made["file"]) for made in documents("compose.yaml")[0]["secrets"].values()}

    assert {path.parts[0] for path in files} == {"secrets"}
    assert (SERVING / ".gitignore").read_text(encoding="utf-8") == "secrets/\n"


def test_the_calls_of_the_page_run_with_the_token_that_it_makes(tmp_path: Path) -> None:
    """Whoever copies them gets an organization and an action, and no refusal."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    _, calls = blocks_of(page)
    folder = tmp_path / "work"
    for place in (folder, tmp_path / "server"):
        place.mkdir()
    with running_server(tmp_path / "server") as server:
        known = {"RECONCILER_SERVICE": f"sqlite:{server.store}"}
        others = {"http://127.0.0.1:8080": server.address, "--name admin": "--name other"}
        others['"acme"'] = '"another"'  # this server has both names already
        words = [each.words for each in calls]
        for shown, other in others.items():
            words = [each.replace(shown, other) for each in words]
        printed = run_session(folder, words, known)

    assert len(printed) == len(calls) == 3
    for call, seen in zip(calls, printed, strict=True):
        assert matches(call.shown or "", seen), seen


def test_only_the_proxy_and_the_monitoring_reach_a_replica() -> None:
    """Both ways are closed but for what is named; the names are those of the pod."""
    *_, policy = documents("kubernetes.yaml")
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    rules = policy["spec"]

    assert policy["kind"] == "NetworkPolicy"
    assert rules["podSelector"]["matchLabels"] == pod["metadata"]["labels"]
    assert rules["policyTypes"] == ["Ingress", "Egress"]
    assert {port["port"] for rule in rules["ingress"] for port in rule["ports"]} == ports
    assert all(rule["from"] for rule in rules["ingress"])
    assert all(rule["to"] and rule["ports"] for rule in rules["egress"])


def allowed(path: str) -> bool:
    """Return whether a build sees a file: the last line of the list that fits a part decides."""
    seen = True
    parts = path.split("/")
    starts = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        if pattern.startswith("**/"):
            fits = any(fnmatch(part, pattern[3:]) for part in parts)
        else:
            fits = any(fnmatch(start, pattern) and "/" not in start for start in starts)
            fits = fits or pattern in starts
        seen = line.startswith("!") if fits else seen
    return seen


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".env",
        ".reconciler/identity.db",
        ".venv/bin/python",
        "docs/serving/secrets/pgpass",
        "identity.db",
        "key.pem",
        "reconciler/.reconciler/identity.db",
        "reconciler/service/identity.db-wal",
        "reconciler/service/seal-key",
        "reconciler/tls/server.key",
        "schemas/.env.local",
        "seal-key",
    ],
)
def test_no_key_and_no_store_gets_into_a_build(path: str) -> None:
    """What is not named is not seen, and what looks like one is not seen at all."""
    assert not allowed(path)


def test_a_build_sees_all_that_it_needs() -> None:
    """Every file that the image is made of, and nothing of the tests or documents."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    seen = {path for path in files if allowed(path)}
    needed = {*re.findall(r"\.ci/\w+\.txt", DOCKERFILE + PYPROJECT)}

    assert needed <= seen
    assert {path.split("/")[0] for path in seen} == {
        ".ci", "LICENSE", "README.md", "pyproject.toml", "reconciler", "schemas"
    }  # fmt: skip
    assert {path for path in files if path.startswith(("reconciler/", "schemas/"))} <= seen
