"""Fields of a project: who may sign in to its applications, and what they are told of the user.

Other tools set these flags as well, so each that a manifest leaves out stays as it is held.
"""

from __future__ import annotations

from reconciler.resources.fields import choice, flag

PROJECT_FLAGS = tuple(
    each._replace(left_as_held=True, since="0.2.0")
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
