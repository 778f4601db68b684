# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WORKERS ?= auto

.PHONY: demo test check lint types wheel schemas protos bench fuzz soak planted mutate lock clean

demo: $(READY)
	@echo '== validate'; $(BIN)/reconciler validate manifests
	@echo; echo '== plan'; $(BIN)/reconciler plan manifests
	@echo; echo '== apply'; $(BIN)/reconciler apply manifests --auto-approve
	@echo; echo '== plan again'; $(BIN)/reconciler plan manifests --detailed-exitcode
	@echo; echo '== outputs'; $(BIN)/reconciler outputs manifests

test: $(READY)
	@.ci/have-web
	@.ci/install-debian postgresql strace
	$(BIN)/python -m pytest -q -n $(WORKERS)

check: lint types wheel

lint: $(READY)
	$(BIN)/ruff format --check --quiet reconciler tests
	$(BIN)/ruff check --quiet reconciler tests
	$(BIN)/zizmor --quiet --offline --persona=auditor .github reconciler/cli/templates/github

types: $(READY)
	$(BIN)/mypy

# The wheel, alone in an empty environment, does the main job in an empty folder.
wheel: $(READY)
	.ci/try-wheel

schemas: $(READY)
	$(BIN)/python -m reconciler.resources.manifest_model schemas

# The descriptor set that the server reads its messages from; a test keeps it in step.
PROTOS := reconciler/service/transport/proto
protos: $(READY)
	$(BIN)/python -m grpc_tools.protoc --proto_path=$(PROTOS) --include_imports \
		--descriptor_set_out=$(PROTOS)/descriptors.binpb \
		$(sort $(wildcard $(PROTOS)/*/*.proto $(PROTOS)/*/*/*.proto))

# Takes a while; QUICK=1 leaves out the largest sizes.
bench: $(READY)
	@.ci/install-debian postgresql
	$(BIN)/python -m bench.run

# Bad input guided by coverage; TARGET names one, KEEP=--keep keeps what reaches further.
SECONDS ?= 60
TARGET ?=
KEEP ?=
fuzz: $(READY)
	$(PIP) install --require-hashes --requirement tests/fuzz/requirements.txt
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) --target '$(TARGET)' $(KEEP)

# Faults in turns until the hours are over; the same command goes on where an earlier one ended.
HOURS ?= 1
SEED ?= 1
soak: $(READY)
	@.ci/install-debian postgresql strace
	$(BIN)/python -m tests.faults.soak --hours $(HOURS) --seed $(SEED)

# Put bugs in on purpose, one at a time, in a copy; each must be noticed. BUGS="NAME NAME" for some.
BUGS ?=
planted: $(READY)
	$(BIN)/python -m tests.planted.run $(BUGS)

# Change a part in small ways, and show what its tests do not notice: PART=planner.
PART ?=
mutate: $(READY)
	$(PIP) install --require-hashes --requirement tests/mutation/requirements.txt
	$(BIN)/python -m tests.mutation.run $(PART)

# Lock with hashes and without addresses; needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command 'make lock' --all-extras pyproject.toml -o .ci/requirements.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command 'make lock' pyproject.toml -o .ci/runtime.txt

clean:
	rm -rf .venv .reconciler dist

$(READY): .ci/requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo 'The venv module is missing: install python3-venv'; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(PIP) install --require-hashes --requirement .ci/requirements.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
