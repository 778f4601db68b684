"""The fields of the roles of projects.

The name of a role is its key, which applications read in tokens: it differs by case, and a role of
another key is another role.
"""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT
from reconciler.resources.fields import text
from reconciler.resources.kinds import IN_PROJECT, MAX_NAME, KindRow

_ROLES = f"{MANAGEMENT}/projects/{{projectId}}/roles"
_ROLE = f"{_ROLES}/{{roleKey}}"

ROW = KindRow(
    "A role of a project, which users are granted and tokens name by its key.",
    rank=2,
    schema="project-role",
    noun="role",
    plural="roles",
    renamable=False,
    has_id=False,
    name=text(
        "name",
        "Key of the role, as tokens and applications have it: upper and lower case differ.",
        shortest=1,
        longest=MAX_NAME,
    ),
    name_field="roleKey",
    owner=IN_PROJECT,
    fields=(
        text(
            "displayName", "Name of the role for people.", "Order manager",
            shortest=1, longest=MAX_NAME,
        ),
        text(
            "group", "Heading under which the console lists the role.", "Orders", longest=MAX_NAME
        )._replace(default=""),
    ),
    addresses={
        "ListProjectRoles": (f"POST {_ROLES}/_search",),
        "AddProjectRole": (f"POST {_ROLES}",),
        "UpdateProjectRole": (f"PUT {_ROLE}",),
        "RemoveProjectRole": (f"DELETE {_ROLE}",),
    },
    rest=frozenset({"roleKey"}),  # a key may have slashes, and any other character
)  # fmt: skip


def role_id(project_id: str, key: str) -> str:
    """Return the id under which a role is kept and shown: on the wire it has none.

    It has a digest of the key, because an id has neither every character nor the length of a key.
    """
    import hashlib

    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{project_id}-{digest}"
