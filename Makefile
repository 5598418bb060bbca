# podd: Kubernetes pods from files, on a CRI runtime.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# grpcnotrace leaves html/template out, 0.7 MB.
BUILD   := go build -tags grpcnotrace -ldflags "-s -w -X main.version=$(VERSION)"
UNIT    := $(shell command -v gcc >/dev/null && echo CGO_ENABLED=1 go test -trimpath=false -race || echo go test) -vet=off -timeout 20m
E2E     := go test -tags e2e -count 1 -timeout 40m -p 1 -vet=off
# The race detector would take minutes to find nothing here: no goroutine is started.
PURE    := ./manifest ./manifest/decode ./manifest/defaults ./manifest/merge ./manifest/refs ./manifest/supported ./manifest/validate ./reconcile/admission ./reconcile/plan ./reconcile/render ./reconcile/state ./reconcile/status
# Lint and tests have what a release is built with, so that it is compiled once, and
# tests are vetted by lint alone.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) -trimpath)

.PHONY: help build run stop test waits computes unit e2e crio faults soak cluster kubernetes conformance vm bench lint golden clean go
.DEFAULT_GOAL := help

help: ## tell what there is
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

go:
	@go version >/dev/null 2>&1 || { echo "podd needs Go 1.21 or later to fetch its toolchain: none is on the PATH"; exit 1; }
	@v=$$(go env GOVERSION | sed 's/go1\.\([0-9]*\).*/\1/'); [ "$$v" -ge 21 ] || { echo "podd needs Go 1.21 or later to fetch its toolchain; this is $$(go env GOVERSION)"; exit 1; }

build: go ## bin/podd, static
	$(BUILD) -o bin/podd ./cmd/podd

run: go ## try podd here: a private containerd, two pods, nothing but .run
	@[ "$$(id -u)" = 0 ] || { echo "make run starts a container runtime, which needs root: sudo make run"; exit 1; }
	@go build -o bin/stack ./cmd/stack && exec bin/stack run --version $(VERSION)

stop: go ## remove all that make run made
	@go build -o bin/stack ./cmd/stack && exec bin/stack down

# End-to-end tests wait and compilers compute, so both are done at once: what
# computes gives way. What waits comes to the programs of Kubernetes last; the
# metrics-server of TestTop would take too long to build.
test: build ## everything, as CI does
	$(MAKE) -j2 waits computes

waits:
	$(MAKE) e2e
	RUNTIME=debian $(E2E) ./cmd/podd/e2e
	@if [ -n "$$CRIO_DIR" ] || command -v crio >/dev/null; then set -x; RUNTIME=crio $(E2E) -run "^Test($$(echo $(ONCRIO) | tr ' ' '|'))$$" ./cmd/podd/e2e; \
	else echo "NOT TESTED: podd on CRI-O, because CRIO_DIR is not set and the PATH has no crio"; fi
	$(E2E) -skip '^TestTop$$' ./cmd/podd/e2e/cluster
	$(E2E) -run '^TestInit$$' ./cmd/podd/e2e/kubeadm

computes:
	nice -n 19 $(MAKE) kubernetes
	nice -n 19 $(MAKE) lint
	nice -n 19 $(MAKE) unit

# Too many synctest bubbles in one process kill the race detector (go.dev/issue/78156),
# so reconcile has several.
unit: go ## unit, golden, property and fuzz tests; other platforms build
	go test -vet=off -timeout 20m $(PURE)
	$(UNIT) $$(go list ./... | grep -vxF -e podd/reconcile $(PURE:./%=-e podd/%))
	for only in '-skip=Churn|CallsFail|NoSecretIsShown' -run=Churn -run=CallsFail -run=NoSecretIsShown; do $(UNIT) $$only ./reconcile || exit; done
	go test -vet=off -run - -fuzz FuzzDecode -fuzztime 30s -fuzzminimizetime 1s ./manifest/decode
	go test -vet=off -run - -fuzz FuzzNext -fuzztime 30s -fuzzminimizetime 1s ./reconcile/plan
	GOARCH=arm64 $(BUILD) -o /dev/null ./cmd/podd
	GOARCH=arm $(BUILD) -o /dev/null ./cmd/podd

# The tests of what is below podd run on the newest and the oldest containerd, and on
# CRI-O if CRIO_DIR or the PATH has it.
e2e: build ## the promises, on a real containerd; with RUNTIME=debian on the oldest
	$(E2E) ./cmd/podd/e2e
	$(E2E) ./runtime/...

