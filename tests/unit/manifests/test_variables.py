"""Variables of an environment in manifests: values, places, findings, limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import SourceLocation
from reconciler.manifests import loader
from reconciler.manifests import variables as module
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import Growth, Loaded, Manifest, Root, SourceFile
from reconciler.manifests.placeholders import Layers, VariableValue, expanded
from reconciler.manifests.variables import MAX_FAULTS, Variables
from reconciler.manifests.yaml_source import MAX_SCALAR
from reconciler.validation.desired import judge
from tests.rows import each_row
from tests.unit.manifests.trees import codes, write_tree

SHOP = """\
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: acme, project: shop, name: "${shopName}"}
spec:
  redirectUris: ["https://${host}/callback"]
  postLogoutRedirectUris: "${previews}"
  devMode: ${dev}
"""
VALUES: dict[str, Any] = {
    "shopName": "storefront",
    "host": "shop.example.com",
    "previews": ["https://a.example.com/", "https://b.example.com/"],
    "dev": False,
}
GREET = """\
apiVersion: reconciler/v1
kind: Action
metadata: {{organization: acme, name: greet{templated}}}
spec:
  script: |
    function greet(ctx, api) {{
      api.set('${{host}}', `${{ctx}}`);
    }}
"""


def layers(environment: str = "staging", **values: Any) -> Layers:
    """Return layers of variables whose values stand in lines 1, 2, 3... of reconciler.yaml."""
    return Layers(
        environment,
        {
            name: None
            if value is None
            else VariableValue(value, SourceLocation("reconciler.yaml", line, 9))
            for line, (name, value) in enumerate(values.items(), 1)
        },
        {name: SourceLocation("reconciler.yaml", line, 3) for line, name in enumerate(values, 1)},
        root="tree",
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(text: str, over: Layers, **files: str) -> Loaded:
    write_tree(Path("tree"), {"a.yaml": text, **files})
    return load(["tree"], None, over)


def spots(over: Loaded) -> list[tuple[str, int, int]]:
    return [
        (each.code, each.location.line, each.location.column)
        for each in judge(over).diagnostics
        if each.location is not None
    ]


def test_values_of_every_type_stand_in_their_places() -> None:
    found = loaded(SHOP, layers(**VALUES))

    [manifest] = found.manifests
    assert found.diagnostics == ()
    assert manifest.document["metadata"]["name"] == "storefront"
    assert manifest.document["spec"] == {
        "redirectUris": ["https://shop.example.com/callback"],
        "postLogoutRedirectUris": VALUES["previews"],
        "devMode": False,
    }


def test_a_finding_names_the_place_and_the_source_of_a_value() -> None:
    """To the column: of the text the variable is in, of the list it stands for, of a name."""
    wrong = {**VALUES, "host": "a b", "previews": ["x", "https://b/"], "shopName": "a\u200bb"}

    found = judge(loaded(SHOP, layers(**wrong))).diagnostics

    assert {(str(each.location), each.location.value_from) for each in found if each.location} == {
        ("tree/a.yaml:3:53", "shopName from reconciler.yaml:1:9"),
        ("tree/a.yaml:5:18", "host from reconciler.yaml:2:9"),
        ("tree/a.yaml:6:27", "previews from reconciler.yaml:3:9"),
    }


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        pytest.param('name: "${hots}"', ("VARIABLE-UNKNOWN", 4, 9), id="not declared"),
        pytest.param("name: ${later}", ("VARIABLE-NO-VALUE", 4, 9), id="no value here"),
        pytest.param("name: a ${later}", ("VARIABLE-NO-VALUE", 4, 9), id="no value here, inside"),
        pytest.param("name: x${previews}", ("VARIABLE-IN-TEXT", 4, 9), id="a list inside"),
        pytest.param("name: ${ host }", ("VARIABLE-NAME", 4, 9), id="blanks"),
        pytest.param("name: ${host", ("VARIABLE-NAME", 4, 9), id="no closing brace"),
        pytest.param("name: '${}'", ("VARIABLE-NAME", 4, 9), id="no name"),
        pytest.param('"${host}": x', ("VARIABLE-PLACE", 4, 3), id="a key"),
        pytest.param("name: a##X##", ("PLACEHOLDER-LEFT", 4, 9), id="another tool"),
        pytest.param("name: ${{ host }}", ("PLACEHOLDER-LEFT", 4, 9), id="a workflow"),
    ],
)
def test_a_variable_that_cannot_be_replaced_is_told_once(
    line: str, finding: tuple[str, int, int]
) -> None:
    """Nothing follows from it at the same place."""
    text = f"apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  {line}\n"
    over = layers(host="a", previews=[], later=None)

    found = [each for each in spots(loaded(text, over)) if each[0] != "VARIABLE-UNUSED"]

    assert finding in found
    assert [each for each in found if each[1:] == finding[1:]] == [finding]


@pytest.mark.parametrize("name", ["apiVersion", "kind"])
def test_a_variable_never_says_what_a_manifest_is(name: str) -> None:
    text = {"apiVersion": "reconciler/v1", "kind": "Organization", name: "${host}"}
    written = "".join(f"{key}: {value}\n" for key, value in text.items())

    found = judge(loaded(f"{written}metadata: {{name: acme}}\n", layers(host="a"))).diagnostics

    assert [each.code for each in found if each.is_error] == ["VARIABLE-PLACE"]


def test_no_variable_leads_to_a_script() -> None:
    text = GREET.format(templated="").partition("  script:")[0] + "  scriptFile: ${host}.js\n"

    assert codes(loaded(text, layers(host="a")).diagnostics) == ["VARIABLE-PLACE", "SCRIPT-MISSING"]


def test_words_name_what_was_meant_and_the_environment() -> None:
    text = SHOP.replace("${host}", "${hosst}${later}")

    found = loaded(text, layers("production", **VALUES, later=None)).diagnostics

    unknown, missing = sorted(found, key=lambda each: each.code != "VARIABLE-UNKNOWN")
    assert unknown.summary == "unknown variable hosst"
    assert "Did you mean host? " in unknown.remedy
    assert missing.summary == "variable later has no value in the environment production"
    assert "environments.production.variables" in missing.remedy


def test_without_a_configuration_every_variable_is_unknown() -> None:
    write_tree(Path("tree"), {"a.yaml": SHOP})

    assert codes(load(["tree"]).diagnostics) == ["VARIABLE-UNKNOWN"] * 4


def test_an_escape_is_the_text_it_stands_for() -> None:
    text = SHOP.replace("${shopName}", "$${shopName}")

    [manifest] = loaded(text, layers(**VALUES)).manifests

    assert manifest.document["metadata"]["name"] == "${shopName}"


@each_row(
    "written",
    [
        r'"\x24{shopName}"',
        r'"\u0024{shopName}"',
        r'"\U00000024{shopName}"',
        r'"$\x7bshopName}"',
        '"$\\\n  {shopName}"',
        '"$\\\r\n  {shopName}"',
    ],
)
def test_an_escape_can_spell_a_variable(written: str) -> None:
    """YAML resolves its own escapes first."""
    text = SHOP.replace('"${shopName}"', written).replace("${host}", "h")
    text = text.replace("${previews}", "h").replace("${dev}", "true").replace('"h"', "[]")

    [manifest] = loaded(text, layers(**VALUES)).manifests

    assert "${" not in text
    assert manifest.document["metadata"]["name"] == "storefront"


def test_a_variable_that_nothing_uses_is_told_at_its_declaration() -> None:
    [found] = loaded(SHOP, layers(**VALUES, more="x")).diagnostics

    assert (found.code, found.is_error) == ("VARIABLE-UNUSED", False)
    assert found.location == SourceLocation("reconciler.yaml", 5, 3)


@pytest.mark.parametrize(
    "paths", [pytest.param(["tree/inner"], id="a part"), pytest.param(["tree/a.yaml"], id="a file")]
)
def test_a_part_of_the_tree_does_not_show_what_is_unused(paths: list[str]) -> None:
    write_tree(Path("tree"), {"a.yaml": SHOP, "inner/b.yaml": SHOP})

    assert load(paths, None, layers(**VALUES, more="x")).diagnostics == ()


def test_a_variable_that_another_environment_uses_is_used() -> None:
    write_tree(Path("other"), {"x.yaml": SHOP.replace("${host}", "${more}")})
    over = layers(**VALUES, more="x", never="y")
    over = Layers(over.environment, over.variables, over.declarations, "", ("other",), "tree")

    assert [each.summary for each in loaded(SHOP, over).diagnostics] == [
        "variable never is not used"
    ]


def test_a_script_is_left_alone() -> None:
    found = loaded(GREET.format(templated=""), layers(host="a"))

    assert found.manifests[0].document["spec"]["script"].count("${") == 2
    assert codes(found.diagnostics) == ["SCRIPT-VARIABLE", "VARIABLE-UNUSED"]


def test_a_templated_script_has_its_variables_replaced() -> None:
    text = GREET.format(templated=", templated: true").replace("`${ctx}`", "`$${ctx}`")

    found = loaded(text, layers(host="shop"))

    [manifest] = found.manifests
    assert found.diagnostics == ()
    assert "api.set('shop', `${ctx}`);" in manifest.document["spec"]["script"]
    assert manifest.document["metadata"] == {"organization": "acme", "name": "greet"}


@pytest.mark.parametrize("folder", [pytest.param("", id="inline"), pytest.param("js", id="file")])
def test_places_in_a_templated_script_are_places_in_what_was_written(folder: str) -> None:
    """A value of two lines moves what follows it; a fault inside of it stands at its variable."""
    over = layers(host="x',\n'y", bad="return (")
    text = GREET.format(templated=", templated: true").replace("${ctx}", "${bad}${oops}")
    head, _, script = text.partition("  script: |\n")
    if folder:
        lines = "".join(line[4:] for line in script.splitlines(keepends=True))
        write_tree(Path("tree"), {"js/greet.js": lines})
        text = f"{head}  scriptFile: js/greet.js\n"

    found = judge(loaded(text, over)).diagnostics

    [unknown] = [each for each in found if each.code == "VARIABLE-UNKNOWN"]
    where = ("tree/js/greet.js", 2, 29) if folder else ("tree/a.yaml", 7, 33)
    assert unknown.location is not None
    assert unknown.location[:3] == where


def test_a_fault_in_a_value_inside_a_script_names_its_source() -> None:
    text = GREET.format(templated=", templated: true").replace("`${ctx}`", "1")

    [found] = judge(loaded(text, layers(host="x' y"))).diagnostics

    assert found.code == "ACTION-SCRIPT"
    assert found.location == SourceLocation("tree/a.yaml", 7, 16, "host from reconciler.yaml:1:9")


def test_a_placeholder_in_a_script_is_told_where_it_stands() -> None:
    script = "function greet() {\n  return '##X##';\n}\n"
    head = GREET.format(templated="").partition("  script:")[0]
    write_tree(Path("tree"), {"greet.js": script})
    inline = "".join(f"    {line}\n" for line in script.splitlines())

    outside = loaded(f"{head}  scriptFile: greet.js\n", layers()).diagnostics
    inside = loaded(f"{head}  script: |\n{inline}", layers()).diagnostics

    assert [str(each.location) for each in (*outside, *inside)] == [
        "tree/greet.js:2:11",
        "tree/a.yaml:7:15",
    ]


def test_a_text_that_grows_is_refused() -> None:
    """64 KiB of ``${a}`` would be a gigabyte."""
    text = SHOP.replace("${host}", "${host}" * 3000)

    found = loaded(text, layers(**{**VALUES, "host": "h" * 60_000}))

    assert spots(found) == [("VARIABLE-SIZE", 5, 18)]
    longest = "h" * (MAX_SCALAR - len("https:///callback"))
    for host, told in ((longest, []), (f"{longest}h", ["VARIABLE-SIZE"])):
        assert codes(loaded(SHOP, layers(**{**VALUES, "host": host})).diagnostics) == told


def test_what_all_variables_put_in_is_limited() -> None:
    organization = 'apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: "${list}"}\n'
    over = layers(list=["x" * 1000] * 1000)

    found = loaded("---\n".join([organization] * 100), over)

    assert codes(found.diagnostics) == ["VARIABLE-SIZE"]
    assert sum(isinstance(m.document["metadata"]["name"], list) for m in found.manifests) < 40


def test_the_size_of_a_value_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 100,000 items that a file uses 100,000 times would take an hour."""
    sizes: list[Any] = []

    def counted(value: object) -> int:
        sizes.append(value)
        return 8

    monkeypatch.setattr(module, "size_of", counted)

    loaded(SHOP.replace("devMode", "a: ['${previews}', '${previews}']\n  b"), layers(**VALUES))

    assert len(sizes) == len(VALUES)


