"""Every odd character that a service may hold, in a text and in a script, accepted at once."""

from __future__ import annotations

import re

import pytest
import yaml

from reconciler.service.domain.refusal import Refusal
from tests.acceptance.conftest import Place, write
from tests.acceptance.test_accept import accept, applied, commit, org, read_files

_ = applied  # a fixture
CHARACTERS = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA1), 0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010)]),
    *map(chr, [*range(0x2028, 0x2030), *range(0x2060, 0x2070), 0x3000, 0xFE0F, 0xFEFF, 0xFFFD]),
    *map(chr, [0xFFF9, 0xFFFE, 0xFFFF, 0xE000, 0xE0001, 0xE0020, 0x1F600, 0x10FFFF]),
    *map(chr, [0xD800, 0xDFFF]),
    *(
        "${",
        "$${",
        "${x}",
        "$${x}",
        "$$${x}",
        "$",
        "${env:HOME}",
        "{{",
        "}}",
        "<<",
        "%{",
        "#",
        ": ",
    ),
]
REFUSED = re.compile("[\x00-\x1f\x7f-\x9f]")
REFUSED_IN_SCRIPT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def _role(number: int, text: str = "Role") -> str:
    return f"""\
apiVersion: reconciler/v1
kind: ProjectRole
metadata: {{organization: acme, project: shop, name: r{number}}}
spec:
  displayName: {text} # who
"""


def _action(number: int) -> str:
    return f"""\
apiVersion: reconciler/v1
kind: Action
metadata: {{organization: acme, name: a{number}}}
spec:
  script: | # what
    function a{number}() {{}}
  timeout: 5s # long
"""


@pytest.mark.slow
def test_every_character_is_refused_or_reads_back(applied: Place) -> None:
    """In one run: a refusal of one object keeps no other back, and none ends in a traceback."""
    for number, _ in enumerate(CHARACTERS):
        write(applied.manifests / f"r{number}.yaml", _role(number))
        write(applied.manifests / f"a{number}.yaml", _action(number))
    commit(applied.folder)
    assert applied.run("apply", "--auto-approve").code == 0
    project = applied.direct.objects()["shop"]["id"]
    before = read_files(applied.manifests)
    taken: dict[str, str] = {}
    for number, character in enumerate(CHARACTERS):
        text = f"a{character}b"
        role = {"organization": org(applied), "projectId": project, "roleKey": f"r{number}"}
        try:
            applied.direct("UpdateProjectRole", **role, displayName=text, group="")
            taken[f"r{number}"] = text
        except Refusal:
            assert not character.isprintable()
        try:
            script = f"function a{number}() {{}} // {text}\n"
            applied.direct.change(f"a{number}", script=script)
            taken[f"a{number}"] = script
        except Refusal:
            assert not character.isprintable()

    done = accept(applied)

    assert "Traceback" not in done.err
    assert done.code == 1
    assert set(re.findall(r"error (ACCEPT-\w+)", done.err)) == {"ACCEPT-CHARACTER"}
    after = read_files(applied.manifests)
    for name, text in taken.items():
        pattern = REFUSED if name[0] == "r" else REFUSED_IN_SCRIPT
        file = f"{name}.yaml"
        is_refused = pattern.search(text) is not None
        assert (after[file] == before[file]) == is_refused, (name, text)
        if not is_refused:
            assert after[file].count(b"# ") >= 1
            spec = yaml.safe_load(after[file])["spec"]
            is_role = name[0] == "r"
            written = spec["displayName"].replace("$${", "${") if is_role else spec["script"]
            assert written == text, name
    again = accept(applied)
    assert "Nothing can be accepted." in again.out, again.out
    assert again.err.count(": error ACCEPT-") == done.err.count(": error ACCEPT-") > 0
