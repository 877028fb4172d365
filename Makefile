# Everything starts here: `make` lists the targets. Needed: Go 1.26, make, git; nothing else.

# One set of flags for every build, so that all share the build cache.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath

# What make build builds; make demo needs less.
PROGRAMS := ./cmd/...

# How often tests repeat what depends on chance or timing: once in the presubmit, and the full number in `make test-long`.
export ROUNDS ?= 3
LONG_ROUNDS   ?= 50
# How long make test-unit runs each fuzz target.
FUZZTIME      ?= 3s
# What make test-upgrade upgrades from: the last release before this commit, until there is one an earlier commit.
BEFORE        ?= $(shell git describe --tags --match 'v*' --abbrev=0 HEAD~1 2>/dev/null || echo f6a386262b161ffeb065b6e7ec5a58df36443762)
# The versions of Kubernetes of make test-versions, each with its servers in hack/controlplane-1.X. Other tests have that of
# hack/controlplane.
VERSIONS      ?= 1.35 1.36
# How long the soak of make test-long lasts.
LONG_SOAK     ?= 1h

# release: the architectures of the images, the platforms of the plugin of kubectl, and the registry that install.yaml names.
ARCHS     ?= amd64 arm64
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
REGISTRY  ?= ghcr.io/muster-project

# cluster-up
NODES ?= 32
GPUS  ?= 8

# The tag, or what has come since; before the first tag the commit alone.
VERSION    := $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.1.0-dev-$$(git describe --always --dirty 2>/dev/null || echo unknown))
COMMIT     := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
KUBERNETES := $(shell awk '$$1 == "k8s.io/kubernetes" { print $$2; exit }' go.mod)

# The stock scheduler's code asks component-base which Kubernetes it is; what Muster is called is in pkg/version.
LDFLAGS := -X github.com/muster-project/muster/pkg/version.Version=$(VERSION) \
	-X github.com/muster-project/muster/pkg/version.Commit=$(COMMIT) \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=1 \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES))) \
	-X k8s.io/component-base/version.gitCommit=unknown \
	-X k8s.io/component-base/version.gitTreeState=clean

CONTROLLER_GEN := bin/controller-gen
CRD_REF_DOCS   := bin/crd-ref-docs
GOVULNCHECK    := bin/govulncheck
LINT           := bin/lint

