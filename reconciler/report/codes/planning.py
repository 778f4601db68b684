"""Codes of what is decided beside the service: plans, guards and drift."""

from __future__ import annotations

from reconciler.report.codes.code import Code

PLANS = (
    Code(
        "PLAN-BREAK-GLASS-UNUSED",
        "--break-glass names an object that the plan does not touch",
        "The flag allows something that is not planned. The name may be misspelt.",
        "Correct the name, or leave the flag out.",
    ),
    Code(
        "PLAN-CAUSES-NOT-READ",
        "some histories were not read",
        "For some objects the plan names the last writer for all fields together instead of "
        "each field's own. What is planned is the same.",
        "`reconciler history REF` shows who changed an object.",
    ),
    Code(
        "PLAN-DEPRECATED-OPERATION",
        "the plan uses an operation that may be removed",
        "A future version of the service may no longer have the operation. Nothing is wrong today.",
        "Keep it in mind before the service is upgraded.",
    ),
    Code(
        "PLAN-EXPIRED",
        "the saved plan has expired",
        "A saved plan can be applied for a limited time (--expires), because the service changes.",
        "Make a new one with `reconciler plan --out FILE`.",
    ),
    Code(
        "PLAN-ID-NOT-HELD",
        "metadata.id names no object",
        "The service holds nothing under that id in the organization of the manifest.",
        "Correct the id, or leave it out to create a new object.",
    ),
    Code(
        "PLAN-ID-OTHER-OBJECT",
        "metadata.id names another kind of object",
        "The id belongs to an object of another kind, organization or project. Objects cannot "
        "move.",
        "Correct the id, or leave it out to create a new object.",
    ),
    Code(
        "PLAN-NAME-TAKEN",
        "another object has the name",
        "The manifest gives its object a name that an object has which no manifest declares.",
        "Choose another name, or declare the other object under a different name.",
    ),
    Code(
        "PLAN-NAMES-SWAPPED",
        "resources take each other's names",
        "Each needs a name that another one of them still has, so none of them can begin.",
        "Give one of them a third name, apply, then give it the final name.",
    ),
    Code(
        "PLAN-NO-OWNERS",
        "the service does not record owners",
        "--prune-unmanaged deletes what no manifest declares. This service cannot say whether "
        "another tree or tool looks after such an object.",
        "Make sure that every deleted object of the plan may go.",
    ),
    Code(
        "PLAN-NOT-RENAMABLE",
        "organizations and projects are not renamed",
        "The manifest writes the name differently from the service.",
        "Write the name as the service has it.",
    ),
    Code(
        "PLAN-ORGANIZATION-LEFT",
        "an organization is no longer named by any manifest",
        "This tree applied objects there before. What is left there is neither compared nor "
        "deleted.",
        "Declare the Organization again to see its objects in the plan.",
    ),
    Code(
        "PLAN-OTHER-TREE",
        "unchanged objects belong to another tree",
        "Another tree is the owner of objects that this tree declares, too. When the other tree "
        "stops to declare them, its --prune deletes them.",
        "Let one tree declare each object, or become the owner with --take-over REF.",
    ),
    Code(
        "PLAN-SECOND-OBJECT",
        "a second object with the same content",
        "A new object would have the content of one that no manifest declares. Most often an "
        "object was renamed in the manifest, which would give it a new id.",
        "To rename the object instead, write its id as metadata.id.",
    ),
    Code(
        "PLAN-SNAPSHOT",
        "the plan was made against a snapshot",
        "The service may have changed since the snapshot was taken.",
        "Apply plans again against the service itself.",
    ),
    Code(
        "PLAN-STALE",
        "a change is no longer as it was approved",
        "The manifests or the service changed after the plan was approved. Nothing was written.",
        "Run `reconciler plan` again and review the new plan.",
    ),
)

GUARDS = (
    Code(
        "GUARD-ADOPT",
        "an object would be adopted",
        "--no-adopt blocks updates of objects that this tree never applied.",
        "Leave --no-adopt out to manage the object, or remove its manifest.",
    ),
    Code(
        "GUARD-CRITICAL",
        "a critical object would be removed or weakened",
        "The manifest says with metadata.critical that people are locked out when the object "
        "breaks.",
        "If the change is meant, allow just that with --break-glass 'REF=REASON'.",
    ),
    Code(
        "GUARD-INCOMPLETE-READ",
        "the service did not list everything",
        "A plan from an incomplete list would create what exists, or delete what is declared.",
        "Run the command again.",
    ),
    Code(
        "GUARD-MADE-ANEW",
        "an application would be deleted and created again",
        "Its client id and its secret would end, and what is deployed with them could not sign in.",
        "To rename it, write its id as metadata.id. If it is meant: --break-glass 'REF=REASON'.",
    ),
    Code(
        "GUARD-MANY-DELETES",
        "too many objects would be deleted",
        "More than 30 % of the objects of a kind, where there are at least 10, or all of them. "
        "This is what a wrong folder or a wrong service looks like.",
        "If it is meant, allow that number with --allow-deletes N.",
    ),
    Code(
        "GUARD-MANY-UPDATES",
        "too many objects would be updated",
        "More than 30 % of the objects of a kind, where there are at least 10. This is what a "
        "wrong folder or a wrong service looks like.",
        "If it is meant, allow that number with --allow-updates N.",
    ),
    Code(
        "GUARD-OWN-ACCESS",
        "the plan touches what this run signs in with",
        "After the change the next run may not be able to sign in.",
        "If it is meant, allow just that with --break-glass 'REF=REASON'.",
    ),
    Code(
        "GUARD-PARTIAL-TREE",
        "objects would be deleted although not everything was read",
        "What looks undeclared may be declared in a file that this run did not read.",
        "Name the folder of the whole tree. A folder of another tree is left out with "
        "--other-tree.",
    ),
    Code(
        "GUARD-PREVENT-DELETE",
        "a protected object would be deleted",
        "The object was applied with metadata.preventDelete: true.",
        "Declare it again. To delete it, first apply it with preventDelete: false.",
    ),
    Code(
        "GUARD-SAME-NAME",
        "several objects have the same name",
        "The service holds more than one object of that name, so it is not clear which is meant.",
        "Write the id of the one that is meant as metadata.id.",
    ),
    Code(
        "GUARD-TAKE-OVER",
        "--take-over cannot be done",
        "The flag names an object that no manifest declares, or the service does not record "
        "owners.",
        "Declare the object, correct the name, or leave the flag out.",
    ),
    Code(
        "GUARD-UNKNOWN-FIELD",
        "an update would erase unknown fields",
        "The object has fields that this version does not know and cannot send back.",
        "Use a version of the reconciler that knows them.",
    ),
)

DRIFT = (
    Code(
        "DRIFT-INCOMPLETE-READ",
        "the service did not list everything",
        "What was not listed cannot be compared, so drift may be missed.",
        "Run the command again.",
    ),
)
