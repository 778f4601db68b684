#!/usr/bin/env python3
"""Write manifests for what a Terraform state holds of a ZITADEL.

    terraform show -json > state.json
    python3 to_manifests.py state.json manifests

Resources of the types below become manifests, found by name when they are applied. Everything else
is named on stderr and left to Terraform. Only the fields of the tables are read: no client secret
and no other sensitive value is written. Exits with 1 where nothing was written. Needs Python 3.11
and no library.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Values = Mapping[str, Any]

# What a manifest calls an attribute, and the value that need not be written.
APPLICATION = {
    "redirect_uris": ("redirectUris", []),
    "response_types": ("responseTypes", ["OIDC_RESPONSE_TYPE_CODE"]),
    "grant_types": ("grantTypes", ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"]),
    "app_type": ("appType", "OIDC_APP_TYPE_WEB"),
    "auth_method_type": ("authMethodType", "OIDC_AUTH_METHOD_TYPE_BASIC"),
    "post_logout_redirect_uris": ("postLogoutRedirectUris", []),
    "version": ("version", "OIDC_VERSION_1_0"),
    "dev_mode": ("devMode", False),
    "access_token_type": ("accessTokenType", "OIDC_TOKEN_TYPE_BEARER"),
    "access_token_role_assertion": ("accessTokenRoleAssertion", False),
    "id_token_role_assertion": ("idTokenRoleAssertion", False),
    "id_token_userinfo_assertion": ("idTokenUserinfoAssertion", False),
    "clock_skew": ("clockSkew", "0s"),
    "additional_origins": ("additionalOrigins", []),
    "skip_native_app_success_page": ("skipNativeAppSuccessPage", False),
    # Of zitadel_application_v2 alone. A manifest that leaves them out leaves them as they are held.
    "back_channel_logout_uri": ("backChannelLogoutUri", ""),
    "login_version": ("loginVersion", None),
}
ACTION = {
    "script": ("script", None),
    "timeout": ("timeout", "20s"),
    "allowed_to_fail": ("allowedToFail", False),
}
JWT_PROVIDER = {
    "jwt_endpoint": ("jwtEndpoint", None),
    "issuer": ("issuer", None),
    "keys_endpoint": ("keysEndpoint", None),
    "header_name": ("headerName", None),
}
PROJECT = {
    "project_role_assertion": ("projectRoleAssertion", False),
    "project_role_check": ("projectRoleCheck", False),
    "has_project_check": ("hasProjectCheck", False),
    "private_labeling_setting": ("privateLabelingSetting", "PRIVATE_LABELING_SETTING_UNSPECIFIED"),
}
ROLE = {
    "display_name": ("displayName", None),
    "group": ("group", ""),
}
DURATIONS = {"clock_skew", "timeout"}
KINDS: Mapping[str, tuple[str, str, Mapping[str, tuple[str, Any]]]] = {
    "zitadel_org": ("Organization", "", {}),
    "zitadel_project": ("Project", "projects", PROJECT),
    "zitadel_application_oidc": ("OidcApplication", "applications", APPLICATION),
    "zitadel_project_role": ("ProjectRole", "roles", ROLE),
    "zitadel_action": ("Action", "actions", ACTION),
    "zitadel_org_idp_jwt": ("IdpJwtConfig", "identity-providers", JWT_PROVIDER),
}
IN_PROJECT = {"zitadel_application_oidc", "zitadel_project_role"}
# Newer resources of the same kind, by the attribute that has their configuration, if it is a block.
NEWER = {
    "zitadel_organization": ("zitadel_org", ""),
    "zitadel_project_v2": ("zitadel_project", ""),
    "zitadel_application_v2": ("zitadel_application_oidc", "oidc"),
}
TRIGGER = "zitadel_trigger_actions"  # several make one manifest: that of their flow
FLOWS = {
    "FLOW_TYPE_EXTERNAL_AUTHENTICATION": "EXTERNAL_AUTHENTICATION",
    "FLOW_TYPE_CUSTOMISE_TOKEN": "COMPLEMENT_TOKEN",
    "FLOW_TYPE_INTERNAL_AUTHENTICATION": "INTERNAL_AUTHENTICATION",
    "FLOW_TYPE_SAML_RESPONSE": "COMPLEMENT_SAML_RESPONSE",
}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


class StateError(Exception):
    """The state does not say what a manifest needs."""


@dataclass(frozen=True)
class Resource:
    """One entry of the state."""

    address: str
    mode: str
    type: str
    values: Values


def resources_in(module: Values) -> Iterator[Resource]:
    """Yield the resources of a module and of the modules in it."""
    for one in module.get("resources", ()):
        kind, values = as_first_known(one["type"], one["values"])
        yield Resource(one["address"], one.get("mode", "managed"), kind, values)
    for child in module.get("child_modules", ()):
        yield from resources_in(child)


def as_first_known(kind: str, values: Values) -> tuple[str, Values]:
    """Return type and values of a newer resource as those of the older one of its kind.

    An application of another type (``api``, ``saml``) has none, and stays what it is.
    """
    older, block = NEWER.get(kind, (kind, ""))
    if not block:
        return older, values
    if not values.get(block):
        return kind, values
    (config,) = values[block]
    login = login_version(config.get("login_version"))
    return older, {**values, **config, "login_version": login}


def login_version(blocks: Sequence[Values] | None) -> Values | None:
    """Return the login version as a manifest says it; None where the state has none."""
    for block in blocks or ():
        for version in block.get("login_v2") or ():
            address = (version or {}).get("base_uri")
            return {"loginV2": {"baseUri": address} if address else {}}
        if block.get("login_v1"):
            return {"loginV1": {}}
    return None


def with_organization(one: Resource, projects: Mapping[str, str]) -> Resource:
    """Return an application with the organization of its project, where it has none itself."""
    project = one.values.get("project_id")
    if one.values.get("org_id") or project not in projects:
        return one
    return replace(one, values={**one.values, "org_id": projects[project]})


def manifests_of(
    state: Values, organizations: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the text of each manifest by its path, and the addresses that were left out.

    ``organizations`` has names of organizations by id, for those that the state does not hold.
    """
    known = list(resources_in(state.get("values", {}).get("root_module", {})))
    projects = {
        one.values["id"]: one.values.get("org_id", "")
        for one in known
        if one.type == "zitadel_project"
    }
    known = [with_organization(one, projects) for one in known]
    names = {
        kind: {one.values["id"]: one.values["name"] for one in known if one.type == kind}
        for kind in ("zitadel_org", "zitadel_project", "zitadel_action")
    }
    names["zitadel_org"] |= organizations
    files: dict[str, str] = {}
    left_out = []
    triggers: dict[tuple[str, str], list[Resource]] = {}
    for one in known:
        if one.mode != "managed":
            continue
        if one.type == TRIGGER and is_owned(one):
            owner = owner_name(one, "org_id", names["zitadel_org"])
            triggers.setdefault((owner, FLOWS[one.values["flow_type"]]), []).append(one)
            continue
        if one.type not in KINDS or not is_owned(one):
            left_out.append(one.address)
            continue
        metadata = metadata_of(one, names)
        files[free_path(path_of(one.type, metadata), files)] = manifest(one, metadata)
    for (owner, flow), found in sorted(triggers.items()):
        path = path_of(TRIGGER, {"organization": owner, "name": flow})
        files[free_path(path, files)] = flow_manifest(owner, flow, found, names["zitadel_action"])
    return files, left_out