def test_a_file_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file of 2,000 documents, once for each was five times all other work on them."""
    texts: list[str] = []

    def looked(text: str) -> bool:
        texts.append(text)
        return False

    monkeypatch.setattr(module, "may_have_left_over", looked)

    loaded("---\n".join([GREET.format(templated="")] * 20), layers())
    loaded("---\n".join([SHOP] * 20), layers(**VALUES))

    assert [text.count("apiVersion") for text in texts] == [20, 20]


def test_a_value_without_room_has_no_further_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name that stays behind is no list; the one finding about the size says why."""
    monkeypatch.setattr(loader, "Growth", lambda: Growth(1_500))
    shop = (
        "apiVersion: reconciler/v1\nkind: OidcApplication\n"
        "metadata: {{organization: acme, project: shop, name: shop{}}}\n"
        'spec: {{redirectUris: "${{many}}", devMode: {}}}\n'
    )
    text = "---\n".join(shop.format(number, number or "true") for number in range(4))
    many = [f"https://{number}.example.com/" for number in range(30)]

    found = judge(loaded(text, layers(many=many))).diagnostics

    told = sorted(each.code for each in found if each.is_error)
    assert told == [*["SCHEMA-TYPE"] * 3, "VARIABLE-SIZE"]
    assert all("devMode" in each.summary for each in found if each.code == "SCHEMA-TYPE")


