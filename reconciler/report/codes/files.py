"""Codes of what is read: the environment, files, YAML and files of scripts."""

from __future__ import annotations

from reconciler.report.codes import Code

ENVIRONMENT = (
    Code(
        "ENV-UNKNOWN",
        "a variable that no option reads",
        "The environment has a variable that starts with RECONCILER_ and looks like a known "
        "one. It has no effect, so a default is used in its place.",
        "Correct the name, or remove the variable. `reconciler COMMAND --help` lists the "
        "options; each can be set as RECONCILER_ and its name.",
    ),
)

FILES = (
    Code(
        "FILE-EMPTY",
        "a file without a manifest",
        "The file was read and holds nothing, or comments only.",
        "Write a manifest into it, or remove it.",
    ),
    Code(
        "FILE-MISSING",
        "a path that does not exist",
        "A file or folder was named and is not there. Paths start from the current folder.",
        "Check the path. Without PATHS, the folder manifests is read.",
    ),
    Code(
        "FILE-NONE",
        "a folder without manifests",
        "The folder and the folders in it hold no file whose name ends in .yaml or .yml.",
        "Name the folder that holds the manifests. `reconciler init` makes a first one.",
    ),
    Code(
        "FILE-NOT-A-FOLDER",
        "a file where a folder is expected",
        "A part of the path before its end is a file.",
        "Name a folder or a file that exists.",
    ),
    Code(
        "FILE-NOT-REGULAR",
        "something other than a plain file",
        "Pipes, sockets and devices are not read: reading one could wait for ever.",
        "Name a folder or a plain file.",
    ),
    Code(
        "FILE-SKIPPED",
        "something that looks like a manifest and is not read",
        "Only names that end in .yaml or .yml, in small letters, are read, and nothing whose name "
        "begins with a dot. This one holds an apiVersion of this program.",
        "Rename it, or move it out of the folder of the manifests.",
    ),
    Code(
        "FILE-SYMLINK",
        "a symbolic link",
        "Links are not followed, because a pull request could let one point at any file of the "
        "machine.",
        "Put the file or folder itself there, or name its own path.",
    ),
    Code(
        "FILE-TOO-DEEP",
        "too many levels of folders",
        "Manifests are read in at most 32 levels of folders.",
        "Move the manifests up.",
    ),
    Code(
        "FILE-TOO-LARGE",
        "a file that is too large",
        "A file of manifests has at most 1 MiB, so that a check takes less than a second.",
        "Split the file. One manifest in each file is usual.",
    ),
    Code(
        "FILE-UNREADABLE",
        "a file that cannot be read",
        "The system refused to open the file or folder.",
        "Let the user who runs the command read it.",
    ),
)

