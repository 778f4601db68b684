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
#
# For an environment of reconciler.yaml, `reconciler init --git-hooks --env NAME` writes the next three
# lines: its name, the folder of reconciler.yaml, and how it is approved if it is protected.
environment=@{environment}
folder=@{folder}
approval=@{approval}

set -eu
GIT_DIR=$(git rev-parse --absolute-git-dir)
export GIT_DIR
export PYTHONSAFEPATH=1 # a module that was pushed is never imported in place of the real one

path=$(git config reconciler.path || echo manifests)
branch=$(git config reconciler.branch || echo main)
scratch=$(mktemp -d)
tree=$scratch/tree
lock=
trap 'rm -rf "$scratch" ${lock:+"$lock"}' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

say() { echo "reconciler: $*" >&2; }

# The commands run in the temporary folder, so that findings name paths of the repository. Files
# that settings name are therefore given from the root.
from() { case $2 in /*) echo "$2" ;; *) echo "$1/$2" ;; esac; }

# keep_tree: take the checkout that is kept for the environment, one push at a time. Its own store, its
# journals and its secrets are in it. Without an environment the checkout is a temporary one, and the
# store is in the repository's folder unless a setting names another.
keep_tree() {
    if [ -z "$environment" ]; then
        : "${RECONCILER_SERVICE:=sqlite:$GIT_DIR/.reconciler/identity.db}"
        export RECONCILER_SERVICE
        return
    fi
    tree=$GIT_DIR/reconciler/$environment
    mkdir -p "$GIT_DIR/reconciler"
    waited=0
    until mkdir "$tree.lock" 2>/dev/null; do
        waited=$((waited + 1))
        [ "$waited" -le 300 ] || { say "$tree.lock is held: remove it if that push was killed"; exit 1; }
        sleep 1
    done
    lock=$tree.lock
}

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

# check_out COMMIT: put its manifests into the folder of the checkout; fails where it has none. For an
# environment that is all of the folder of reconciler.yaml, but for state that somebody committed.
# Symbolic links become plain files, so that none leads out of the commit.
check_out() {
    if [ -n "$environment" ]; then
        if [ "$folder" = . ]; then commit=$1; else commit=$1:$folder; fi
        what=. needed=reconciler.yaml
    else
        no_configuration "$1"
        commit=$1 what=$path needed=$path
    fi
    git rev-parse --verify --quiet "$commit" >/dev/null || { say "$1 holds no $folder"; return 1; }
    mkdir -p "$tree"
    find "$tree" -mindepth 1 -maxdepth 1 ! -name .reconciler -exec rm -rf {} +
    (
        export GIT_INDEX_FILE="$scratch/index" GIT_WORK_TREE="$tree" GIT_LITERAL_PATHSPECS=1
        cd "$tree" &&
            git read-tree "$commit" &&
            git rm -r -f --cached --quiet --ignore-unmatch -- .reconciler &&
            git ls-files -z -- "$what" >"$scratch/files" &&
            git -c core.symlinks=false checkout-index -z --stdin <"$scratch/files"
    ) || { say "$1 cannot be checked out"; exit 1; }
    [ -z "$environment" ] || echo "gitdir: $GIT_DIR" >"$tree/.git" # its Git root
    [ -e "$tree/$needed" ] || { say "$1 holds no $needed: there is nothing to judge"; return 1; }
}

# no_configuration COMMIT: stop at a commit whose manifests belong to environments, or to a tree that
# has a name: these hooks would apply them as the tree `default`, without overlays.
no_configuration() {
    above=$path
    until [ "$above" = . ] || [ "$above" = / ]; do
        above=$(dirname "$above")
        if [ "$above" = . ]; then at=reconciler.yaml; else at=$above/reconciler.yaml; fi
        if git cat-file -e "$1:$at" 2>/dev/null; then
            say "$1 has a $at, and these hooks are for no environment of it."
            say "Write them again: reconciler init --git-hooks --env NAME"
            exit 1
        fi
    done
}

# in_commit COMMAND...: run the program where the manifests have the paths of the repository. For an
# environment the configuration names them.
in_commit() {
    command=$1 && shift
    if [ -z "$environment" ]; then
        set -- "$command" "$path" "$@"
    elif [ "$command" = validate ]; then
        set -- "$command" "$@"
    else
        set -- "$command" --env "$environment" "$@"
    fi
    (cd "$tree" && exec reconciler "$@" </dev/null)
}