def test_a_text_full_of_unknown_variables_is_told_to_a_limit() -> None:
    text = SHOP.replace("${host}", "".join(f"${{x{each}}}" for each in range(MAX_FAULTS + 1)))

    assert codes(loaded(text, layers(**VALUES)).diagnostics) == ["VARIABLE-UNKNOWN"] * MAX_FAULTS


def test_many_findings_of_a_document_are_told_to_a_limit() -> None:
    fields = "".join(f"  left{each}: '##X##'\n  ${{host}}{each}: a\n" for each in range(150))

    found = loaded(f"{SHOP}{fields}", layers(**VALUES)).diagnostics

    assert codes(found).count("PLACEHOLDER-LEFT") == MAX_FAULTS
    assert codes(found).count("VARIABLE-PLACE") == MAX_FAULTS


def test_findings_beyond_the_limit_are_counted_and_not_kept() -> None:
    """A file can have hundreds of thousands; to walk all before each takes minutes."""
    file = SourceFile("a.yaml", "spec: {a: '" + "${}" * 5 * MAX_FAULTS + "'}", Root(""), ())
    variables = Variables(ODD_LAYERS, Growth())
    [document] = file.read().documents

    variables.replace(Manifest(document, file))

    assert len(variables.findings) == MAX_FAULTS
    assert len(variables._told) == 1


