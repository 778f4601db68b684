# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
RUNS := .venv/.runs
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCKED := $(PIP) install --require-hashes
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count())')
# Tests wait for servers, disks and databases half of their time; those of single modules do not.
WORKERS ?= $(shell echo $$(($(CORES) * 2)))

.PHONY: demo test tools unit coverage extras check lint types dead wheel dist schemas codes api protos bench metrics fuzz laws soak planted mutate envoy lock clean

DEMO := --service sqlite:.reconciler/identity.db

demo: $(RUNS)
	@echo '== validate'; $(BIN)/reconciler validate manifests
	@echo; echo '== plan'; $(BIN)/reconciler plan manifests $(DEMO)
	@echo; echo '== apply'; $(BIN)/reconciler apply manifests $(DEMO) --auto-approve
	@echo; echo '== plan again'; $(BIN)/reconciler plan manifests $(DEMO) --detailed-exitcode
	@echo; echo '== outputs'; $(BIN)/reconciler outputs manifests $(DEMO)

test: $(READY) tools
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# What tests start besides Python.
tools:
	@.ci/have-web
	@.ci/install-debian postgresql strace jq

# The tests of single modules, which need nothing but Python; the slowest of them are left out.
unit: $(READY)
	$(BIN)/python -m pytest -q -n $(CORES) --dist worksteal -m 'not slow' tests/unit tests/architecture

# Branches that tests of modules, contracts, laws and commands reach, copies of the program included.
# It measures no process that is killed, and no slow test; so it is a lower bound.
coverage: $(READY) tools
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n $(WORKERS) --dist worksteal -m 'not slow and not untraced' \
		tests/unit tests/contract tests/laws tests/acceptance
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# What serve, PostgreSQL and key files need; a command that misses it says so.
extras: $(RUNS)
	$(LOCKED) --requirement .ci/extras.txt
	@$(LOCKED) --requirement .ci/policy.txt || \
		echo 'Without the extra for policies: it has no wheel for musl (Alpine).'

check: lint types dead wheel

lint: $(READY)
	$(BIN)/ruff format --check --quiet reconciler tests docs
	$(BIN)/ruff check --quiet reconciler tests docs
	.ci/audit-workflows

types: $(READY)
	$(BIN)/mypy
	$(BIN)/mypy tests

# Names that nothing reads go; what only a library or a test reads is listed in .ci/not_dead.py.
dead: $(READY)
	$(BIN)/vulture

# The wheel, alone in an empty environment, does the main job in an empty folder.
wheel: $(READY)
	.ci/try-wheel

# The files of a release, from the commit that is checked out: the same bytes on every machine.
dist: $(RUNS)
	.ci/build-dist

# The schemas and the tables of fields in the documentation; a test keeps them in step.
schemas: $(READY)
	$(BIN)/python -m docs.kinds.make

# The page of every code that the program prints, the table of forms, and the addresses that a ZITADEL
# is asked at, from the program's own tables; tests keep them in step.
codes: $(READY)
	$(BIN)/python -m docs.codes.make
	$(BIN)/python -m docs.forms.make
	$(BIN)/python -m docs.zitadel.make

# The description of the REST API, and the table of who may call what, from the table of operations;
# tests keep both in step.
api: $(READY)
	$(BIN)/python -m docs.api.make

# The descriptor set that the server reads its messages from; a test keeps it in step.
PROTOS := reconciler/service/transport/proto
protos: $(READY)
	$(BIN)/python -m grpc_tools.protoc --proto_path=$(PROTOS) --include_imports \
		--descriptor_set_out=$(PROTOS)/descriptors.binpb \
		$(sort $(shell find $(PROTOS) -name "*.proto"))

# Takes a while; QUICK=1 leaves out the largest sizes.
bench: $(READY)
	@.ci/install-debian postgresql
	$(BIN)/python -m bench.run

# Figures of the source itself: size, words, types, and how long the unit tests take.
metrics: $(READY)
	@$(BIN)/python -m bench.metrics --time

# Bad input guided by coverage; TARGET names one, KEEP=--keep keeps what reaches further.
SECONDS ?= 60
TARGET ?=
KEEP ?=
fuzz: $(READY)
	$(LOCKED) --requirement tests/fuzz/requirements.txt
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) --target '$(TARGET)' $(KEEP)

# The laws, for ten times as many random cases as `make test` tries, and cases that it tries on
# one or two ways to a service on more of them.
laws: $(READY)
	@.ci/install-debian postgresql
	TIMES=10 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/laws tests/unit \
		tests/acceptance/test_accept.py tests/acceptance/test_policies.py \
		tests/acceptance/test_run.py \
		tests/acceptance/test_undo*.py tests/contract/test_past.py \
		tests/contract/test_model.py tests/contract/test_openapi.py \
		tests/contract/test_schemas_and_models.py

# Faults in turns until the hours are over; the same command goes on where an earlier one ended.
HOURS ?= 1
SEED ?= 1
soak: $(READY)
	@.ci/install-debian postgresql strace jq
	$(BIN)/python -m tests.faults.soak --hours $(HOURS) --seed $(SEED)

# Put bugs in on purpose, one at a time, in a copy; each must be noticed. BUGS="NAME NAME" for some.
BUGS ?=
planted: $(READY)
	@.ci/have-web
	$(BIN)/python -m tests.planted.run $(BUGS)

# Change a part in small ways, and show what its tests do not notice: PART=planner.
PART ?=
mutate: $(READY)
	$(LOCKED) --requirement tests/mutation/requirements.txt
	$(BIN)/python -m tests.mutation.run $(PART)

# The example of a front door, docs/serving/envoy.yaml, with a real Envoy.
envoy: $(READY)
	$(LOCKED) --requirement tests/envoy/requirements.txt
	$(BIN)/python -m pytest -q tests/envoy/front_door.py

# Lock with hashes and without addresses; needs uv. Every file has the versions of the first.
COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock'
SAME := --constraint .ci/requirements.txt
lock:
	$(COMPILE) --all-extras --group dev pyproject.toml -o .ci/requirements.txt
	$(COMPILE) $(SAME) --extra key-file --extra postgres --extra serve pyproject.toml \
		-o .ci/extras.txt
	$(COMPILE) $(SAME) pyproject.toml -o .ci/runtime.txt
	$(COMPILE) $(SAME) --extra policy pyproject.toml -o .ci/policy.txt
	$(COMPILE) $(SAME) --group build -o .ci/build.txt

clean:
	rm -rf .venv .reconciler dist

# What runs, and what builds it: all that make demo needs.
$(RUNS): .ci/runtime.txt .ci/build.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo 'The venv module is missing: install python3-venv'; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(LOCKED) --requirement .ci/runtime.txt --requirement .ci/build.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# What tests and checks need, on top. Python compiles what it loads; to compile all takes longer.
$(READY): .ci/requirements.txt $(RUNS)
	$(LOCKED) --no-compile --requirement .ci/requirements.txt
	@touch $@
