"""Codes of what is judged without a service: shape, fields, references, names and values."""

from __future__ import annotations

from reconciler.report.codes import Code

MANIFESTS = (
    Code(
        "MANIFEST-API-VERSION",
        "a missing or unknown apiVersion",
        "apiVersion says which format the manifest has. There is one: reconciler/v1.",
        "Write apiVersion: reconciler/v1.",
    ),
    Code(
        "MANIFEST-KIND",
        "a missing or unknown kind",
        "kind says what the manifest declares, and which fields it may have.",
        "Write one of the kinds that the message lists. `reconciler explain KIND` shows the "
        "fields.",
    ),
    Code(
        "MANIFEST-SHAPE",
        "a document that is not a manifest",
        "A manifest is a mapping with apiVersion, kind, metadata and, for most kinds, spec.",
        "Write these fields, or move the document to a file that is not read.",
    ),
)

SCHEMA = (
    Code(
        "SCHEMA-DURATION",
        "an invalid duration",
        "Durations are decimal seconds followed by s, such as 5s or 1.5s. Nothing is converted, "
        "so that the manifest shows what the service gets.",
        "Write what the message says. clockSkew is at most 5s, the timeout of an action at most "
        "20s.",
    ),
    Code(
        "SCHEMA-EMPTY",
        "an empty value",
        "The field must have a value.",
        "Write a value.",
    ),
    Code(
        "SCHEMA-ID",
        "an invalid id",
        "metadata.id is the id of an object of the service: letters, digits, - and _, at most 200.",
        "Copy the id from `reconciler outputs`, a plan or the console of the service; or leave "
        "it out, and the object is found by its name.",
    ),
    Code(
        "SCHEMA-INTERNAL",
        "a manifest that is refused without a reason",
        "One check refuses the manifest and another cannot say why. This is a mistake in the "
        "reconciler.",
        "Report it with the manifest.",
    ),
    Code(
        "SCHEMA-MISSING-FIELD",
        "a required field is missing",
        "The kind cannot be declared without this field.",
        "Write the field. `reconciler explain KIND` shows all fields and which are required.",
    ),
    Code(
        "SCHEMA-NUL",
        "a NUL character",
        "No service takes a text with the character U+0000.",
        "Remove it.",
    ),
    Code(
        "SCHEMA-SCRIPT",
        "an action without one script",
        "An action has either script, the JavaScript itself, or scriptFile, the path of its file.",
        "Write exactly one of the two.",
    ),
    Code(
        "SCHEMA-TOO-LONG",
        "a text that is too long",
        "The service has a limit for this field, counted in characters.",
        "Shorten the text.",
    ),
    Code(
        "SCHEMA-TYPE",
        "a value of the wrong type",
        "The field takes another type: a list instead of a text, or a text instead of a number.",
        "Write the type that the message names. Text that looks like a number goes in quotes.",
    ),
    Code(
        "SCHEMA-UNKNOWN-FIELD",
        "an unknown field",
        "The kind does not have this field. It would have no effect, so it is an error and not "
        "ignored: most often the name is misspelt.",
        "Correct the name, move the field to where it belongs, or remove it.",
    ),
    Code(
        "SCHEMA-VALUE",
        "a value that the field does not take",
        "The field has a list of possible values, and this is not one of them.",
        "Write one of the values in the message. `reconciler explain KIND.FIELD` shows them, too.",
    ),
)

REFERENCES = (
    Code(
        "REF-DUPLICATE",
        "a resource that is declared twice",
        "Two manifests have the same kind and names. Names are compared ignoring case.",
        "Remove or rename one of the two.",
    ),
    Code(
        "REF-DUPLICATE-ID",
        "an id that is pinned twice",
        "Two manifests claim the same object of the service with metadata.id.",
        "Correct one of the two ids.",
    ),
    Code(
        "REF-NOT-HELD",
        "an organization or project that does not exist",
        "A manifest names an owner that no manifest declares and that the service does not hold.",
        "Correct the name, or add a manifest for the owner.",
    ),
    Code(
        "REF-UNDECLARED",
        "an organization or project that no manifest declares",
        "The service may hold it, which only a plan can see.",
        "Correct the name if it is misspelt. Otherwise nothing needs to be done if the service "
        "holds it; if not, add a manifest for it.",
    ),
)


NAMES = (
    Code(
        "NAME-CONFUSABLE",
        "a name with letters that look alike",
        "The name mixes alphabets whose letters look the same, such as Latin and Cyrillic. Two "
        "such names look alike and are different.",
        "Make sure that the name is what it looks like.",
    ),
    Code(
        "NAME-INVISIBLE",
        "a name with an invisible character",
        "The name looks like another one and is different.",
        "Remove the character.",
    ),
    Code(
        "NAME-NFC",
        "a name that is not in Unicode's normal form",
        "The same letters can be written as different characters. Names are compared character "
        "by character, so one form (NFC) is needed.",
        "Write the name as the message shows it.",
    ),
    Code(
        "NAME-SPACE",
        "a name that starts or ends with a space",
        "The space is part of the name and cannot be seen.",
        "Remove the space.",
    ),
)