def test_many_warnings_hide_no_error() -> None:
    fields = "".join(f"  left{each}: '##X##'\n" for each in range(MAX_FAULTS))

    found = loaded(f"{SHOP}{fields}  last: ${{none}}\n", layers(**VALUES)).diagnostics

    assert codes(found) == [*["PLACEHOLDER-LEFT"] * MAX_FAULTS, "VARIABLE-UNKNOWN"]


ODD_VALUES: dict[str, Any] = {
    "host": "shop.example.com",
    "empty": "",
    "number": 5,
    "flag": True,
    "items": ["a", 1],
    "hosts": ["${host}"],
    "dollar": "$",
    "brace": "{host}",
    "mark": "##X##",
}
PIECES = (
    "a", "b: ", "$", "{", "}", " ", "$$", "$${", "${", "${host}", "${empty}", "${number}",
    "${flag}", "${items}", "${hosts}", "${dollar}", "${brace}", "${mark}", "${none}", "${ host }",
    "${{ x }}",
)  # fmt: skip
NOWHERE = SourceLocation("reconciler.yaml", 1, 1)
ODD_LAYERS = Layers(
    variables={name: VariableValue(value, NOWHERE) for name, value in ODD_VALUES.items()}
)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_a_value_of_a_manifest_is_an_expanded_text(text: str) -> None:
    """What has no value in a text leaves its name, as the places in a script count on."""
    document = {"spec": {"field": f"{text} "}}
    file = SourceFile("a.yaml", json.dumps(document), Root(""), (), ODD_LAYERS.variables)

    Variables(ODD_LAYERS, Growth()).replace(Manifest(document, file))

    assert document["spec"]["field"] == expanded(f"{text} ", ODD_LAYERS.variables)


def test_a_variable_in_a_comment_is_not_used() -> None:
    file = SourceFile("a.yaml", "# ${host}\nspec: {a: '${flag}'}", Root(""), ())
    variables = Variables(ODD_LAYERS, Growth())
    [document] = file.read().documents

    variables.replace(Manifest(document, file))

    assert variables.used == {"flag"}
