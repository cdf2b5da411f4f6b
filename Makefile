# Everything a developer runs, and what CI runs too. "make" lists it.
#
# Needed: Go 1.26 or newer, Python 3.9 or newer with its venv module, git.
# Nothing needs root, and nothing is written outside this folder but Go's own
# caches and, by "make demo", Coppice's home (~/.coppice, or COPPICE_HOME).

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Relative, since a target of make cannot have a blank in its name; HERE is for what
# needs the whole path.
CACHE := .cache
HERE := $(CURDIR)/$(CACHE)
LINT := $(CACHE)/bin/golangci-lint
# The version of what is built here. Empty: what the commit says, by its tag or else as
# one before the next version (cmd/internal/version).
VERSION ?=
LDFLAGS := $(if $(VERSION),-X github.com/coppice-run/coppice/cmd/internal/version.linked=$(patsubst v%,%,$(VERSION)))

# The Python that tests use. Name one that has jupyter_kernel_gateway and
# ipykernel to leave out the set-up.
COPPICE_TEST_PYTHON ?=
TEST_PYTHON = $(or $(COPPICE_TEST_PYTHON),$(HERE)/python/bin/python)

# The Python of the tests against a Jupyter Enterprise Gateway, and the one that
# makes its environment: 3.10 or 3.11, for which its pinned packages are built.
COPPICE_TEST_ENTERPRISE_PYTHON ?=
ENTERPRISE_PYTHON = $(or $(COPPICE_TEST_ENTERPRISE_PYTHON),$(HERE)/enterprise/bin/python)
ENTERPRISE_BASE ?= $(shell for p in python3.11 python3.10 python3; do "$$p" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 12))' 2>/dev/null && echo "$$p" && break; done)

# The Python that makes the environment of test-openapi: 3.11 or newer.
OPENAPI_BASE ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