# Whatever is not an integration test is a unit test. Every integration package has a control plane of its own, with ports
# and a directory that nobody else has, and mostly waits: two run side by side, also on two cores.
# The package that takes longest comes first, since two run side by side.
INTEGRATION := ./test/integration/workload ./test/controlplane/... ./test/integration/...
UNIT        := ./cmd/... ./manifests/... ./pkg/... \
	$(patsubst %/,./%/...,$(filter-out test/controlplane/ test/integration/,$(wildcard test/*/)))

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: PROGRAMS := ./cmd/muster-scheduler ./cmd/muster-controller
demo: build controlplane ## Show gangs, services and a training job that start, wait, recover, roll, restart and preempt on a real control plane
	@go run ./test/demo

.PHONY: cluster-up
cluster-up: build controlplane ## Leave a cluster running in the background: make cluster-up NODES=32 GPUS=8
	@go run ./test/controlplane/cluster up -nodes=$(NODES) -gpus=$(GPUS)

.PHONY: cluster-down
cluster-down: ## End the cluster of cluster-up
	@go run ./test/controlplane/cluster down

##@ Build

.PHONY: build
build: ## Build muster-scheduler, muster-controller, muster-wait and kubectl-muster into bin/
	@mkdir -p bin
	@echo "building Muster $(VERSION) (about 4 minutes the first time, on two idle cores)"
	@go build -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS)

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl, if out of date
	@hack/build-controlplane.sh

# Without symbols: they are half of an image. One architecture after the other, since each build takes all cores.
.PHONY: linux-binaries
linux-binaries:
	@for arch in $(ARCHS); do \
		echo "building Muster $(VERSION) for linux/$$arch (some minutes the first time)"; \
		GOOS=linux GOARCH=$$arch go build -ldflags '-s -w $(LDFLAGS)' -o bin/linux-$$arch/ ./cmd/... || exit 1; \
	done

.PHONY: plugin-binaries
plugin-binaries: linux-binaries
	@for platform in $(filter-out $(addprefix linux/,$(ARCHS)),$(PLATFORMS)); do \
		echo "building kubectl-muster for $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} \
			go build -ldflags '-s -w $(LDFLAGS)' -o bin/$$(echo $$platform | tr / -)/ ./cmd/kubectl-muster || exit 1; \
	done

RELEASE := cd hack/release && go run -mod=mod . -version $(VERSION) -out ../../dist

.PHONY: release
release: plugin-binaries ## Write images, install.yaml, chart, plugin and checksums into dist/: make release REGISTRY=registry.example.com/team
	@$(RELEASE) -commit $(COMMIT) -created "$$(TZ=UTC git log -1 --date=iso-strict-local --format=%cd)" -registry $(REGISTRY) \
		-architectures '$(ARCHS)' -platforms '$(PLATFORMS)' -binaries ../../bin -manifests ../../manifests

.PHONY: images
images: release ## The same

.PHONY: push
push: ## Push the images in dist/ to a registry to which you have logged in: make push REGISTRY=registry.example.com/team
	@$(RELEASE) -push $(REGISTRY)

##@ Test

.PHONY: presubmit
presubmit: ROUNDS := 1
presubmit: verify lint release-dry-run test-monitoring vulnerabilities test ## Run everything that has to pass before a change is merged

# Integration tests mostly wait. The unit tests take what they leave, since they have the lower priority.
.PHONY: test
test: build controlplane ## Run all tests; ROUNDS=n sets how often some repeat
	@$(MAKE) --no-print-directory -j 2 test-unit test-integration

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane, most of them under the race detector
	@nice -n 5 hack/test-unit.sh $(UNIT)
	@nice -n 5 hack/test-fuzz.sh $(FUZZTIME)

.PHONY: test-integration
test-integration: build controlplane ## Run the tests against real control planes, two packages at a time
	go test -count 1 -p 2 -timeout 30m $(INTEGRATION)

.PHONY: test-long
test-long: build before controlplane ## Run all tests, also those with the tag long, with the full number of rounds and the race detector
	ROUNDS=$(LONG_ROUNDS) RACE=all GOFLAGS='$(GOFLAGS) -tags=long' hack/test-unit.sh -timeout 2h $(UNIT)
	ROUNDS=$(LONG_ROUNDS) SOAK=$(LONG_SOAK) go test -tags long -count 1 -p 1 -timeout 6h -v $(INTEGRATION)

.PHONY: test-upgrade
test-upgrade: build before controlplane ## Upgrade from an earlier commit, back, and uninstall, under load: make test-upgrade BEFORE=v0.1.0
	go test -tags long -count 1 -timeout 30m -v -run '^TestUpgrade' ./test/integration/workloadapi

.PHONY: before
before:
	@hack/build-before.sh $(BEFORE)

.PHONY: test-versions
test-versions: build before controlplane ## Install, upgrade and demo on older Kubernetes: make test-versions VERSIONS=1.36
	@hack/build-controlplane.sh $(foreach v,$(VERSIONS),kube-apiserver-$v kube-controller-manager-$v)
	@for v in $(VERSIONS); do \
		echo "Kubernetes $$v"; \
		CONTROLPLANE_KUBERNETES=$$v go test -tags long -count 1 -timeout 30m -v -run '^(TestInstallAndUninstall|TestUpgrade)$$' \
			./test/integration/workloadapi && CONTROLPLANE_KUBERNETES=$$v go run ./test/demo || exit 1; \
	done

.PHONY: test-stock
test-stock: controlplane ## Run the stock scheduler's own integration tests, as its module has them, on Muster; SCHEDULER=stock: on itself
	go run ./test/stocktests -scheduler=$(or $(SCHEDULER),muster)

# The controllers of other projects, each with the manifests that it publishes.
.PHONY: test-workloads
test-workloads: build controlplane ## Run the real controllers of other projects, and of native PodGroups, on Muster; builds them the first time
	@hack/build-controlplane.sh jobset lws kueue kuberay trainer scheduler-plugins
	go test -tags workloads -count 1 -timeout 60m -run '^TestReal' ./test/integration/workload

.PHONY: bench
bench: bench-scheduler bench-workload ## Run all benchmarks, with results in bin/bench; takes hours

# The programs that are compared; coscheduling is a scheduler of another project, with a module of its own.
.PHONY: bench-scheduler
bench-scheduler: build controlplane ## Compare schedulers: make bench-scheduler SHAPE=drain-1000,waiting REPEAT=3
	@hack/build-controlplane.sh kube-scheduler
	@hack/build-controlplane.sh coscheduling
	SHAPE=$(or $(SHAPE),all) OUT=$(or $(OUT),bin/bench) go run ./test/performance

.PHONY: bench-workload
bench-workload: build controlplane ## Time a PodCliqueSet of 1,000 pods from apply to ready and back to nothing, beside the floor
	SHAPE=workload go run ./test/performance

.PHONY: canary
canary: ## Tell what another Kubernetes breaks, in a copy of the last commit: make canary TO=v1.38.0-beta.0; a newer Go: GOTOOLCHAIN=go1.X.Y
	@go run ./test/upstream $(or $(TO),$(error name the version: make canary TO=v1.X.Y))

.PHONY: simulate
simulate: ## Play job streams of real clusters in virtual time, to compare who goes first: make simulate FLAGS="-loads 0.7,1.1"
	@go run ./test/simulate $(FLAGS)

.PHONY: release-dry-run
release-dry-run: ARCHS := $(shell go env GOARCH)
release-dry-run: linux-binaries ## Make a release for this architecture, start the programs from its images, push them on loopback
	@cd hack/release && go test -mod=mod .

.PHONY: test-monitoring
test-monitoring: ## Check alerts and dashboards with the code of Prometheus
	@cd hack/prometheus && go test -mod=mod .

.PHONY: lint
lint: $(LINT) ## Run go vet, staticcheck and the analyzers of hack/lint
	go vet -tags long,workloads -vettool=$(LINT) ./cmd/... ./hack/... ./manifests/... ./pkg/... ./test/...
	@cd hack/lint && go test -mod=mod .

.PHONY: vulnerabilities
vulnerabilities: build $(GOVULNCHECK) ## Fail if a program contains code with a known vulnerability, if the database can be reached
	@hack/vulnerabilities.sh

.PHONY: verify
verify: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Fail if generated files, vendor, go.mod or formatting differ from what they should be
	@hack/verify.sh

##@ Generate

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Write the deepcopy functions of the API types
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./pkg/apis/...

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Write the CRDs of the API types
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./pkg/apis/scheduling/... paths=./pkg/apis/grove/... paths=./pkg/apis/topology/... output:crd:artifacts:config=manifests/crds
	go run ./hack/crds manifests/crds

.PHONY: docs
docs: $(CRD_REF_DOCS) ## Write the references in docs: of fields, events, metrics, the commands of kubectl muster, and the values of the chart
	go run ./hack/eventdoc docs/events.md
	go run ./hack/reference docs
	@$(CRD_REF_DOCS) --log-level=ERROR --config=hack/apidoc/config.yaml --templates-dir=hack/apidoc --renderer=markdown \
		--source-path=pkg/apis --output-path=docs/api.md
	@cd hack/release && go run -mod=mod . -manifests ../../manifests -readme ../../docs/chart.md

.PHONY: vendor
vendor: tidy ## Write vendor/ from go.mod
	go mod vendor

.PHONY: tidy
tidy: ## Run go mod tidy in every module
	@for dir in . hack/controlplane* hack/coscheduling hack/lint hack/prometheus hack/release hack/stocktests hack/tools hack/workloads/*; do (cd $$dir && GOFLAGS=-mod=mod go mod tidy) || exit 1; done

.PHONY: fmt
fmt: ## Format the Go files
	gofmt -w cmd hack manifests pkg test

# Tools have modules of their own: what they need stays out of ours. No absolute paths: one with a space in it is two targets.
$(CONTROLLER_GEN): hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && go build -mod=mod -o ../../$@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(CRD_REF_DOCS): hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && go build -mod=mod -o ../../$@ github.com/elastic/crd-ref-docs

$(GOVULNCHECK): hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && go build -mod=mod -o ../../$@ golang.org/x/vuln/cmd/govulncheck

# Without the commit in it: go vet repeats everything when the tool differs.
$(LINT): hack/lint/go.mod hack/lint/go.sum $(filter-out %_test.go,$(wildcard hack/lint/*.go))
	@echo "building hack/lint (about a minute the first time)"
	@cd hack/lint && go build -mod=mod -buildvcs=false -o ../../$@ .
