# Two commands do all set-up: `make scenario` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# One set of build flags, so that one compile cache serves the product, the tests and the control plane.
export CGO_ENABLED := 0

NAME    ?= pool-cache
FILE     = $(or $(wildcard scenarios/$(NAME).yaml scenarios/*/$(NAME).yaml),$(if $(filter all,$(NAME)),scenarios,scenarios/$(NAME)))
RUNTIME ?= local
ARCH    ?= amd64,arm64
# The version of Kubernetes of the testbed's cloud: bin/weir assets --help names those that there are. Empty is its own.
KUBERNETES ?= $(WEIR_KUBERNETES)
export WEIR_KUBERNETES := $(KUBERNETES)
OLDEST  := v1.36.3
# What `make versions` tests: packages that a real kube-apiserver answers.
CLOUD   := ./sim/oracle ./sim/managertest ./sim/chart ./sim/operatortest ./sim/installtest ./sim/offlinetest ./sim/client ./sim/workload ./sim/cloud
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X github.com/weir-edge/weir/impl/cli.version=$(VERSION)
# Tests and quick scenarios start many sites: they take Weir's commands from bin/, as build has just made them, instead of linking them for each.
unit quick versions: export WEIR_BUILT := $(CURDIR)/bin
SMOKE   := pool-cache leader-kill coordinator-restart glitch autonomy/offline-first-boot
# The longest come first, and more run at once than there are processors: they wait half of the time. What unit and race share, both run:
# race goes without what its slowness would make another test (-short), and unit without the detector bounds memory.
RACE    := ./impl/hub/... ./impl/coordinator/... ./impl/store/... ./impl/source/... ./impl/relay/... ./impl/role/... ./impl/heartbeat/... ./impl/lease/... ./impl/snapshot/... ./impl/offline/... \
	   ./impl/identity/... ./impl/filter/... ./impl/manager/... ./impl/documents/... ./impl/credential/... ./impl/bulletin/... ./impl/directory/... ./impl/trust/... ./impl/pki/... ./impl/images/... ./impl/exchange/... ./impl/process/... ./impl/gate/... ./impl/reverse/...
LONGEST := ./sim/installtest ./sim/runtime ./sim/attack ./impl/hub ./sim/offlinetest ./sim/oracle ./sim/runner ./sim/managertest
# What one process may have, in kB, so that a test that eats memory fails by itself and says where: the largest need 2 GB. The race detector
# maps terabytes that it never uses, so it goes without.
MEMORY  := 8388608
# Files whose words vale looks at: all that people write, but for reports.
PROSE   := '*.go' '*.md' ':!reports'
TESTS    = bin/weir tests --name
SPECS    = mkdir -p reports/out && WEIR_SPECS=1 WEIR_SPECS_RUNTIME=$(RUNTIME) WEIR_BUILT=$(CURDIR)/bin go test ./sim/specs -count 1 -timeout 0 -v -run TestSpecs -args \
	   -ginkgo.v -ginkgo.timeout 24h -ginkgo.label-filter '$(LABELS)' -ginkgo.junit-report $(CURDIR)/reports/out/specs.xml

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/weir, kubectl-weir, weir-hub, weir-coordinator, weir-manager and weir-gate
	@echo "building bin/ (a cold cache takes a few minutes)"
	@mkdir -p bin
	go build -ldflags '$(LDFLAGS)' -o bin/ ./impl/cmd/... ./sim/cmd/...

.PHONY: scenario
scenario: build ## run a scenario: make scenario NAME=pool-cache (the default), or NAME=all, RUNTIME=kind, KUBERNETES=v1.36.3; reports/out/index.html
	bin/weir scenario run --runtime $(RUNTIME) $(FILE)

.PHONY: test-scenarios
test-scenarios: build ## all scenarios but those of a night, times included: some two and a half hours; reports/out/index.html and one in each folder below
	@bin/weir scenario run scenarios || failed=1; \
	for d in eviction autonomy; do bin/weir scenario run --out reports/out/$$d scenarios/$$d || failed=1; done; test -z "$$failed"

.PHONY: night
night: build ## the scenarios of a night, thousands of kills and a hundred pools among them: some hours; reports/out/nightly
	bin/weir scenario run --out reports/out/nightly scenarios/nightly

.PHONY: quick
quick: LABELS := smoke
quick: build assets ## the specs that are labelled smoke, without limits of time: the byte ratios of pool-cache and the quickest faults; and what hubs may do against what they did
	@$(SPECS)
	bin/weir audit $(addprefix reports/out/,$(notdir $(SMOKE)))

.PHONY: audit
audit: build ## what parts may do at kube-apiserver against what they did, in all scenarios that have run: make test-scenarios, then this
	bin/weir audit --joins reports/out

.PHONY: specs
specs: build assets ## scenarios as specs of ginkgo: make specs LABELS='smoke', or fault, slow, kind, '!slow && fault'; RUNTIME=kind; JUnit in reports/out/specs.xml
	$(SPECS)

.PHONY: assets
assets: build ## find or build kube-apiserver, its controllers, kubectl, kubelet and hollow nodes, once
	bin/weir assets --all

.PHONY: test
test: lint unit ## all checks of a pull request: lint, unit tests, the oracle, stock controllers, containerd, races, the quickest scenarios
	@$(MAKE) --no-print-directory quick # alone: a machine that is late with everything changes who leads a pool
	@$(MAKE) --no-print-directory -j2 --output-sync=line stock containerd race packages
	@bin/weir tests --summary
	@echo "make test: all passed"

.PHONY: unit
unit: assets bin/helm ## tests of all packages, the real kube-apiserver as oracle among them
	@rm -rf reports/out/tests
	ulimit -d $(MEMORY); $(TESTS) unit -- -p 3 -timeout 20m $(LONGEST) ./...

.PHONY: stock
stock: build ## twenty fault schedules with the stock controllers of Kubernetes in virtual time: no pod is evicted that should not be
	ulimit -d $(MEMORY); cd sim/lifecycle/stock && ../../../$(TESTS) stock --out ../../../reports/out/tests -- -count 1 -timeout 20m .

.PHONY: containerd
containerd: build ## containerd's own resolver and content store pull through mirrors of hubs
	ulimit -d $(MEMORY); cd sim/containerd && ../../$(TESTS) containerd --out ../../reports/out/tests -- -count 1 -timeout 20m .

.PHONY: packages
# Without -count 1 results would stay: go remembers no file outside of a module that a test has read.
packages: build bin/helm ## what is installed: images the same twice, the chart as it was looked at, each alert in Prometheus' own rule engine; and the testbed's containerd
	cd .ci/release && ../../$(TESTS) images --out ../../reports/out/tests -- -count 1 -timeout 20m ./...
	cd charts/helm && ../../$(TESTS) chart --out ../../reports/out/tests -- -count 1 -timeout 20m .
	cd charts/alerts && ../../$(TESTS) alerts --out ../../reports/out/tests -- -count 1 -timeout 20m .
	cd sim/puller && ../../$(TESTS) puller --out ../../reports/out/tests -- -count 1 -timeout 20m .

.PHONY: dashboard
dashboard: build assets ## draw docs/dashboard.svg anew: the chart's dashboard with what the processes of a scenario tell
	cd charts/alerts && go build -o ../../bin/board ./board
	bin/board -- bin/weir scenario run --no-time-limits scenarios/rotate-everything.yaml

.PHONY: race
race: build ## the concurrent packages under the race detector
	CGO_ENABLED=1 $(TESTS) race -- -race -short -p 4 -timeout 20m $(RACE)

.PHONY: attack
attack: build assets ## try to break pools, all attempts of the table, some quarter of an hour; reports/out/attack/index.html
	bin/weir attack $(ARGS)

.PHONY: mutants
mutants: build assets ## plant the bugs of sim/mutant/list one at a time, each must be caught; within an hour; reports/out/mutants/index.html
	bin/weir mutants $(ARGS)

.PHONY: conformance
conformance: build ## Kubernetes' own end-to-end specs, straight and through hubs, hours on a busy machine; reports/out/conformance
	bin/weir conformance $(ARGS)

.PHONY: proof
proof: build assets bin/helm ## make the committed reports anew on this revision, days; it goes on where it was; ONLY="bench pool-cache" for some
	ONLY='$(ONLY)' .ci/proof

.PHONY: soak
soak: assets ## a hub that is killed 500 times while a node writes and its link comes and goes; some fifteen minutes
	go test ./sim/offlinetest -run TestKills -v -timeout 60m -args -kills=500

.PHONY: skew
skew: assets ## hubs, coordinators and weir-manager of a former revision and of this one in one pool, each on the other's disk; five minutes, as root, in a clone with its history
	WEIR_SKEW=1 WEIR_BUILT=$(CURDIR)/bin go test ./sim/skew -run TestSkew -count 1 -timeout 30m -v

.PHONY: versions
versions: WEIR_KUBERNETES := $(OLDEST)
versions: build assets bin/helm ## the oldest Kubernetes that Weir runs on, built once: tests of all that asks kube-apiserver, pool-cache and leader-kill; reports/out/versions
	$(TESTS) versions --out reports/out/versions/tests -- -count 1 -p 2 -timeout 30m $(CLOUD)
	@for s in pool-cache leader-kill; do bin/weir scenario run --out reports/out/versions scenarios/$$s.yaml || failed="$$failed $$s"; done; \
	test -z "$$failed" || { echo "failed with Kubernetes $(OLDEST):$$failed"; exit 1; }

.PHONY: structure
structure: build ## figures of the code: arrows that run back inside packages, their lines, fields, flags
	@bin/weir structure

.PHONY: lint
lint: bin/golangci-lint bin/vale ## gofmt, go vet, golangci-lint, and vale on the words of documents and comments
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'not gofmt-ed: run gofmt -w'; exit 1; }
	bin/golangci-lint run --allow-parallel-runners ./...
	@for m in .ci/release charts/helm charts/alerts sim/puller; do (cd $$m && $(CURDIR)/bin/golangci-lint run --allow-parallel-runners ./...) || exit 1; done
	bin/vale --config .ci/prose/vale.ini $$(git ls-files $(PROSE))

bin/vale: .ci/prose/go.mod
	@echo "building vale (once, some minutes)"
	@mkdir -p bin
	cd .ci/prose && CGO_ENABLED=1 go build -o ../../bin/vale github.com/vale-cli/vale/v3/cmd/vale # it parses Go by a library in C

bin/golangci-lint: .ci/lint/go.mod
	@echo "building golangci-lint (once, some minutes)"
	@mkdir -p bin
	cd .ci/lint && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: vulncheck
vulncheck: bin/govulncheck ## known vulnerabilities in code that Weir calls, by the database at vuln.go.dev: needs the network, so make test goes without
	bin/govulncheck ./...

bin/govulncheck: .ci/vulncheck/go.mod
	@echo "building govulncheck (once)"
	@mkdir -p bin
	cd .ci/vulncheck && go build -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck

.PHONY: simulate
simulate: ## SCHEDULES (default 50000) random fault schedules in virtual time, 1000 (EVICTIONS) with real node controllers, 1000 (OUTAGES) of pods that move, a hundred real hubs in fake time
	go test ./sim/virtual -count 1 -timeout 0 -run TestSchedules -from 0 -schedules $${SCHEDULES:-50000}
	@set -o pipefail; cd sim/lifecycle/stock; go test . -count 1 -timeout 4h -v -run TestSchedules -from 0 -schedules $${EVICTIONS:-1000} | grep -v '^ *\(===\|--- PASS\)' # a line for each is too much
	go test ./impl/hub/overlay -count 1 -timeout 0 -run TestSchedules -from 0 -schedules $${OUTAGES:-1000}
	go test ./sim/bubble -count 1 -hubs 100 -v

.PHONY: fuzz
fuzz: ## every fuzzer for FUZZTIME (default 30s) each
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
		echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-30s} $$p || exit 1; done; done

.PHONY: images
images: ## images of weir-hub, weir-coordinator, weir-manager, weir-gate, kubectl-weir and weir-installer as OCI archives in bin/images, for ARCH (both: amd64,arm64), without an engine
	cd .ci/release && go run . images -version '$(VERSION)' -arch '$(ARCH)'

bin/helm: charts/helm/go.mod
	@echo "building helm (once, some minutes)"
	@mkdir -p bin
	cd charts/helm && go build -ldflags '-s -w' -o ../../bin/helm helm.sh/helm/v4/cmd/helm

.PHONY: release
release: bin/helm ## binaries, images, SBOMs, a manual page, the chart, plain manifests and checksums for ARCH in bin/release: make release VERSION=v0.1.0
	cd .ci/release && go run . all -version '$(VERSION)' -arch '$(ARCH)'

.PHONY: publish
publish: ## push the images of make release to the registry that the chart names, by skopeo, and make a release of GitHub of bin/release: VERSION and GH_TOKEN are set
	.ci/publish '$(VERSION)'

.PHONY: kind-node-image
kind-node-image: ## the node image of kind clusters: pulled, or built once from Debian packages and Go modules (kind/README.md)
	kind/node-image/build

.PHONY: kind-check
kind-check: kind-node-image ## a kind cluster of 1 + 4 nodes comes up, works and is removed; prints times and memory
	kind/check

.PHONY: test-kind
test-kind: assets bin/helm ## specs of pools of real kubelets, some 20 minutes; LABELS=cut for some of them, LABELS=install for an installation alone, LABELS=wayin for a pool behind a wall; reports/out/test-kind
	@for p in e2e install wayin; do \
		WEIR_TEST_KIND=1 WEIR_TEST_KIND_LOGS=$(CURDIR)/reports/out/test-kind go test ./kind/$$p -count 1 -timeout 90m -v -ginkgo.v \
			-ginkgo.label-filter '$(LABELS)' -ginkgo.junit-report $(CURDIR)/reports/out/test-kind-$$p.xml || failed=1; done; test -z "$$failed"

.PHONY: report
report: build assets ## what a change makes better or worse: make report BASE=<revision, where the branch left main by default> QUICK=1 (ten minutes); reports/out/change
	bin/weir report change $(if $(BASE),--base '$(BASE)') $(if $(QUICK),--quick) $(if $(ONLY),--only '$(ONLY)')

.PHONY: comment
comment: ## post the last make report to the pull request whose head it measured, as one comment: HEAD, RUN, GITHUB_REPOSITORY and GH_TOKEN are set
	.ci/comment

.PHONY: report-compare
report-compare: build ## two runs side by side: make report-compare NAME=pool-cache, or NAME=bench, lays the last run beside its baseline; or A=... B=...
	@bin/weir report compare '$(or $(A),reports/baseline/$(NAME).json)' '$(or $(B),reports/out/$(NAME))'

.PHONY: baseline
baseline: build ## put the last run of a scenario into reports/baseline: make baseline NAME=pool-cache REASON='why it is another'; NAME=all: all that make test-scenarios ran; NAME=bench
	bin/weir report baseline --reason '$(REASON)' $(if $(filter all,$(NAME)),$(wildcard reports/out reports/out/eviction reports/out/autonomy),reports/out/$(NAME))

.PHONY: history
history: build ## add the head of the last make report to reports/history.tsv, and plot it: reports/out/history.html
	bin/weir report history $(wildcard reports/out/change/report.json)

.PHONY: landed
landed: ## commit reports/history.tsv as make history left it, and push it to main: what CI does for each landed change
	.ci/landed

.PHONY: bench
bench: build assets ## measure Weir, fail on a missed target: ARGS='--only hub', ARGS='--peer FILE', ARGS=--resume; reports/out/bench
	bin/weir bench $(ARGS)

.PHONY: generate
generate: bin/controller-gen ## generated code
	go generate ./...

bin/controller-gen: .ci/generate/go.mod
	@mkdir -p bin
	cd .ci/generate && go build -o ../../bin/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen

.PHONY: clean-kind
clean-kind: build ## remove kind clusters that killed runs left behind
	bin/weir clean

.PHONY: clean
clean: ## remove bin/ and reports/out/
	rm -rf bin reports/out