def flow_manifest(
    organization: str, flow: str, triggers: Sequence[Resource], actions: Mapping[str, str]
) -> str:
    """Return the manifest of a flow: the actions at each of its triggers, by their names.

    Raises:
        StateError: the state does not say the name of an action.
    """
    lines = [
        *(f"# {one.address}" for one in triggers),
        "apiVersion: reconciler/v1",
        "kind: ActionFlow",
        "metadata:",
        f"  organization: {quoted(organization)}",
        f"  name: {flow}",
        "spec:",
    ]
    for one in triggers:
        names = [action_name(one, each, actions) for each in one.values["action_ids"] or ()]
        lines += written(one.values["trigger_type"].removeprefix("TRIGGER_TYPE_"), names)
    return "\n".join([*lines, ""])


def action_name(one: Resource, identifier: str, names: Mapping[str, str]) -> str:
    """Return the name of an action at a trigger.

    Raises:
        StateError: the state does not say it.
    """
    if identifier in names:
        return names[identifier]
    raise StateError(
        f"{one.address}: the state has no name for the action {identifier}: add a data source for "
        "it to the configuration"
    )


def is_owned(one: Resource) -> bool:
    """Return whether a manifest can name the owner: without an id of one, nothing can."""
    return one.type == "zitadel_org" or bool(one.values.get("org_id"))


