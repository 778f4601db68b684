# Functions of the three hooks; the file lies beside them.
#
# They judge the commit that is pushed, checked out into a temporary folder: never the files that
# happen to be in a working tree. Settings, in the configuration of the repository or the clone:
#   git config reconciler.path manifests            folder of the manifests
#   git config reconciler.branch main               the branch that is applied
#   git config reconciler.service https://id.example.com
#   git config reconciler.secretsTo file:/var/lib/reconciler/secrets
#   git config reconciler.tokenFile /etc/reconciler/token
# A setting that is not there comes from the environment (RECONCILER_SERVICE and so on).
set -eu
GIT_DIR=$(git rev-parse --absolute-git-dir)
export GIT_DIR
export PYTHONSAFEPATH=1 # a module that was pushed is never imported in place of the real one

path=$(git config reconciler.path || echo manifests)
branch=$(git config reconciler.branch || echo main)
scratch=$(mktemp -d)
tree=$scratch/tree
trap 'rm -rf "$scratch"' EXIT

say() { echo "reconciler: $*" >&2; }

# The commands run in the temporary folder, so that findings name paths of the repository. Files
# that settings name are therefore given from the root.
from() { case $2 in /*) echo "$2" ;; *) echo "$1/$2" ;; esac; }

# settle FOLDER: export the settings; relative files in them are below FOLDER.
settle() {
    for each in service:SERVICE secretsTo:SECRETS_TO tokenFile:TOKEN_FILE; do
        value=$(git config "reconciler.${each%%:*}" || true)
        [ -z "$value" ] || export "RECONCILER_${each#*:}=$value"
    done
    case ${RECONCILER_SERVICE-} in
        sqlite:*) RECONCILER_SERVICE=sqlite:$(from "$1" "${RECONCILER_SERVICE#sqlite:}") ;;
    esac
    [ -z "${RECONCILER_TOKEN_FILE-}" ] || RECONCILER_TOKEN_FILE=$(from "$1" "$RECONCILER_TOKEN_FILE")
    [ -z "${RECONCILER_KEY_FILE-}" ] || RECONCILER_KEY_FILE=$(from "$1" "$RECONCILER_KEY_FILE")
    [ -z "${RECONCILER_SEAL_KEY_FILE-}" ] ||
        RECONCILER_SEAL_KEY_FILE=$(from "$1" "$RECONCILER_SEAL_KEY_FILE")
}

# deletes COMMIT: a push that deletes a branch names a commit of zeros only.
deletes() { case $1 in *[!0]*) false ;; *) true ;; esac; }

# check_out COMMIT: put its manifests into the temporary folder; fails where it has none.
# Symbolic links become plain files, so that none leads out of the commit.
check_out() {
    rm -rf "$tree"
    mkdir "$tree"
    (
        export GIT_INDEX_FILE="$scratch/index" GIT_WORK_TREE="$tree" GIT_LITERAL_PATHSPECS=1
        cd "$tree" &&
            git read-tree "$1" &&
            git ls-files -z -- "$path" >"$scratch/files" &&
            git -c core.symlinks=false checkout-index -z --stdin <"$scratch/files"
    ) || { say "$1 cannot be checked out"; exit 1; }
    [ -e "$tree/$path" ] || { say "$1 holds no $path: there is nothing to judge"; return 1; }
}

# in_commit COMMAND...: run the program where the manifests have the paths of the repository.
in_commit() { (cd "$tree" && exec reconciler "$@" </dev/null); }