# CRI-O comes from CRIO_DIR or the PATH because no Go module has it. Of the tests of podd,
# test runs those that depend most on the runtime.
ONCRIO := AddEditRemove Attach Cgroups Confined Edit_DuringGracePeriod Events Exec \
	ExecTerminal GracePeriodExceeded HookOrder HostPorts ImageByDigest ImageVolumes \
	InitContainersRunInOrder KilledContainerRestarts KubectlDebug LogsAreBounded \
	LostSandboxIsReplaced MountPropagation NamespacesAndSeccomp NetworkIsAbsent \
	OnceCodes PortForward PullBacksOff Resize Restart_KeepsContainers \
	RuntimeIsAbsentAtStart RuntimeIsKilledUnderPods Stats StopSignal \
	SupplementalGroups TerminationMessages UserNamespace

crio: build ## the promises on CRI-O; CRIO_DIR names the directory of crio and pinns
	RUNTIME=crio $(E2E) ./runtime/...
	RUNTIME=crio $(E2E) ./cmd/podd/e2e

cluster: build ## podd as the node of a cluster, set up by kubeadm, and after a kubelet: all of them real
	$(E2E) ./cmd/podd/e2e/cluster ./cmd/podd/e2e/kubeadm
	go test -tags e2e,kubelet -count 1 -run '^TestTakeover$$' ./cmd/podd/e2e

# The tests that are quick are part of e2e, too, and those of damaged files and of lists
# larger than 16 MiB are part of unit.
faults: build ## real faults: full disks, damaged files, calls that hang, a stopped runtime, 5,000 pods; 30 minutes
	go test -count 1 -vet=off -run '^Test((Broken|Empty|Unreadable)Journal|Truncated|Flipped|Newer|Supersede|IndexFormats|Unseal_|CacheIgnoresDamage|Formats|Decode_|Open_|UnreadableIsKept|Observer_LargeList)' ./reconcile ./reconcile/journal ./manifest/source ./reconcile/device ./runtime/cri
	go test -tags e2e,faults -count 1 -timeout 60m -vet=off -run '^(TestFault|TestFullDisk|TestReadOnlyDisk|TestPowerCut|TestAddress|TestHostname|TestResolvConf|TestRunDir|TestExitUnknown|TestManifestsOnMount|TestGivenAddressIsMissing|TestLostRootDirectory|TestOrphanedDirectories)' ./cmd/podd/e2e

# SOAK is a duration; an hour if it is not set.
soak: build ## random edits, kills, full disks, slow and hanging calls, again and again
	PODD_SOAK=$(or $(SOAK),1h) go test -tags e2e,soak -count 1 -timeout 0 -vet=off -v -run '^TestSoak$$' ./cmd/podd/e2e

# They take many minutes to build, once.
kubernetes: go
	@go build -o bin/stack ./cmd/stack && exec bin/stack kubernetes

# CONFORMANCE is a regular expression of the tests to run; thirty of them are part of
# test and of cluster.
conformance: build ## Kubernetes' own tests of a node's agent; with RUNTIME=crio on CRI-O
	PODD_CONFORMANCE='$(or $(CONFORMANCE),\[NodeConformance\])' go test -tags e2e -count 1 -timeout 60m -v -run '^TestNodeConformance$$' ./cmd/podd/e2e/cluster

# Emulated, so slow: no part of test. VM=--step=cut takes one step of it.
vm: go ## in a virtual machine: systemd, cgroup v2 alone, swap, huge pages, power cuts; 15 to 25 minutes
	@[ "$$(id -u)" = 0 ] || { echo "make vm makes a disk image, which needs root: sudo make vm"; exit 1; }
	@go build -o bin/stack ./cmd/stack && exec bin/stack vm --version $(VERSION) $(VM)

bench: build ## speed and memory beside bare CRI calls, and a kubelet
	go run ./cmd/podd/bench --podd bin/podd $(BENCH)

lint: go ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l cmd manifest reconcile runtime server)" || { gofmt -l cmd manifest reconcile runtime server; exit 1; }
	go vet ./... && go vet -tags e2e,faults,kubelet,soak,vm ./...
	go tool staticcheck ./... && go tool staticcheck -tags e2e,faults,kubelet,soak,vm ./...

golden: go ## rewrite expected outputs; read the diff
	go test ./... -update

clean: ## remove what was built
	rm -rf bin