# The browser of test-browser.
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))
# What checks the alerts: the promtool that tools/promtool/go.mod pins, or the one that is named.
PROMTOOL ?= $(CACHE)/bin/promtool
# The modules that are released with the root one; those with tests that need the engines of a
# fleet, and a tag says so; and what has a copy of a go.mod stand on this tree.
MODULES ?= $(patsubst %/go.mod,%,$(wildcard agent/*/go.mod fleet/*/go.mod store/*/go.mod cmd/*/go.mod))
TAGS ?=
ENGINE_MODULES := fleet/etcdkv fleet/kubelease fleet/agentsandbox cmd/coppice-fleet
STANDS_HERE = $(foreach module,. $(patsubst %/go.mod,%,$(wildcard fleet/*/go.mod)),-replace=github.com/coppice-run/coppice$(patsubst /.,,/$(module))=$(CURDIR)/$(module))
# Packages for test, bench and fuzz, and flags for go test.
PKG ?= ./...
TESTFLAGS ?=
FUZZTIME ?= 20s
# Those that run the whole: sessions across packages, and the command. They take as long as all others.
SYSTEM := ./cmd/coppice $(patsubst %,./test/%,integration escape outlive conformance sim tools displays fetch repl chaos) \
	$(patsubst %,./bench/%,suite scenario peers)
# The packages with the longest tests begin first, so that the others run beside them, and
# two more than there are processors at a time: tests wait, too.
LONG := ./actors/kernel/runner ./internal/sharedgateway ./cmd/internal/httpapi ./internal/jupyter ./test/arch ./fleet
LONGEST = $(if $(filter ./...,$(PKG)),$(SYSTEM) $(LONG))
AT_ONCE = -p $(shell expr 2 + $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))
# Nobody debugs a test binary that go test makes: it is linked in half the time without symbols.
# A property is tried this often in make test, and 100 times, as rapid has it, in make test-full.
STRIPPED = "-ldflags=-s -w"
RAPID_CHECKS ?= 25
# A program with the race detector sleeps for a second at its end, unless it is told
# not to; the tests start hundreds.
export GORACE ?= atexit_sleep_ms=10
# The race detector needs cgo; without a C compiler Go says 0 here. What vets, lints and
# sets up for the tests has it, too: packages are compiled once for all of that.
RACE = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

say = @printf '==> %s\n'

.PHONY: help
help: ## List what can be made (this)
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: need-go
need-go:
	@command -v go >/dev/null 2>&1 || { echo "make: Go is not installed (1.26 or newer: https://go.dev/dl/)" >&2; exit 1; }

.PHONY: build
build: need-go ## Build bin/coppice
	$(say) "build bin/coppice"
	@go build -ldflags "$(LDFLAGS)" -o bin/coppice ./cmd/coppice

.PHONY: demo
demo: build ## Show it: sets up Python once, then runs the demo
	@bin/coppice setup --check >/dev/null 2>&1 || { \
		echo "==> set up the Python environment (once, about a minute)"; \
		bin/coppice setup || echo "==> without Jupyter's packages: the demo runs on the runner backend, which needs only Python"; }
	$(say) "run the demo"
	@bin/coppice demo

# The command that sets up for the tests, built as they are.
TEST_COMMAND := $(CACHE)/bin/coppice-test

.PHONY: test-command
test-command: need-go
	@mkdir -p "$(CACHE)/bin" && go build $(RACE) -o "$(TEST_COMMAND)" ./cmd/coppice

.PHONY: test-env
test-env: test-command ## Make the Python environments of the tests: .cache/python, those of the sample tools
ifeq ($(COPPICE_TEST_PYTHON),)
	$(say) "Python environment of the tests in .cache/python (made once, about a minute)"
	@$(TEST_COMMAND) setup --dir .cache/python --quiet-if-ready
endif
	@cmp -s test/testpython/extras.txt $(CACHE)/python-extras/extras.txt || { \
		printf '==> pandas, matplotlib, tqdm and ipywidgets for the tests in .cache/python-extras (once, about a minute)\n'; \
		rm -rf $(CACHE)/python-extras; \
		"$(TEST_PYTHON)" -m pip install -q --disable-pip-version-check --require-hashes --only-binary :all: --no-deps \
			--target $(CACHE)/python-extras -r test/testpython/extras.txt && \
		cp test/testpython/extras.txt $(CACHE)/python-extras/extras.txt; }
	@$(TEST_COMMAND) tool setup --all --tools examples/tools --no-server --quiet-if-ready

.PHONY: test-env-enterprise
test-env-enterprise: $(if $(COPPICE_TEST_ENTERPRISE_PYTHON),,$(CACHE)/enterprise/ready) ## Make the environment of a Jupyter Enterprise Gateway in .cache/enterprise

$(CACHE)/enterprise/ready: test/external/enterprise-requirements.txt
	$(say) "Enterprise Gateway in .cache/enterprise (made once, about a minute)"
	@[ -n "$(ENTERPRISE_BASE)" ] || { echo "make: Enterprise Gateway needs Python 3.10 or 3.11; install one, or name it: make ENTERPRISE_BASE=/path/to/python" >&2; exit 1; }
	@"$(ENTERPRISE_BASE)" -m venv --clear "$(CACHE)/enterprise"
	@"$(CACHE)/enterprise/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r $<
	@touch "$@"

TEST = RAPID_CHECKS=$(RAPID_CHECKS) COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go test -vet=off $(STRIPPED) $(RACE) $(AT_ONCE) -timeout 45m $(TESTFLAGS)

# Where the environments have to be made, which waits for the network, the tests are compiled
# meanwhile, without being linked. What does not compile is told by go test.
.PHONY: test-compiled
ifneq ($(wildcard $(CACHE)/python),)
test-compiled: test-env
else
test-compiled: test-command
	@compiled=; if [ "$(PKG)" = ./... ]; then go list -export -test $(RACE) ./... >/dev/null 2>&1 & compiled=$$!; fi; \
	$(MAKE) --no-print-directory test-env || { status=$$?; [ -z "$$compiled" ] || kill $$compiled; exit $$status; }; \
	[ -z "$$compiled" ] || wait $$compiled || true
endif

.PHONY: test
test: test-compiled ## Run the tests with the race detector, but for those of the whole (sets up what they need; "make check" vets them)
	$(say) "go test $(RACE) $(PKG)$(if $(filter ./...,$(PKG)), without those of the whole: make test-system)"
	@[ -n "$(RACE)" ] || echo "    no C compiler: without the race detector"
	@packages="$(PKG)"; if [ "$$packages" = ./... ]; then \
		all="$$(go list ./...)" && system="$$(go list $(SYSTEM))" || exit 1; \
		packages="$(LONG) $$(echo "$$all" | grep -vxF "$$system")"; fi; \
	$(TEST) $$packages

.PHONY: test-system
test-system: test-env ## Run the tests of the whole: the command, sessions across packages, ways out of walls, killed hosts
	$(say) "go test $(RACE) $(SYSTEM)"
	@$(TEST) $(SYSTEM)

.PHONY: test-all
test-all: test-env ## Run both at once, which takes less time than one after the other
	$(say) "go test $(RACE) ./..."
	@$(TEST) $(SYSTEM) $(LONG) ./...

.PHONY: test-full
test-full: test-env test-env-enterprise ## Run all tests three times in random order, the long forms of those that have one (COPPICE_TEST_FULL)
	$(say) "go test $(RACE) -count=3 -shuffle=on $(PKG)"
	@COPPICE_TEST_FULL=1 COPPICE_TEST_PYTHON="$(TEST_PYTHON)" COPPICE_TEST_ENTERPRISE_PYTHON="$(ENTERPRISE_PYTHON)" go test $(STRIPPED) $(RACE) -count=3 -shuffle=on -timeout 60m $(TESTFLAGS) $(LONGEST) $(PKG)
	@$(MAKE) --no-print-directory test-vet
	@$(MAKE) --no-print-directory test-starved
	@$(MAKE) --no-print-directory test-adapters MODULES="$(filter-out $(ENGINE_MODULES),$(MODULES))"
	@COPPICE_TEST_FULL=1 $(MAKE) --no-print-directory test-engines
	@$(MAKE) --no-print-directory test-docs
	@if [ -n "$(OPENAPI_BASE)" ]; then $(MAKE) --no-print-directory test-frameworks; else \
		echo "==> Python 3.11 is missing: the agents of examples/frameworks were not run (make test-frameworks)"; fi
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) --no-print-directory test-clients-fleet; else \
		echo "==> node or npm is missing: the clients for Python and TypeScript were not tested (make test-clients)"; fi
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) --no-print-directory test-mcp-fleet; else \
		echo "==> node or npm is missing: coppice mcp was not driven by the SDK for TypeScript (make test-mcp)"; fi
	@if command -v node >/dev/null && command -v npm >/dev/null && [ -n "$(OPENAPI_BASE)" ]; then $(MAKE) --no-print-directory test-openapi; else \
		echo "==> node, npm or Python 3.11 is missing: the HTTP API was not held against its document by others (make test-openapi)"; fi
	@$(MAKE) --no-print-directory test-monitoring
	@$(MAKE) --no-print-directory test-collector
	@$(MAKE) --no-print-directory test-systems
	@if command -v node >/dev/null && command -v npm >/dev/null && [ -n "$(OPENAPI_BASE)" ]; then $(MAKE) --no-print-directory test-dialects-fleet; else \
		echo "==> node, npm or Python 3.11 is missing: coppice serve --e2b and --jupyter were not driven by the clients of others (make test-dialects)"; fi
	@if command -v node >/dev/null && [ -n "$(CHROMIUM)" ]; then $(MAKE) --no-print-directory test-browser; else \
		echo "==> node or Chromium is missing: the live view was not driven in a browser (make test-browser)"; fi

.PHONY: coverage
coverage: test-env ## Say how much of each package the tests run, programs that they start too (PKG); at least 70 %
	$(say) "coverage of $(PKG)"
	@rm -rf "$(CACHE)/coverage" && mkdir -p "$(CACHE)/coverage/programs"
	@COPPICE_TEST_COVERAGE="$(HERE)/coverage/programs" COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go test -vet=off $(AT_ONCE) -timeout 90m -coverpkg=./... -coverprofile="$(CACHE)/coverage/tests.out" $(TESTFLAGS) $(LONGEST) $(PKG)
	@go tool covdata textfmt -i="$(CACHE)/coverage/programs" -o "$(CACHE)/coverage/programs.out"
	@go run ./test/coverage -out "$(CACHE)/coverage/packages.txt" "$(CACHE)/coverage/tests.out" "$(CACHE)/coverage/programs.out" -- $(PKG)

# How often make flaky runs the tests, which, and beside how many burners per processor.
N ?= 10
RUN ?=
LOAD ?= 5

.PHONY: flaky
flaky: test-env ## Run tests N (10) times beside a load, keep what failures say (PKG, RUN, LOAD)
	@COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go run ./test/flaky -n "$(N)" -run "$(RUN)" -load "$(LOAD)" -keep "$(CACHE)/flaky" $(RACE) $(PKG)

# More flags for the suite, see go run ./test/starve/suite -help.
STARVED_FLAGS ?=

# The folders whose code is changed, one place at a time, and which places: a regular expression
# for file:line:column KIND, such as life.go:33. RUN names the tests, for who writes one.
MUTANTS ?= supervisor/strategy supervisor actors/gateway fleet
AT ?=
GREMLINS := $(CACHE)/bin/gremlins

# It works on a copy, so that one may go on here. gremlins finds the places, and test/mutants
# tries them: gremlins takes slow tests for hung ones, and what is slow depends on the machine.
.PHONY: mutants
mutants: need-go $(GREMLINS) ## Change the code in MUTANTS in each place (AT), and see that a test notices (half an hour for all of it)
	@rm -rf "$(CACHE)/mutants" && mkdir -p "$(CACHE)/mutants/tree"
	@git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$(CACHE)/mutants/tree"
	@go build -o "$(CACHE)/bin/mutants" ./test/mutants
	@status=0; for dir in $(MUTANTS); do \
		printf '==> changes in %s\n' "$$dir"; found="$(HERE)/mutants/$$(echo "$$dir" | tr / -).json"; \
		( cd "$(CACHE)/mutants/tree" && "$(HERE)/bin/gremlins" unleash "./$$dir" --dry-run --silent --exclude-files '/' \
			--invert-logical --invert-loopctrl --invert-assignments --remove-self-assignments -o "$$found" ) && \
		RAPID_CHECKS=10 "$(HERE)/bin/mutants" -tree "$(HERE)/mutants/tree" -package "$$dir" -at "$(AT)" -run "$(RUN)" "$$found" || status=1; \
	done; exit $$status

$(GREMLINS): tools/mutants/go.mod tools/mutants/go.sum
	$(say) "build the pinned gremlins (once)"
	@go -C tools/mutants build -o "$(HERE)/bin/gremlins" github.com/go-gremlins/gremlins/cmd/gremlins

.PHONY: test-starved
test-starved: test-env ## Run the tests that time takes part in beside a load of 10 per processor (20 minutes)
	$(say) "tests on a starved machine"
	@COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go run ./test/starve/suite $(STARVED_FLAGS)

# Packages of Debian's unstable release, unpacked, where this machine has apt-get: what it has is used.
.PHONY: pythons
pythons: test-env ## Get Python 3.14 and 3.15 into .cache/pythons, from packages of Debian, which are not installed
	$(say) "Python 3.14 and 3.15 in .cache/pythons"
	@"$(TEST_PYTHON)" -B test/systems/debian.py "$(CACHE)/pythons" 3.14 3.15

# Some of them: make test-systems PYTHONS="/usr/bin/python3.9".
.PHONY: test-systems
test-systems: need-go $(if $(PYTHONS),,pythons) ## Hold the runner backend to its behaviours on each Python that is found, and as on older kernels (PYTHONS)
	$(say) "the runner backend on other Pythons and kernels"
	@mkdir -p "$(CACHE)/systems" && go test -c -o "$(CACHE)/systems/conformance" ./test/conformance && go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@python3 -B test/systems/run.py "$(HERE)/systems/conformance" "$(HERE)/bin/coppice" $(PYTHONS)

# Their go.mod names a released version of coppice; a copy of it puts the root as it is
# here in that place, and takes newer dependencies that the root may have.
.PHONY: test-adapters
test-adapters: test-env need-go ## Test the adapters for agent frameworks, the engines of a fleet, store/blobstore and cmd/coppice-fleet, each a module of its own (MODULES)
	@mkdir -p "$(CACHE)/adapters"
	@for module in $(MODULES); do \
		file="$(HERE)/adapters/$$(basename "$$module").mod"; \
		printf '==> go vet, go test %s\n' "$$module"; \
		cp "$$module/go.mod" "$$file" && cp "$$module/go.sum" "$${file%.mod}.sum" && \
		go mod edit $(foreach one,$(STANDS_HERE),"$(one)") "$$file" && \
		( cd "$$module" && go vet -mod=mod -modfile="$$file" $(TAGS) ./... && \
			COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go test -mod=mod -modfile="$$file" $(TAGS) $(RACE) -timeout 30m $(TESTFLAGS) ./... && \
			{ ! grep -lq '^//go:build !race' *_test.go || go test -mod=mod -modfile="$$file" -timeout 10m $(TESTFLAGS) ./...; } ) || exit 1; \
	done

# Real engines, which tools/engines pins: some five minutes of processor to compile.
$(CACHE)/bin/etcd $(CACHE)/bin/kube-apiserver: tools/engines/go.mod tools/engines/go.sum
	@printf '==> build the pinned etcd and kube-apiserver (once, takes minutes)\n'
	@go -C tools/engines build -o "$(HERE)/bin/etcd" go.etcd.io/etcd/server/v3
	@go -C tools/engines build -o "$(HERE)/bin/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver

# The controller that binds sandboxes, and where its definitions are.
SANDBOXES := sigs.k8s.io/agent-sandbox
$(CACHE)/bin/agent-sandbox-controller: tools/sandboxes/go.mod tools/sandboxes/go.sum
	@printf '==> build the pinned controller of agent-sandbox (once, takes a minute)\n'
	@go -C tools/sandboxes build -o "$(HERE)/bin/agent-sandbox-controller" $(SANDBOXES)/cmd/agent-sandbox-controller

# Whose definition of a ServiceMonitor the one in examples/kubernetes is held against.
OPERATOR := github.com/prometheus-operator/prometheus-operator

.PHONY: test-engines
test-engines: $(CACHE)/bin/etcd $(CACHE)/bin/kube-apiserver $(CACHE)/bin/agent-sandbox-controller ## Test fleets on real servers of etcd and an API server of Kubernetes with agent-sandbox, which it builds (once, minutes)
	@go -C tools/crds mod download $(OPERATOR) && go -C tools/sandboxes mod download $(SANDBOXES)
	@COPPICE_TEST_ETCD="$(HERE)/bin/etcd" COPPICE_TEST_KUBE_APISERVER="$(HERE)/bin/kube-apiserver" \
		COPPICE_TEST_AGENT_SANDBOX="$(HERE)/bin/agent-sandbox-controller" COPPICE_TEST_AGENT_SANDBOX_CRDS="$$(go -C tools/sandboxes list -m -f '{{.Dir}}' $(SANDBOXES))/k8s/crds" \
		COPPICE_TEST_SERVICE_MONITOR="$$(go -C tools/crds list -m -f '{{.Dir}}' $(OPERATOR))/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml" \
		$(MAKE) --no-print-directory test-adapters MODULES="$(ENGINE_MODULES)" TAGS="-tags engines" TESTFLAGS="-count=1 $(TESTFLAGS)"

.PHONY: coppice-fleet
coppice-fleet: need-go ## Build coppice-fleet, whose servers can be nodes of a fleet, as .cache/bin/coppice-fleet
	@mkdir -p "$(CACHE)/adapters" "$(CACHE)/bin"
	@cp cmd/coppice-fleet/go.mod "$(HERE)/adapters/build-fleet.mod" && cp cmd/coppice-fleet/go.sum "$(HERE)/adapters/build-fleet.sum" && \
		go mod edit $(foreach one,$(STANDS_HERE),"$(one)") "$(HERE)/adapters/build-fleet.mod" && \
		cd cmd/coppice-fleet && go build -mod=mod -modfile="$(HERE)/adapters/build-fleet.mod" -o "$(HERE)/bin/coppice-fleet" .

.PHONY: bench-fleet
bench-fleet: test-env need-go ## Measure a fleet: a front, claims, 50,000 of them, failover (the machine is for it alone, 4 minutes)
	@COPPICE_FLEET_FIGURES=1 $(MAKE) --no-print-directory test-adapters MODULES=cmd/coppice-fleet RACE= TESTFLAGS="-count=1 -v -run TestFigures"

# The version of coppice that they require is that of the release they are tagged with.
.PHONY: adapters-require
adapters-require: need-go ## Write the version that the adapters require into their go.mod (NEXT=v0.2.0)
	@[ -n "$(NEXT)" ] || { echo "make: name the version: make adapters-require NEXT=v0.2.0" >&2; exit 1; }
	@for module in agent/*/go.mod fleet/*/go.mod store/*/go.mod cmd/*/go.mod; do go mod edit -require="github.com/coppice-run/coppice@$(NEXT)" "$$module" || exit 1; done
	@for module in fleet/*/go.mod; do go mod edit -require="github.com/coppice-run/coppice/$$(dirname "$$module")@$(NEXT)" cmd/coppice-fleet/go.mod || exit 1; done

.PHONY: pictures
pictures: test-env ## Draw the pictures of the README anew, from real screens (of the live view where node and Chromium are)
	$(say) "pictures of real screens in test/repl/pictures"
	@COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go test ./test/repl -count=1 -run '^(TestPictures|TestMovingPicture)$$' -update
	@if command -v node >/dev/null && [ -n "$(CHROMIUM)" ]; then $(MAKE) --no-print-directory live-pictures; else \
		echo "==> node or Chromium is missing: the pictures of the live view stay as they are (make live-pictures)"; fi

.PHONY: live-pictures
live-pictures: browser-env ## Take the pictures of the live view anew (needs node, npm and Chromium)
	$(say) "pictures of the live view in cmd/internal/liveview/testdata"
	@CHROMIUM="$(CHROMIUM)" node "$(HERE)/browser/pictures.mjs" "$(HERE)/bin/coppice" "$(TEST_PYTHON)" cmd/internal/liveview/testdata

# What drives the live view, in .cache/browser, with the modules of the page beside it.
.PHONY: browser-env
browser-env: test-env
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: the browser test needs node and npm; install them" >&2; exit 1; }
	@[ -n "$(CHROMIUM)" ] || { echo "make: no Chromium was found; install one, or name it: make test-browser CHROMIUM=/path/to/chromium" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/browser/assets" "$(CACHE)/pictures" && rm -f "$(CACHE)"/browser/assets/* && cp test/browser/* "$(CACHE)/browser/" && cp cmd/internal/liveview/assets/*.js test/browser/vendor-*.d.ts "$(CACHE)/browser/assets/" && rm -f "$(CACHE)"/browser/assets/vendor-*.js
	@cd "$(CACHE)/browser" && npm ci --silent --no-audit --no-fund
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice

.PHONY: test-browser
test-browser: browser-env ## Drive the live view in a headless Chromium (needs node, npm and Chromium)
	$(say) "the live view in a browser"
	@cd "$(CACHE)/browser" && npx tsc && ASSETS="$(HERE)/browser/assets" node --test units.test.mjs
	@for test in fleet evil many; do CHROMIUM="$(CHROMIUM)" node "$(HERE)/browser/$$test.mjs" cmd/internal/liveview "$(HERE)/pictures" || exit 1; done
	@for test in live-view rooms; do CHROMIUM="$(CHROMIUM)" node "$(HERE)/browser/$$test.mjs" "$(HERE)/bin/coppice" "$(TEST_PYTHON)" "$(HERE)/pictures" || exit 1; done
	@CHROMIUM="$(CHROMIUM)" node "$(HERE)/browser/tasks.mjs" "$(HERE)/bin/coppice" "$(TEST_PYTHON)" "$(HERE)/pictures" cmd/internal/liveview

.PHONY: bench-browser
bench-browser: browser-env ## Measure the live view with five thousand sessions: frames, the page's own work, memory
	$(say) "five thousand sessions and 200 events a second, into .cache/bench/browser.json"
	@mkdir -p "$(CACHE)/bench"
	@MANY_SECONDS=$(or $(MANY_SECONDS),20) CHROMIUM="$(CHROMIUM)" node "$(HERE)/browser/many.mjs" cmd/internal/liveview "$(HERE)/pictures" "$(HERE)/bench/browser.json"

# The editor and the terminal of the live view are made of packages of npm. What is made is
# checked in, so that nothing else needs node; a test says when it is out of date.
.PHONY: liveview-assets
liveview-assets: ## Make the bundles of the live view again (needs node 20 and npm)
	$(say) "the bundles of the live view"
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: the bundles need node 20 or newer and npm; install them" >&2; exit 1; }
	@mkdir -p "$(CACHE)/liveview-bundle" && cp cmd/internal/liveview/bundle/*.js cmd/internal/liveview/bundle/*.mjs cmd/internal/liveview/bundle/package*.json "$(CACHE)/liveview-bundle/"
	@cd "$(CACHE)/liveview-bundle" && npm ci --silent --no-audit --no-fund --ignore-scripts && node build.mjs "$(CURDIR)/cmd/internal/liveview/assets" "$(CURDIR)/cmd/internal/liveview/bundle"
	@go test -count=1 ./test/notice -update

.PHONY: test-monitoring
test-monitoring: test-env $(if $(findstring /,$(PROMTOOL)),$(PROMTOOL)) ## Have promtool look at the metrics of a server and at the alerts in examples/monitoring, and try these
	$(say) "the alerts, with promtool"
	@"$(PROMTOOL)" check rules --lint=all --lint-fatal examples/monitoring/alerts.yaml
	@"$(PROMTOOL)" test rules examples/monitoring/alerts_test.yaml
	$(say) "the metrics of a server, with promtool"
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(TEST_PYTHON)" test/monitoring/scrape.py "$(CACHE)/bin/coppice" "$(PROMTOOL)"

.PHONY: test-collector
test-collector: test-env ## Have the receiver of an OpenTelemetry collector take the traces of a server
	$(say) "traces, in a collector"
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@COPPICE="$(HERE)/bin/coppice" COPPICE_TEST_PYTHON="$(abspath $(TEST_PYTHON))" go -C tools/collector test -count=1 -v .

# Without what finds servers to scrape, which is most of it and checks nothing here.
$(CACHE)/bin/promtool: tools/promtool/go.mod tools/promtool/go.sum
	$(say) "build the pinned promtool (once, takes minutes)"
	@go -C tools/promtool build -tags remove_all_sd -o "$(HERE)/bin/promtool" github.com/prometheus/prometheus/cmd/promtool

.PHONY: test-mcp
test-mcp: test-env ## Drive coppice mcp with the MCP SDK for TypeScript, the inspector and the conformance suite (needs node 20 and npm)
	$(say) "coppice mcp with clients of others"
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: this test needs node 20 or newer and npm; install them" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/mcp" && cp test/mcp/*.json test/mcp/*.mjs "$(CACHE)/mcp/"
	@cd "$(CACHE)/mcp" && npm ci --silent --no-audit --no-fund --ignore-scripts
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@node "$(CACHE)/mcp/mcp.mjs" "$(CACHE)/bin/coppice" "$(TEST_PYTHON)"
	@node "$(CACHE)/mcp/conformance.mjs" "$(CACHE)/bin/coppice" "$(TEST_PYTHON)"

.PHONY: test-mcp-fleet
test-mcp-fleet: test-mcp coppice-fleet ## Drive coppice-fleet serve --mcp, by a front, with what test-mcp drives one server with
	$(say) "coppice-fleet serve --mcp, by a front"
	@COPPICE_FLEET="$(HERE)/bin/coppice-fleet" node "$(CACHE)/mcp/mcp.mjs" "$(CURDIR)/test/dialects/fleet.py" "$(TEST_PYTHON)"
	@COPPICE_FLEET="$(HERE)/bin/coppice-fleet" node "$(CACHE)/mcp/conformance.mjs" "$(CURDIR)/test/dialects/fleet.py" "$(TEST_PYTHON)"

.PHONY: test-openapi
test-openapi: test-env ## Hold the HTTP API against its document with schemathesis and generated clients (needs Python 3.11, node 20 and npm)
	$(say) "the HTTP API and its document"
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: this test needs Python 3.11 or newer; install one, or name it: make test-openapi OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: this test needs node 20 or newer and npm; install them" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/openapi"
	@cmp -s test/openapi/requirements.txt "$(CACHE)/openapi/python-ready.txt" || { \
		printf '==> schemathesis and a generator of clients in .cache/openapi (once, about a minute)\n'; \
		"$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/openapi/venv" && \
		"$(CACHE)/openapi/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r test/openapi/requirements.txt && \
		cp test/openapi/requirements.txt "$(CACHE)/openapi/python-ready.txt"; }
	@rm -rf "$(CACHE)/openapi/client" && cp -R test/openapi/. "$(CACHE)/openapi/"
	@cd "$(CACHE)/openapi" && npm ci --silent --no-audit --no-fund --ignore-scripts
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/openapi/venv/bin/python" -B "$(CACHE)/openapi/run.py" "$(HERE)/bin/coppice" "$(TEST_PYTHON)" "$(CACHE)/openapi"

.PHONY: clients-venv
clients-venv:
	@mkdir -p "$(CACHE)/clients"
	@cmp -s clients/python/requirements-build.txt "$(CACHE)/clients/python-ready.txt" || { \
		printf '==> what builds the Python client, in .cache/clients/venv\n'; \
		python3 -m venv --clear "$(CACHE)/clients/venv" && \
		"$(CACHE)/clients/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r clients/python/requirements-build.txt && \
		cp clients/python/requirements-build.txt "$(CACHE)/clients/python-ready.txt"; }

# The folders are copied, so that nothing is made among the sources.
.PHONY: kernel-wheel
kernel-wheel: clients-venv ## Build the kernel for Jupyter in .cache/clients, a wheel (needs Python 3.9)
	$(say) "the wheel of the kernel for Jupyter"
	@rm -rf "$(CACHE)/clients/jupyter" "$(CACHE)"/clients/dist/coppice_kernel-*.whl && mkdir -p "$(CACHE)/clients/dist" && cp -R clients/jupyter "$(CACHE)/clients/jupyter"
	@cd "$(CACHE)/clients/jupyter" && SOURCE_DATE_EPOCH="$$(git -C "$(CURDIR)" log -1 --format=%ct)" ../venv/bin/python -m flit_core.wheel --outdir ../dist

.PHONY: client-wheel
client-wheel: clients-venv
	$(say) "the wheel of the Python client"
	@rm -rf "$(CACHE)/clients/python" "$(CACHE)"/clients/dist/coppice-*.whl && mkdir -p "$(CACHE)/clients/dist" && cp -R clients/python "$(CACHE)/clients/python"
	@cd "$(CACHE)/clients/python" && SOURCE_DATE_EPOCH="$$(git -C "$(CURDIR)" log -1 --format=%ct)" ../venv/bin/python -m flit_core.wheel --outdir ../dist

.PHONY: clients
clients: need-go clients-venv ## Build the clients in .cache/clients: wheels for Python and Jupyter, a package for TypeScript (needs Python 3.9, node 20 and npm)
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: the client for TypeScript needs node 20 or newer and npm; install them" >&2; exit 1; }
	@rm -rf "$(CACHE)/clients/dist" && mkdir -p "$(CACHE)/clients/dist"
	@mkdir -p "$(CACHE)/clients/typescript" && rm -rf "$(CACHE)/clients/typescript/src" "$(CACHE)/clients/typescript/tests" "$(CACHE)/clients/typescript/dist" && cp -R clients/typescript/. "$(CACHE)/clients/typescript/"
	$(say) "the package of the TypeScript client"
	@cd "$(CACHE)/clients/typescript" && npm ci --silent --no-audit --no-fund --ignore-scripts && node_modules/.bin/tsc && npm pack --silent --pack-destination ../dist
	@$(MAKE) --no-print-directory client-wheel kernel-wheel

.PHONY: test-clients
test-clients: test-env clients ## Run the clients for Python and TypeScript against a real server
	@mkdir -p "$(CACHE)/bin" && go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	$(say) "the Python client, from its wheel"
	@rm -rf "$(CACHE)/clients/installed" && "$(CACHE)/clients/venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps --target "$(CACHE)/clients/installed" "$(CACHE)"/clients/dist/coppice-*.whl
	@cd clients/python/tests && COPPICE="$(HERE)/bin/coppice" PYTHON="$(TEST_PYTHON)" PYTHONPATH="$(HERE)/clients/installed" "$(HERE)/clients/venv/bin/python" -B -m unittest
	@"$(CACHE)/clients/venv/bin/python" -m mypy --strict --python-version 3.9 --cache-dir "$(CACHE)/clients/mypy" clients/python/src
	$(say) "the TypeScript client"
	@cd "$(CACHE)/clients/typescript" && README="$(CURDIR)/README.md" COPPICE="$(HERE)/bin/coppice" PYTHON="$(TEST_PYTHON)" node --test tests/

.PHONY: test-clients-fleet
test-clients-fleet: test-clients coppice-fleet ## Run the clients for Python and TypeScript against a fleet, by its front
	$(say) "the clients, by a front"
	@cd clients/python/tests && COPPICE_FLEET="$(HERE)/bin/coppice-fleet" COPPICE="$(CURDIR)/test/dialects/fleet.py" PYTHON="$(TEST_PYTHON)" PYTHONPATH="$(HERE)/clients/installed" "$(HERE)/clients/venv/bin/python" -B -m unittest
	@cd "$(CACHE)/clients/typescript" && README="$(CURDIR)/README.md" COPPICE_FLEET="$(HERE)/bin/coppice-fleet" COPPICE="$(CURDIR)/test/dialects/fleet.py" PYTHON="$(TEST_PYTHON)" node --test tests/

.PHONY: test-dialects
test-dialects: test-env test-jupyter test-jupyter-suites test-papermill ## Drive coppice serve --e2b with every method of E2B's SDKs, and --jupyter with clients of Jupyter (needs Python 3.11, node 20 and npm)
	$(say) "coppice serve --e2b with E2B's SDKs"
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: this test needs Python 3.11 or newer; install one, or name it: make test-dialects OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: this test needs node 20 or newer and npm; install them" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/dialects"
	@cmp -s test/dialects/requirements.txt "$(CACHE)/dialects/python-ready.txt" || { \
		"$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/dialects/venv" && \
		"$(CACHE)/dialects/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r test/dialects/requirements.txt && \
		cp test/dialects/requirements.txt "$(CACHE)/dialects/python-ready.txt"; }
	@cp test/dialects/*.json test/dialects/*.mjs test/dialects/*.py "$(CACHE)/dialects/"
	@cd "$(CACHE)/dialects" && npm ci --silent --no-audit --no-fund --ignore-scripts
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/dialects/venv/bin/python" -B "$(CACHE)/dialects/run.py" "$(CACHE)/bin/coppice" "$(TEST_PYTHON)" "$(CACHE)/python-extras" "$(CACHE)/dialects"

.PHONY: test-dialects-fleet
test-dialects-fleet: test-env coppice-fleet test-dialects ## Drive a fleet, by its front, with what test-dialects drives one server with
	$(say) "coppice-fleet serve --e2b and --jupyter, by a front"
	@"$(CACHE)/dialects/venv/bin/python" -B "$(CACHE)/dialects/run.py" "$(CACHE)/bin/coppice" "$(TEST_PYTHON)" "$(CACHE)/python-extras" "$(CACHE)/dialects" "$(CACHE)/bin/coppice-fleet"
	@"$(CACHE)/jupyter/venv/bin/python" -B "$(CACHE)/jupyter/run.py" "$(CACHE)/bin/coppice" "$(CACHE)/jupyter" "$(CACHE)/bin/coppice-fleet"

# What test-jupyter and test-papermill share.
.PHONY: jupyter-venv
jupyter-venv: kernel-wheel
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: this test needs Python 3.11 or newer; install one, or name it: make test-jupyter OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/jupyter"
	@cmp -s test/dialects/jupyter/requirements.txt "$(CACHE)/jupyter/python-ready.txt" || { \
		"$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/jupyter/venv" && \
		"$(CACHE)/jupyter/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r test/dialects/jupyter/requirements.txt && \
		cp test/dialects/jupyter/requirements.txt "$(CACHE)/jupyter/python-ready.txt"; }
	@"$(CACHE)/jupyter/venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps --force-reinstall "$(CACHE)"/clients/dist/coppice_kernel-*.whl

.PHONY: test-jupyter
test-jupyter: need-go jupyter-venv ## Drive coppice serve --jupyter and the kernel for Jupyter with Jupyter's clients and test suite (needs Python 3.11, node 20 and npm)
	$(say) "coppice serve --jupyter with jupyter_kernel_test, jupyter_kernel_client, nbconvert, papermill, JupyterLab's services and VS Code's requests"
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: this test needs node 20 or newer and npm; install them" >&2; exit 1; }
	@cp test/dialects/jupyter/*.json test/dialects/jupyter/*.mjs test/dialects/jupyter/*.py test/dialects/fleet.py "$(CACHE)/jupyter/"
	@cd "$(CACHE)/jupyter" && npm ci --silent --no-audit --no-fund --ignore-scripts
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/jupyter/venv/bin/python" -B "$(CACHE)/jupyter/run.py" "$(CACHE)/bin/coppice" "$(CACHE)/jupyter"

# The tests of both stand in their source archives. What reads those, hatchling, is installed before,
# so that nothing comes without its hash. One of them: make test-jupyter-suites SUITES=nbclient.
.PHONY: test-jupyter-suites
test-jupyter-suites: need-go kernel-wheel ## Run the test suites of nbclient and jupyter_client, and libraries, on the kernel for Jupyter (SUITES; needs Python 3.11)
	$(say) "the suites of nbclient and jupyter_client on kernels of coppice"
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: this test needs Python 3.11 or newer; install one, or name it: make test-jupyter-suites OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/suites"
	@cat test/dialects/suites/requirements.txt test/dialects/suites/sources.txt | cmp -s - "$(CACHE)/suites/ready.txt" || { \
		rm -rf "$(CACHE)/suites/sources" && "$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/suites/venv" && \
		"$(CACHE)/suites/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r test/dialects/suites/requirements.txt && \
		"$(CACHE)/suites/venv/bin/python" -m pip download -q --disable-pip-version-check --no-deps --require-hashes --no-binary :all: --no-build-isolation -d "$(CACHE)/suites/sources" -r test/dialects/suites/sources.txt && \
		cat test/dialects/suites/requirements.txt test/dialects/suites/sources.txt >"$(CACHE)/suites/ready.txt"; }
	@"$(CACHE)/suites/venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps --force-reinstall "$(CACHE)"/clients/dist/coppice_kernel-*.whl
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/suites/venv/bin/python" -B test/dialects/suites/run.py "$(CACHE)/bin/coppice" "$(CACHE)/suites" $(SUITES)

# Some of the notebooks: make test-papermill NOTEBOOKS="rich errors".
.PHONY: test-papermill
test-papermill: test-env jupyter-venv ## Run notebooks with papermill and nbconvert through the kernel for Jupyter, and compare with ipykernel (NOTEBOOKS; needs Python 3.11)
	$(say) "papermill and nbconvert on kernels of coppice, beside ipykernel"
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/jupyter/venv/bin/python" -B test/dialects/notebooks/run.py "$(CACHE)/bin/coppice" "$(TEST_PYTHON)" test/integration/testdata/notebooks "$(CACHE)/jupyter" $(NOTEBOOKS)

# How many kernels: make bench-jupyter KERNELS=20.
.PHONY: bench-jupyter
bench-jupyter: test-env jupyter-venv ## Measure coppice serve --jupyter beside a Jupyter Server with ipykernel (KERNELS=50; needs Python 3.11)
	$(say) "kernels of coppice beside those of a Jupyter Server"
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/jupyter/venv/bin/python" -B test/dialects/figures/run.py "$(CACHE)/bin/coppice" "$(TEST_PYTHON)" "$(CACHE)/jupyter" $(KERNELS)

.PHONY: test-lab
test-lab: test-env ## Drive JupyterLab, with its kernels in coppice serve --jupyter, in a headless Chromium (needs Python 3.11, node 20, npm and Chromium)
	$(say) "JupyterLab in a browser"
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: this test needs Python 3.11 or newer; install one, or name it: make test-lab OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "make: this test needs node 20 or newer and npm; install them" >&2; exit 1; }
	@[ -n "$(CHROMIUM)" ] || { echo "make: no Chromium was found; install one, or name it: make test-lab CHROMIUM=/path/to/chromium" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/lab"
	@cmp -s test/dialects/lab/requirements.txt "$(CACHE)/lab/python-ready.txt" || { \
		"$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/lab/venv" && \
		"$(CACHE)/lab/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r test/dialects/lab/requirements.txt && \
		cp test/dialects/lab/requirements.txt "$(CACHE)/lab/python-ready.txt"; }
	@cp test/dialects/lab/*.json test/dialects/lab/*.mjs test/dialects/lab/*.py "$(CACHE)/lab/"
	@cd "$(CACHE)/lab" && npm ci --silent --no-audit --no-fund --ignore-scripts
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@CHROMIUM="$(CHROMIUM)" "$(CACHE)/lab/venv/bin/python" -B "$(CACHE)/lab/run.py" "$(CACHE)/bin/coppice" "$(TEST_PYTHON)" "$(CACHE)/python-extras" "$(CACHE)/lab" "$(CACHE)/pictures"

# Some of the examples: make test-frameworks FRAMEWORKS=with_langgraph. They are copied, so
# that node_modules is not among the sources.
.PHONY: test-frameworks
test-frameworks: test-env $(if $(shell command -v node && command -v npm),clients,client-wheel) ## Run agents of LangGraph, OpenAI Agents SDK, Pydantic AI, smolagents and AI SDK with a scripted model (needs Python 3.11; AI SDK node and npm)
	$(say) "agents of other people's frameworks"
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: this test needs Python 3.11 or newer; install one, or name it: make test-frameworks OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@mkdir -p "$(CACHE)/bin" "$(CACHE)/frameworks"
	@cmp -s examples/frameworks/requirements.txt "$(CACHE)/frameworks/python-ready.txt" || { \
		printf '==> the frameworks in .cache/frameworks (once, about a minute)\n'; \
		"$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/frameworks/venv" && \
		"$(CACHE)/frameworks/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r examples/frameworks/requirements.txt && \
		cp examples/frameworks/requirements.txt "$(CACHE)/frameworks/python-ready.txt"; }
	@"$(CACHE)/frameworks/venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps --force-reinstall "$(CACHE)"/clients/dist/coppice-*.whl
	@rm -f "$(CACHE)"/frameworks/with_* && cp examples/frameworks/with_* examples/frameworks/package*.json "$(CACHE)/frameworks/"
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		cd "$(CACHE)/frameworks" && npm ci --silent --no-audit --no-fund --ignore-scripts && \
		mkdir -p node_modules/@coppice && ln -sfn "$(HERE)/clients/typescript" node_modules/@coppice/client; fi
	@go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@"$(CACHE)/frameworks/venv/bin/python" -B test/frameworks/run.py "$(HERE)/bin/coppice" "$(TEST_PYTHON)" "$(HERE)/frameworks" $(FRAMEWORKS)

.PHONY: docs
docs: ## Build the documentation site in .cache/docs/site, and follow its links (needs Python 3.11)
	$(say) "the documentation site"
	@[ -n "$(OPENAPI_BASE)" ] || { echo "make: the site needs Python 3.11 or newer; install one, or name it: make docs OPENAPI_BASE=/path/to/python" >&2; exit 1; }
	@mkdir -p "$(CACHE)/docs"
	@cmp -s tools/docs/requirements.txt "$(CACHE)/docs/ready.txt" || { \
		printf '==> mkdocs-material in .cache/docs (once, about a minute)\n'; \
		"$(OPENAPI_BASE)" -m venv --clear "$(CACHE)/docs/venv" && \
		"$(CACHE)/docs/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r tools/docs/requirements.txt && \
		cp tools/docs/requirements.txt "$(CACHE)/docs/ready.txt"; }
	@NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true PYTHONDONTWRITEBYTECODE=1 "$(CACHE)/docs/venv/bin/python" -m mkdocs build --strict -f tools/docs/mkdocs.yml -d "$(HERE)/docs/site"
	@"$(CACHE)/docs/venv/bin/python" tools/docs/links.py "$(CACHE)/docs/site" .

# More flags for the suite, see go run ./test/documents/suite -help.
DOCS_FLAGS ?=

# Each document is followed as a reader would, in a home of its own.
.PHONY: test-docs
test-docs: test-env $(if $(shell command -v node && command -v npm),clients) ## Run the blocks of code in README.md, docs and the clients' READMEs, against a real server (TypeScript needs node and npm)
	@mkdir -p "$(CACHE)/bin" && go build -o "$(CACHE)/bin/coppice" ./cmd/coppice
	$(say) "the blocks of code of the documents"
	@command -v node >/dev/null && command -v npm >/dev/null || echo "==> node or npm is missing: blocks of TypeScript are not run"
	@go run ./test/documents/suite -coppice "$(HERE)/bin/coppice" -python "$(TEST_PYTHON)" $(if $(shell command -v node && command -v npm),-typescript "$(HERE)/clients/typescript") -keep "$(HERE)/documents" $(DOCS_FLAGS)
	@COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go test -count=1 -run '^(TestReadmeCompiles|TestPythonOfDocumentsParses)$$' .

.PHONY: docs-reference
docs-reference: need-go ## Make docs/reference again from the sources
	$(say) "docs/reference"
	@go test ./cmd/internal/cli -count=1 -run '^TestReferenceIsCurrent$$' -update

.PHONY: proto
proto: need-go ## Make the Go code of the .proto files again
	@go generate ./cmd/internal/e2b/wire

.PHONY: fmt
fmt: need-go $(LINT) ## Format the Go files
	$(say) "format (gofumpt, gci)"
	@$(LINT) fmt

# The machine's own system by go vet, whose compiled packages everything else uses, too;
# the others by tools/vet, which compiles nothing for them.
VET_HERE := $(shell go env GOHOSTOS 2>/dev/null)

.PHONY: vet
vet: need-go ## gofmt, and go vet for Linux, macOS and Windows
	$(say) "gofmt -s"
	@unformatted="$$(git ls-files -z --cached --others --exclude-standard -- '*.go' ':!:**/testdata/**' | xargs -0 gofmt -s -l)"; \
	[ -z "$$unformatted" ] || { echo "make: not formatted (run make fmt):" >&2; echo "$$unformatted" >&2; exit 1; }
	$(say) "go vet for $(VET_HERE)"
	@GOOS=$(VET_HERE) go vet $(RACE) ./...
	$(say) "the same for $(filter-out $(VET_HERE),linux darwin windows)"
	@go -C tools/vet run . ../.. $(filter-out $(VET_HERE),linux darwin windows)

.PHONY: test-vet
test-vet: need-go ## Hold what make vet finds for other systems against go vet, in code with mistakes
	$(say) "tools/vet"
	@cd tools/vet && go vet . && go test -count=1 .

.PHONY: lint
lint: need-go $(LINT) ## Lint with the golangci-lint that tools/go.mod pins
	$(say) "golangci-lint"
	@GOFLAGS="$(strip $(GOFLAGS) $(RACE))" $(LINT) run --allow-parallel-runners ./...

.PHONY: check
check: vet lint ## Format, vet for three systems, lint

$(LINT): tools/go.mod tools/go.sum
	$(say) "build the pinned golangci-lint (once, takes minutes)"
	@cd tools && go build -o "$(HERE)/bin/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# The file for the results of bench and bench-full.
ifndef BENCH_OUT
BENCH_OUT := .cache/bench/$(shell date +%Y%m%d-%H%M%S).json
endif

# More flags for the suite, see go run ./bench/suite -help.
BENCH_FLAGS ?=

.PHONY: bench
bench: test-env ## Measure with many sessions, beside floors and peers (minutes)
	$(say) "benchmarks, into $(BENCH_OUT); compare two: go run ./bench/suite -compare A B"
	@COPPICE_BENCH_PEERS="$(CACHE)/bench-peers" go run ./bench/suite -python "$(TEST_PYTHON)" -out "$(BENCH_OUT)" $(BENCH_FLAGS)

# Two programs in turns, one round of each after the other: what the machine does meanwhile is in both.
TURNS := 1 2 3 4 5 6 7 8 9 10 11 12
define in-turns
	@go build -o "$(CACHE)/bin/suite" ./bench/suite
	@rm -f "$(CACHE)/bench/$(1).json" "$(CACHE)/bench/$(2).json"
	@for n in $(TURNS); do \
		"$(CACHE)/bin/suite" -compared -turn -python "$(TEST_PYTHON)" -out "$(CACHE)/bench/$(1).json" $(BENCH_FLAGS) || exit 1; \
		"$(CACHE)/bin/suite" -compared -turn $(3) -python "$(TEST_PYTHON)" -out "$(CACHE)/bench/$(2).json" $(BENCH_FLAGS) || exit 1; done
endef

# The same program twice: a comparison must end with "no significant change".
.PHONY: bench-noise
bench-noise: test-env ## Measure the same program twice, in turns, and compare: no significant change (minutes)
	$(call in-turns,noise-1,noise-2,)
	@"$(CACHE)/bin/suite" -compare "$(CACHE)/bench/noise-1.json" "$(CACHE)/bench/noise-2.json"

# Every call takes a tenth longer the second time: a comparison must find that.
.PHONY: bench-plant
bench-plant: test-env ## Measure with a planted slowdown of a tenth, in turns, and compare: worse (minutes)
	$(call in-turns,plain,planted,-plant .1)
	@"$(CACHE)/bin/suite" -compare "$(CACHE)/bench/plain.json" "$(CACHE)/bench/planted.json"; \
		[ $$? = 1 ] || { echo "make: the planted slowdown was not found" >&2; exit 1; }

# What goes on with a run that was interrupted: make bench-full BENCH_OUT=FILE BENCH_FLAGS=-resume
.PHONY: bench-full
bench-full: test-env bench-env ## The same with everything, and the report in bench/results (up to an hour)
	$(say) "benchmarks, all of them, into $(BENCH_OUT)"
	@go build -o "$(CACHE)/bin/suite" ./bench/suite
	@COPPICE_BENCH_PEERS="$(CACHE)/bench-peers" "$(CACHE)/bin/suite" -full -python "$(TEST_PYTHON)" -out "$(BENCH_OUT)" -into bench/results $(BENCH_FLAGS)
	@cp "$(BENCH_OUT)" bench/results/latest.json

# A peer that cannot be installed is left out of the run, with a line that says so.
.PHONY: bench-env
bench-env: test-env ## Install other ways to run Python, to compare with, in .cache/bench-peers (once, minutes)
	@cmp -s bench/peers/requirements.txt "$(CACHE)/bench-peers/python/requirements.txt" || { \
		printf '==> peers of the benchmarks, by pip, in .cache/bench-peers\n'; \
		"$(TEST_PYTHON)" -m venv --clear "$(CACHE)/bench-peers/python" && \
		"$(CACHE)/bench-peers/python/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r bench/peers/requirements.txt && \
		cp bench/peers/requirements.txt "$(CACHE)/bench-peers/python/requirements.txt" || { \
			echo "make: peers of PyPI could not be installed: they are left out" >&2; rm -rf "$(CACHE)/bench-peers/python"; }; }
	@cmp -s bench/peers/package-lock.json "$(CACHE)/bench-peers/node/package-lock.json" && [ -d "$(CACHE)/bench-peers/node/node_modules" ] || { \
		printf '==> peers of the benchmarks, by npm, in .cache/bench-peers\n'; \
		mkdir -p "$(CACHE)/bench-peers/node" && cp bench/peers/package.json bench/peers/package-lock.json "$(CACHE)/bench-peers/node/" && \
		cd "$(CACHE)/bench-peers/node" && npm ci --silent --no-audit --no-fund || { \
			echo "make: peers of npm could not be installed: they are left out" >&2; rm -rf "$(CACHE)/bench-peers/node"; }; }
	@go -C bench/peers/trpc build -o "$(HERE)/bench-peers/trpc" . || { \
		echo "make: the peer trpc-agent-go could not be built: it is left out" >&2; rm -f "$(CACHE)/bench-peers/trpc"; }

.PHONY: bench-go
bench-go: test-env ## Run each Go benchmark once, briefly (PKG, TESTFLAGS)
	$(say) "Go benchmarks, brief"
	@COPPICE_TEST_PYTHON="$(TEST_PYTHON)" go test -run '^$$' -bench . -benchmem -benchtime 100ms $(TESTFLAGS) $(PKG)

.PHONY: fuzz
fuzz: need-go ## Run every fuzz target for FUZZTIME (20s)
	@grep -rHo --include='*_test.go' --exclude-dir=.cache --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]*(f \*testing\.F)' . | \
	sed 's/^\(.*\)\/[^/]*_test\.go:func \(Fuzz[A-Za-z0-9_]*\).*/\1 \2/' | sort -u | \
	while read -r dir name; do \
		printf '==> fuzz %s %s for %s\n' "$$dir" "$$name" "$(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime "$(FUZZTIME)" -fuzzminimizetime 10x "$$dir" </dev/null || exit 1; \
	done

.PHONY: fuzz-protocol
fuzz-protocol: need-go ## Fuzz both sides of the runner's protocol for FUZZTIME each
	@for name in FuzzParseFrame FuzzReader; do \
		printf '==> fuzz %s for %s\n' "$$name" "$(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime "$(FUZZTIME)" -fuzzminimizetime 10x ./internal/ndjson </dev/null || exit 1; \
	done
	$(say) "fuzz sessions and fork servers for $(FUZZTIME)"
	@"$(or $(COPPICE_TEST_PYTHON),python3)" -B internal/pysrc/tests/fuzz.py "$(FUZZTIME)"

# The tools that tools/release/go.mod pins.
goreleaser_PACKAGE := github.com/goreleaser/goreleaser/v2
cyclonedx-gomod_PACKAGE := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
govulncheck_PACKAGE := golang.org/x/vuln/cmd/govulncheck

# What goreleaser packs beside the programs.
RELEASE := $(CACHE)/release
GORELEASER := $(CACHE)/bin/goreleaser
CYCLONEDX := $(CACHE)/bin/cyclonedx-gomod

.PHONY: dist
dist: need-go $(GORELEASER) $(CYCLONEDX) ## Build a release in dist/: archives, packages, SBOMs, checksums, formula; nothing is published
	$(say) "completions and manual pages in $(RELEASE)"
	@rm -rf "$(RELEASE)" && mkdir -p "$(RELEASE)/man" "$(RELEASE)/completions"
	@CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags "$(LDFLAGS)" -o "$(RELEASE)/coppice" ./cmd/coppice
	@"$(RELEASE)/coppice" manual --date "$$(git log -1 --format=%cI)" "$(RELEASE)/man" && gzip -9n "$(RELEASE)"/man/*
	@"$(RELEASE)/coppice" completion bash >"$(RELEASE)/completions/coppice.bash"
	@"$(RELEASE)/coppice" completion zsh >"$(RELEASE)/completions/_coppice"
	@"$(RELEASE)/coppice" completion fish >"$(RELEASE)/completions/coppice.fish"
	$(say) "$$("$(RELEASE)/coppice" --version) in dist"
	@COPPICE_VERSION="$$("$(RELEASE)/coppice" --version | cut -d' ' -f2)" PATH="$(HERE)/bin:$$PATH" \
		"$(GORELEASER)" release --snapshot --clean --config release/goreleaser.yaml
	@sh release/formula.sh dist/SHA256SUMS "$$("$(RELEASE)/coppice" --version | cut -d' ' -f2)" >dist/coppice.rb
	@cp release/install.sh dist/install.sh
	@cat dist/SHA256SUMS

# The folder of the release that test-install installs.
DIST ?= dist

.PHONY: test-install
test-install: client-wheel ## Install the release of make dist on a Debian that has nothing else, and use it (needs mmdebstrap; no root)
	$(say) "a release on a machine that has nothing"
	@[ -f "$(DIST)/SHA256SUMS" ] || { echo "make: there is no release in $(DIST); build it with: make dist" >&2; exit 1; }
	@command -v mmdebstrap >/dev/null || { echo "make: this test needs mmdebstrap; on Debian: apt-get install mmdebstrap uidmap" >&2; exit 1; }
	@sh test/install/run.sh "$(DIST)" "$(CACHE)"/clients/dist/coppice-*.whl "$(CACHE)/install"

.PHONY: dist-check
dist-check: need-go $(GORELEASER) $(CYCLONEDX) ## Build the release of this commit twice and want the same bytes (minutes; FRESH=1: compile everything twice)
	@sh release/check.sh "$(CACHE)/dist-check"

GOVULNCHECK := $(CACHE)/bin/govulncheck

# The database of vulnerabilities is fetched from the network. Where that cannot be
# reached, this says so, and checks the rest.
.PHONY: check-supply
check-supply: need-go $(GOVULNCHECK) ## Known vulnerabilities, checksums of all that is fetched, licences of all that is linked
	$(say) "govulncheck"
	@status=0; out="$$("$(GOVULNCHECK)" ./... 2>&1)" || status=$$?; echo "$$out"; \
	case $$status in \
	0) ;; \
	3) echo "make: there are known vulnerabilities" >&2; exit 1 ;; \
	*) case $$out in \
		*"fetching vulnerabilities"*) echo "==> NOT CHECKED: the database of vulnerabilities could not be reached" >&2 ;; \
		*) exit $$status ;; \
		esac ;; \
	esac
	$(say) "checksums of modules"
	@go mod verify
	@mkdir -p "$(CACHE)/adapters"
	@for module in tools tools/collector tools/crds tools/engines tools/image tools/mutants tools/release tools/promtool tools/vet bench/peers/trpc $(MODULES); do \
		file="$(HERE)/adapters/verify-$$(basename "$$module").mod"; \
		cp "$$module/go.mod" "$$file" && cp "$$module/go.sum" "$${file%.mod}.sum" && go mod edit $(foreach one,$(STANDS_HERE),"$(one)") "$$file" && \
		( cd "$$module" && go mod verify -modfile="$$file" >/dev/null ) || exit 1; \
	done
	$(say) "checksums of Python and npm packages, licences"
	@go test -count=1 ./test/promises ./test/notice

$(GORELEASER) $(CYCLONEDX) $(GOVULNCHECK): tools/release/go.mod tools/release/go.sum
	$(say) "build the pinned $(@F) (once, takes minutes)"
	@cd tools/release && go build -o "$(HERE)/bin/" $($(@F)_PACKAGE)

# What the image is made of is fetched from Debian and PyPI. IMAGE_ARCH, IMAGE_SUITE and
# IMAGE_SOURCES are told of in release/image/build.sh.
.PHONY: image
image: need-go ## Build the container image in dist/image, an OCI layout (needs mmdebstrap, of Debian)
	@mkdir -p "$(CACHE)/bin" && go build -buildvcs=true -ldflags "$(LDFLAGS)" -o "$(CACHE)/bin/coppice" ./cmd/coppice
	@sh release/image/build.sh "$(CACHE)/image" dist/image "$$("$(CACHE)/bin/coppice" --version | cut -d' ' -f2)"

.PHONY: image-check
image-check: need-go ## Build the image twice and want the same digest (minutes)
	@$(MAKE) --no-print-directory image && cp dist/image/index.json "$(CACHE)/image/first.json"
	@$(MAKE) --no-print-directory image
	@cmp "$(CACHE)/image/first.json" dist/image/index.json && echo "two builds are the same bytes"

.PHONY: test-image
test-image: ## Run the image of make image: read-only, without capabilities (needs root, umoci, and crun or runc)
	@[ -f dist/image/index.json ] || { echo "make: there is no image in dist/image; build it with: make image" >&2; exit 1; }
	@command -v umoci >/dev/null && { command -v crun >/dev/null || command -v runc >/dev/null; } || { echo "make: this test needs umoci, and crun or runc: apt-get install umoci crun" >&2; exit 1; }
	@mkdir -p "$(CACHE)/test-image"
	@python3 -B test/image/run.py dist/image "$$(sed -n 's/.*"org.opencontainers.image.ref.name": *"\([^"]*-'"$$(go env GOARCH)"'\)".*/\1/p' dist/image/index.json)" "$(CACHE)/test-image"

.PHONY: clean
clean: ## Remove what was built here, the tests' Python environment included
	$(say) "remove bin, dist and .cache"
	@rm -rf bin dist .cache