def metadata_of(one: Resource, names: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the names that tell a resource from every other.

    Raises:
        StateError: the state does not say the name of its organization or project.
    """
    metadata = {}
    if one.type != "zitadel_org":
        metadata["organization"] = owner_name(one, "org_id", names["zitadel_org"])
    if one.type in IN_PROJECT:
        metadata["project"] = owner_name(one, "project_id", names["zitadel_project"])
    return {**metadata, "name": one.values.get("role_key") or one.values["name"]}


def owner_name(one: Resource, key: str, names: Mapping[str, str]) -> str:
    """Return the name of the organization or project that owns a resource."""
    identifier = one.values.get(key)
    if identifier in names:
        return names[identifier]
    remedy = (
        f"give --organization {identifier}=NAME"
        if key == "org_id" and identifier
        else f"add a data source for it to the configuration (its {key} is {identifier})"
    )
    raise StateError(f"{one.address}: the state has no name for its {key}: {remedy}")


def path_of(kind: str, metadata: Mapping[str, str]) -> str:
    """Return the path that the example organization would give a manifest."""
    safe = {key: re.sub(r"[^\w.-]+", "-", text).strip(".") or "x" for key, text in metadata.items()}
    name = safe["name"]
    if kind == "zitadel_org":
        return f"{name}/organization.yaml"
    if kind == "zitadel_project":
        return f"{safe['organization']}/projects/{name}/project.yaml"
    below = f"projects/{safe['project']}/" if "project" in safe else ""
    folder = "action-flows" if kind == TRIGGER else KINDS[kind][1]
    return f"{safe['organization']}/{below}{folder}/{name}.yaml"


def free_path(path: str, taken: Mapping[str, str]) -> str:
    """Return the path, with a number where another name is written the same way."""
    lower = {one.lower() for one in taken}
    number, free = 1, path
    while free.lower() in lower:
        number += 1
        free = f"{path.removesuffix('.yaml')}-{number}.yaml"
    return free


def manifest(one: Resource, metadata: Mapping[str, str]) -> str:
    """Return the manifest of a resource as YAML."""
    kind, _, fields = KINDS[one.type]
    lines = [f"# {one.address}", "apiVersion: reconciler/v1", f"kind: {kind}", "metadata:"]
    lines += [f"  {key}: {quoted(text)}" for key, text in metadata.items()]
    spec = []
    for key, (name, default) in fields.items():
        value = one.values.get(key)
        if key in DURATIONS and value:
            value = seconds(value)
        if value is not None and value != default:
            spec += written(name, value)
    return "\n".join([*lines, *(["spec:", *spec] if spec else []), ""])


def written(name: str, value: object) -> list[str]:
    """Return the lines of one field."""
    if isinstance(value, list):
        return (
            [f"  {name}:", *(f"    - {quoted(item)}" for item in value)]
            if value
            else [f"  {name}: []"]
        )
    if isinstance(value, str) and is_plain_block(value):
        sign = "|" if value.endswith("\n") else "|-"
        return [
            f"  {name}: {sign}",
            *(f"    {line}" if line else "" for line in value.splitlines()),
        ]
    return [f"  {name}: {quoted(value)}"]


def is_plain_block(text: str) -> bool:
    """Return whether a block of YAML gives the text back as it is."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and not text.endswith("\n\n")
        and not lines[0].startswith((" ", "\t"))
        and lines[0] != ""
        and all(character == "\n" or character.isprintable() for character in text)
    )


def quoted(value: object) -> str:
    """Return a value in double quotes, or as the word that YAML has for it."""
    return json.dumps(value, ensure_ascii=False)


def seconds(duration: str) -> str:
    """Return a duration as manifests write it: ``500ms`` is ``0.5s``, ``1m0s`` is ``60s``."""
    parts = re.findall(r"([0-9.]+)(h|ms|us|µs|ns|m|s)", duration)
    if "".join(number + unit for number, unit in parts) != duration:
        return duration
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return f"{total:.9f}".rstrip("0").rstrip(".") + "s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the state, write the manifests, name what was left out."""
    parser = argparse.ArgumentParser(description="Write manifests for a Terraform state.")
    parser.add_argument("state", type=Path, help="the output of terraform show -json")
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--organization", action="append", default=[], metavar="ID=NAME")
    told = parser.parse_args(arguments)
    if told.folder.exists():
        return stop(f"{told.folder} is there already: name a folder that does not exist yet")
    try:
        state = json.loads(told.state.read_text(encoding="utf-8"))
        given = dict(one.split("=", 1) for one in told.organization)
        files, left_out = manifests_of(state, given)
    except OSError as failure:
        return stop(f"{told.state}: {failure.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError):
        return stop(
            f"{told.state} is not the output of terraform show -json, or an ID=NAME has no ="
        )
    except StateError as failure:
        return stop(str(failure))
    for path, text in files.items():
        target = told.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
    for address in left_out:
        print(f"left to Terraform: {address}", file=sys.stderr)
    if not files:
        return stop(
            "nothing was written: the state holds nothing of a ZITADEL that a manifest can declare"
        )
    return 0


def stop(problem: str) -> int:
    """Say what is wrong; nothing was written."""
    print(f"Error: {problem}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