URIS = (
    Code(
        "URI-CASE",
        "upper case in the scheme or host of a URI",
        "Browsers send scheme and host in lower case, and URIs are compared as text.",
        "Write them in lower case.",
    ),
    Code(
        "URI-CHARACTER",
        "a character that a URI cannot have",
        "Only some ASCII characters may stand in a URI.",
        "Write the character percent-encoded, and host names in ASCII (xn--...).",
    ),
    Code(
        "URI-CUSTOM-SCHEME",
        "a custom scheme that another app can claim",
        "Any app can register a scheme of its own and receive the codes that are sent to it. "
        "Only native applications use custom schemes, with a domain of their owner written "
        "backwards.",
        "Write an https URI; or set appType: OIDC_APP_TYPE_NATIVE and a scheme such as "
        "com.example.app.",
    ),
    Code(
        "URI-DEFAULT-PORT",
        "a port that is the default",
        "URIs are compared as text, and clients usually leave the default port out.",
        "Leave the port out, unless clients send it.",
    ),
    Code(
        "URI-DUPLICATE",
        "an entry that is in the list already",
        "The entry has no effect.",
        "Remove one of the two.",
    ),
    Code(
        "URI-EMPTY",
        "an empty URI",
        "An empty entry matches nothing.",
        "Write the URI, or remove the entry.",
    ),
    Code(
        "URI-ESCAPE",
        "a wrong percent-escape in a URI",
        "After `%` two hexadecimal digits are needed, and %00 is never allowed.",
        "Write `%` itself as %25.",
    ),
    Code(
        "URI-FRAGMENT",
        "a fragment in a URI",
        "A redirect URI must not have a fragment: the service would have to put codes behind it.",
        "Leave out `#` and all that follows.",
    ),
    Code(
        "URI-HOST",
        "a missing or invalid host in a URI",
        "The part after `//` is not the name or address of a host.",
        "Write a host name, such as shop.example.com.",
    ),
    Code(
        "URI-HTTP",
        "plain http to another machine",
        "Codes and tokens are sent there unencrypted, to be read by anyone on the way.",
        "Write https.",
    ),
    Code(
        "URI-LOOPBACK",
        "an address of the user's own machine",
        "It works only on a machine where the application runs: during development, or for "
        "native applications.",
        "Leave it to an application with devMode: true, or remove it.",
    ),
    Code(
        "URI-PATH",
        "a path that is not read the same everywhere",
        "The path has `.` or `..` parts, an escaped slash, or is missing after a custom scheme. "
        "Browsers and servers change such paths in different ways.",
        "Write the path without them.",
    ),
    Code(
        "URI-PORT",
        "an invalid port",
        "A port is a number from 1 to 65535.",
        "Correct the port, or leave it out.",
    ),
    Code(
        "URI-SCHEME",
        "a missing or dangerous scheme",
        "A URI starts with its scheme. With javascript, data, file and the like, a browser "
        "would run or open what follows.",
        "Write the whole URI, such as https://shop.example.com/callback.",
    ),
    Code(
        "URI-USERINFO",
        "a user name in a URI",
        "What stands before `@` is shown to users and can deceive them about the host.",
        "Leave out everything up to `@`.",
    ),
    Code(
        "URI-WILDCARD",
        "a wildcard in a URI",
        "URIs are compared exactly: a wildcard matches nothing, or too much.",
        "List each URI.",
    ),
)

SETTINGS = (
    Code(
        "OIDC-COMPLIANCE",
        "a configuration that breaks a rule of OpenID Connect",
        "The service accepts the application and reports it as not compliant. Sign-ins may "
        "fail, or be less safe than they look.",
        "Change what the message names. The key in it is the one that the service reports.",
    ),
    Code(
        "OIDC-DEV-MODE",
        "development mode is on",
        "Some checks of the OpenID Connect specification are not performed.",
        "Remove devMode before production.",
    ),
    Code(
        "OIDC-GRANT",
        "a response type without its grant type",
        "The service refuses an application whose grantTypes do not cover its responseTypes.",
        "Add the grant type that the message names, or remove the response type.",
    ),
    Code(
        "OIDC-IMPLICIT",
        "the implicit grant is allowed",
        "Tokens are answered in the address of the browser, where its history and logs keep them.",
        "Use OIDC_GRANT_TYPE_AUTHORIZATION_CODE.",
    ),
    Code(
        "OIDC-ORIGIN",
        "an invalid origin",
        "An entry of additionalOrigins is scheme, host and port, and nothing else.",
        "Write it without a path, such as https://app.example.com.",
    ),
    Code(
        "OIDC-USERINFO",
        "user info in the id token",
        "Profile, email and phone stand in every id token, against the OpenID Connect "
        "specification.",
        "Let applications ask the userinfo endpoint, and remove idTokenUserinfoAssertion.",
    ),
    Code(
        "IDP-ENDPOINT",
        "an invalid endpoint",
        "The service asks this address for tokens or keys. It must be a whole http or https URL.",
        "Write the whole URL, such as https://login.example.com/keys.",
    ),
    Code(
        "IDP-HEADER",
        "a header that cannot carry a token",
        "The name is not a valid HTTP header, or HTTP needs the header for itself.",
        "Write letters, digits and hyphens, such as x-partner-token.",
    ),
    Code(
        "IDP-HTTP",
        "an identity provider over plain http",
        "Anyone between the service and the provider can replace its tokens and keys.",
        "Write https.",
    ),
    Code(
        "ACTION-DIRECTION",
        "a script with a direction mark",
        "The character changes the direction of the text around it: a reviewer reads the code "
        "in another order than it runs.",
        "Write it as an escape, such as \\u202e.",
    ),
    Code(
        "ACTION-FUNCTION",
        "a script without a function of the action's name",
        "The service calls the function that has the name of the action. Without it, nothing runs.",
        "Rename the action or the function, so that both have the same name.",
    ),
    Code(
        "ACTION-SCRIPT",
        "a script that does not compile",
        "The service could not run it.",
        "Correct the JavaScript at the place or in the line above it.",
    ),
)