YAML = (
    Code(
        "YAML-ALIAS",
        "an alias",
        "Manifests have no aliases (`*name`): what is written must be what is read, and aliases "
        "can make a small file huge.",
        "Write the value out.",
    ),
    Code(
        "YAML-ANCHOR",
        "an anchor",
        "Manifests have no anchors (`&name`), because they have no aliases.",
        "Remove the anchor. A text that starts with `&` goes in quotes.",
    ),
    Code(
        "YAML-CHARACTER",
        "an invisible character",
        "The file holds a control character, or one that looks like a line break or like nothing.",
        "Remove it. Where it is meant, write it as an escape between double quotes.",
    ),
    Code(
        "YAML-DEPTH",
        "values that are nested too deep",
        "No manifest needs that many levels; the limit keeps a file from exhausting the program.",
        "Simplify the file.",
    ),
    Code(
        "YAML-DIRECTIVE",
        "a directive",
        "Manifests are YAML 1.2. A line that starts with `%` would change how they are read.",
        "Remove the line.",
    ),
    Code(
        "YAML-DOCUMENTS",
        "too many documents in a file",
        "The limit keeps a file from exhausting the program.",
        "Split the file.",
    ),
    Code(
        "YAML-DUPLICATE-KEY",
        "a key that is written twice",
        "YAML readers disagree about which of the two counts, and a reviewer sees only one of "
        "them.",
        "Keep one of the two lines.",
    ),
    Code(
        "YAML-ENCODING",
        "a file that is not UTF-8",
        "Manifests are UTF-8, the encoding that Git and all editors agree on.",
        "Save the file as UTF-8.",
    ),
    Code(
        "YAML-KEY",
        "a key that is not text",
        "Keys are names of fields. A number, true or a list cannot be one.",
        "Write a plain word, or put it in quotes.",
    ),
    Code(
        "YAML-MERGE",
        "a merge key",
        "Manifests have no merge keys (`<<`): what is written must be what is read.",
        "Write the fields out.",
    ),
    Code(
        "YAML-NODES",
        "too many values in a file",
        "The limit keeps a file from exhausting the program.",
        "Split the file.",
    ),
    Code(
        "YAML-NUMBER",
        "a number that no field takes",
        "The number is infinite, not a number, or too long.",
        "Put it in quotes if text is meant.",
    ),
    Code(
        "YAML-SCALAR",
        "a text that is too long",
        "The limit keeps a file from exhausting the program. No field takes a text of that length.",
        "Shorten the text. A script can be a file of its own (scriptFile).",
    ),
    Code(
        "YAML-SYNTAX",
        "a file that is not YAML",
        "The file cannot be read from here on. Often the mistake is in the line above: a "
        "missing quote, a bracket that is not closed, or an indentation that differs.",
        "Check indentation, quotes and brackets at the place and above it.",
    ),
    Code(
        "YAML-TAG",
        "a tag",
        "Manifests have no tags (`!name`): a tag would let a file choose how it is read.",
        "Remove the tag. A text that starts with `!` goes in quotes.",
    ),
)

SCRIPTS = (
    Code(
        "SCRIPT-ABSOLUTE",
        "a script with an absolute path",
        "The path would mean another file on each machine.",
        "Write the path from the folder of the manifest, such as scripts/greet.js.",
    ),
    Code(
        "SCRIPT-CRLF",
        "a script with Windows line ends",
        "Scripts are sent as they are written. Where Git changes line ends at checkout, the same "
        "commit gives another script on another machine, and a plan shows an update.",
        "Save the script with LF, and add `*.js text eol=lf` to .gitattributes.",
    ),
    Code(
        "SCRIPT-ENCODING",
        "a script that is not UTF-8",
        "Scripts are sent to the service as UTF-8 text.",
        "Save the script as UTF-8.",
    ),
    Code(
        "SCRIPT-MISSING",
        "a script file that does not exist",
        "scriptFile names a file that is not there. The path starts from the folder of the "
        "manifest.",
        "Check the path.",
    ),
    Code(
        "SCRIPT-NOT-A-FOLDER",
        "a file where a folder is expected",
        "A part of the path in scriptFile before its end is a file.",
        "Check the path.",
    ),
    Code(
        "SCRIPT-NOT-REGULAR",
        "a script that is not a plain file",
        "scriptFile names a folder, a pipe, a socket or a device.",
        "Name a plain file.",
    ),
    Code(
        "SCRIPT-OUTSIDE",
        "a script outside the manifests",
        "The path leads out of the folder that was given on the command line. A pull request "
        "could send any file of the machine to the service.",
        "Keep scripts in that folder or below it.",
    ),
    Code(
        "SCRIPT-SYMLINK",
        "a script that is a symbolic link",
        "Links are not followed, because a pull request could let one point at any file of the "
        "machine.",
        "Name the file itself, or put it there.",
    ),
    Code(
        "SCRIPT-TOO-DEEP",
        "too many levels of folders",
        "The path in scriptFile has more levels than are followed.",
        "Move the script up.",
    ),
    Code(
        "SCRIPT-TOO-LARGE",
        "a script that is too large",
        "The service takes scripts of at most 2000 characters.",
        "Shorten the script, or split it into two actions.",
    ),
    Code(
        "SCRIPT-UNREADABLE",
        "a script that cannot be read",
        "The system refused to open the file.",
        "Let the user who runs the command read it.",
    ),
)
