"""The fields of projects: flags that other tools set as well."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT
from reconciler.resources.fields import choice, flag
from reconciler.resources.kinds import IN_ORGANIZATION, KindRow

# Other tools set these flags as well, so each that a manifest leaves out stays as it is held.
_FLAGS = tuple(
    each._replace(left_as_held=True)
    for each in (
        flag(
            "projectRoleAssertion",
            "Adds the roles of the project to the tokens of its applications even if no scope "
            "asks for them.",
        ),
        flag(
            "projectRoleCheck",
            "Authorization required: only a user with a role in the project may sign in to its "
            "applications.",
        ),
        flag(
            "hasProjectCheck",
            "Project access required: only a user of an organization that owns the project or "
            "was granted it may sign in to its applications.",
        ),
        choice(
            "privateLabelingSetting",
            "The organization whose branding the login shows: that of the system, of the "
            "project's own organization, or of the user's.",
            "PRIVATE_LABELING_SETTING_UNSPECIFIED",
            "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY",
            "PRIVATE_LABELING_SETTING_ALLOW_LOGIN_USER_RESOURCE_OWNER_POLICY",
        ),
    )
)

_PROJECTS = f"{MANAGEMENT}/projects"

ROW = KindRow(
    "A project of an organization: the owner of applications, and who may use them.",
    rank=1,
    schema="project",
    noun="project",
    plural="projects",
    renamable=False,
    owner=IN_ORGANIZATION,
    fields=_FLAGS,
    has_state=True,
    addresses={
        "AddProject": (f"POST {_PROJECTS}",),
        "ListProjects": (f"POST {_PROJECTS}/_search",),
        "GetProjectByID": (f"GET {_PROJECTS}/{{id}}",),
        "UpdateProject": (f"PUT {_PROJECTS}/{{id}}",),
        "DeactivateProject": (f"POST {_PROJECTS}/{{id}}/_deactivate",),
        "ReactivateProject": (f"POST {_PROJECTS}/{{id}}/_reactivate",),
    },
)
