"""The examples that split a tree over jobs: together their jobs are the whole tree."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from reconciler.cli.apply import apply_command
from reconciler.resources.ref import Shard, read_shard
from tests.acceptance.conftest import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
GITHUB, GITLAB, KUBERNETES = (
    yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
)
JOB, KUBERNETES_JOB = GITHUB["jobs"]["apply"], KUBERNETES["spec"]
(STEP,) = JOB["steps"]
(LINE,) = GITLAB["reconciler apply"]["script"]
(CONTAINER,) = KUBERNETES_JOB["template"]["spec"]["containers"]


def in_shell(command: str, environment: Mapping[str, str]) -> list[str]:
    """Return the words with which a shell would run the program."""
    told = subprocess.run(
        ["sh", "-c", f'reconciler() {{ printf "%s\\n" "$@"; }}\n{command.removeprefix("exec ")}'],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return told.stdout.splitlines()


def shard_in(words: list[str]) -> Shard:
    return read_shard(words[words.index("--shard") + 1])


def github() -> list[Shard]:
    indexes = JOB["strategy"]["matrix"]["shard"]
    form = JOB["env"]["RECONCILER_SHARD"]
    total = form.replace("${{ strategy.job-total }}", str(len(indexes)))
    return [read_shard(total.replace("${{ matrix.shard }}", str(index))) for index in indexes]


def gitlab() -> list[Shard]:
    total = GITLAB["reconciler apply"]["parallel"]
    variables = ({"CI_NODE_INDEX": str(i + 1), "CI_NODE_TOTAL": str(total)} for i in range(total))
    return [shard_in(in_shell(LINE, each)) for each in variables]


def kubernetes() -> list[Shard]:
    (*_, script) = CONTAINER["command"]
    indexes = range(KUBERNETES_JOB["completions"])
    return [shard_in(in_shell(script, {"JOB_COMPLETION_INDEX": str(each)})) for each in indexes]


@pytest.mark.parametrize("example", [github, gitlab, kubernetes], ids=lambda made: made.__name__)
def test_every_shard_is_somebodys_job(example: Any) -> None:
    """One that nobody has would not be applied, and nothing would tell."""
    shards = example()

    assert shards == [Shard(index, len(shards)) for index in range(1, len(shards) + 1)]
    assert len(shards) > 1


@pytest.mark.parametrize("command", [STEP["run"], LINE, CONTAINER["command"][-1]])
def test_every_flag_is_one_of_apply(command: str) -> None:
    """A flag that was renamed is renamed there, too."""
    flags = {flag for option in apply_command.params for flag in option.opts}

    assert {word for word in command.split() if word.startswith("--")} <= flags
