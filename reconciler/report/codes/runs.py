"""Codes of a run: plans, guards and drift, then writing, secrets, recovery and servers."""

from __future__ import annotations

from reconciler.report.codes import Code

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


APPLIES = (
    Code(
        "APPLY-NOT-OBSERVED",
        "what remains is not known",
        "After writing, the service could not be read again. What was written is reported.",
        "Run `reconciler plan`: it shows what remains.",
    ),
    Code(
        "APPLY-NOT-RECORDED",
        "the journal could not be written to the end",
        "What was done is done. The next apply looks at it again.",
        "Make the folder .reconciler writable, with room on the disk, and run apply again.",
    ),
    Code(
        "APPLY-REMAINING",
        "the service holds something else than was sent",
        "Some services cannot empty a list, or keep a default of their own.",
        "Declare what the service holds, or change it on the service.",
    ),
    Code(
        "RUN-FAILED",
        "the run ended early",
        "The last record of --format jsonl: the error that ended the run.",
        "Do what the record says.",
    ),
)

SECRETS = (
    Code(
        "SECRET-DELIVERED-LATE",
        "a secret was delivered after the lock was lost",
        "The run lost its lock while it delivered a client secret. Another run may have replaced "
        "the secret in the meantime, and the sink then holds the older one.",
        "Look at `reconciler history REF`. If the secret was replaced, deliver the present one "
        "again, or make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "SECRET-KEPT-BESIDE",
        "a file of another application was left alone",
        "The place for a secret held a file that is not of this application, so the secret went "
        "beside it. Two services that share a folder lead to this.",
        "Give each service a folder of its own, or remove the file that is no longer needed.",
    ),
    Code(
        "SECRET-LOST",
        "the service no longer keeps a secret that was never delivered",
        "A client secret is kept until its delivery is acknowledged, for a limited time.",
        "If nothing uses the secret, make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "SECRET-MOVED",
        "the secret of a renamed application has a new place",
        "The secret is the same; its file has the new name.",
        "Change what reads the old file.",
    ),
    Code(
        "SECRET-NO-SINK",
        "client secrets have no destination",
        "The plan creates client secrets, or some are owed, and a secret is answered only once. "
        "Apply refuses to begin.",
        "Choose a destination with --secrets-to; see docs/secrets.md.",
    ),
    Code(
        "SECRET-NOT-ACKNOWLEDGED",
        "the service was not told of a delivery",
        "The secrets are in the sink and still count as owed.",
        "Run apply again: it delivers the same secrets once more and tells the service.",
    ),
    Code(
        "SECRET-NOT-FOLLOWED",
        "the sink still has the old name of an application",
        "An application was renamed or deleted, and its file in the sink could not be changed.",
        "Run apply again: it tries once more.",
    ),
    Code(
        "SECRET-NOT-IN-SINK",
        "the sink lacks the secret of an application",
        "The application signs in with a secret that this sink does not hold.",
        "If nothing uses the secret, make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "SECRET-REMOVED",
        "the secret of a deleted application was removed",
        "The application is deleted, and its file in the sink with it.",
        "Nothing needs to be done.",
    ),
    Code(
        "SECRET-SINK-CANNOT-TELL",
        "the sink cannot say which secrets it holds",
        "--require-secrets asks for secrets, and a command as sink can only take them.",
        "Use a folder as sink, or leave --require-secrets out.",
    ),
)

SERVERS = (
    Code(
        "SERVE-PLAIN",
        "a server that others can reach without TLS",
        "The server listens on an address that is not loopback, and has no certificate. Tokens "
        "and client secrets cross the network in plain text.",
        "Give --tls-cert and --tls-key. If a proxy in front of the server speaks TLS and nothing "
        "else reaches the address, say --behind-proxy.",
    ),
)

RECOVERY = (
    Code(
        "HEAL-NAME-TAKEN",
        "another run created what an interrupted run was about to create",
        "The object exists, and it is not certain that this run made it. Its secret is left as "
        "it is.",
        "If nothing uses its secret, make a new one: reconciler apply --rotate-missing REF.",
    ),
    Code(
        "HEAL-SECRET-DELIVERED",
        "the secret of an interrupted run was delivered",
        "A run was killed after the service made a client secret. It is now in the sink.",
        "Nothing needs to be done.",
    ),
    Code(
        "HEAL-SECRET-OWED",
        "the secret of an interrupted run is not delivered yet",
        "A run was killed after the service made a client secret, and there is no destination.",
        "Choose one with --secrets-to and run the command again.",
    ),
)
