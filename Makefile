# podd: Kubernetes pods from files, on a CRI runtime.
FLAGS   := $(shell cat cmd/internal/release/flags)
COMMA   := ,
E2ETAGS := $(subst -tags=,-tags=e2e$(COMMA),$(filter -tags=%,$(FLAGS)))
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
ALIGN   := $(if $(filter amd64,$(shell go env GOARCH 2>/dev/null)),-funcalign=2)
BUILD   := go build -ldflags "$(strip -s -w $(ALIGN) -X main.version=$(VERSION))"
# Unit tests have the lowest priority in target test, so on a slow machine they may get hardly any CPU
# until the end-to-end tests end.
UNIT    := go test -vet=off -timeout 60m
# With the race detector, each test program would sleep one second before it exits, and so would the
# programs that it runs.
RACE    := $(shell command -v gcc >/dev/null && echo CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 go test -trimpath=false -race || echo go test) -vet=off -timeout 60m
E2E     := go test $(E2ETAGS) -count 1 -timeout 60m -p 1 -vet=off
# Packages that start goroutines, also in their tests. Only these are tested with the race
# detector, which takes minutes. Package cmd/podd is not tested with it, because only a web server
# in its tests starts goroutines, and the race detector makes the programs of its scripts slow.
CONCURRENT = $(shell grep -rlE '^[[:space:]]+go [a-zA-Z]|(errgroup|synctest)[.]|sync[.]WaitGroup|httptest[.]New(TLS)?Server|grpc[.]NewServer|t[.]Parallel' --include=*.go cmd manifest reconcile runtime server | xargs -n1 dirname | sort -u | grep -vx cmd/podd | sed 's,^,podd/,')
# Packages with tests that the race detector would slow down by minutes, because they need client-go's
# clientset: 300 packages that would be compiled again. These packages are tested twice.
NORACE = $(shell grep -rl '^//go:build !race' --include=*_test.go cmd manifest reconcile runtime server | xargs -n1 dirname | sort -u | sed 's,^,podd/,')
# Lint and tests use the build settings of a release, so that packages are compiled once. Package
# cmd/internal/release describes the flags. Only lint runs vet on tests.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) $(FLAGS))

.PHONY: help build packages run stop test pods nodes units nightly unit packagetests reconciletests fuzz cross e2e contract runtimes crio faults soak cluster kubernetes conformance e2e-node vm bench lint golden clean go
.DEFAULT_GOAL := help

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

go:
	@go version >/dev/null 2>&1 || { echo "go is not in PATH; install Go 1.21 or later, which downloads the toolchain of podd"; exit 1; }
	@v=$$(go env GOVERSION | sed 's/go1\.\([0-9]*\).*/\1/'); [ "$$v" -ge 21 ] || { echo "install Go 1.21 or later, which downloads the toolchain of podd; this is $$(go env GOVERSION)"; exit 1; }

build: go ## Build bin/podd, a static binary
	$(BUILD) -o bin/podd ./cmd/podd

packages: go ## Build .deb, .rpm, .apk and .tar.gz packages in bin/packages, twice to compare
	@go run ./cmd/package --version $(VERSION) --check

run: go ## Try podd: a private containerd and two pods in .run
	@[ "$$(id -u)" = 0 ] || { echo "make run starts a container runtime and must run as root: sudo make run"; exit 1; }
	@go build -o bin/stack ./cmd/stack && exec bin/stack run --version $(VERSION)

stop: go ## Remove everything that make run created
	@go build -o bin/stack ./cmd/stack && exec bin/stack down

# stage runs a command and prints one line: its result, its name and its duration. It prints the
# output of the command only if the command fails, or if a line says what was not tested.
define stage
@log=$$(mktemp); start=$$(date +%s); if ($(2)) >$$log 2>&1; then result=ok; else result=FAILED; cat $$log; fi; \
grep '^NOT [A-Z]*:' $$log || :; printf '%-6s %-52s %5d s\n' $$result '$(1)' $$(($$(date +%s) - start)); rm -f $$log; [ $$result = ok ]
endef

# End-to-end tests mostly wait, so three groups run in parallel: pods, nodes and units, which has a
# lower priority.
test: go ## Run everything that CI runs
	$(call stage,build,$(MAKE) build)
	@$(MAKE) --no-print-directory -j3 pods nodes units

pods:
	$(call stage,end-to-end tests on containerd,$(MAKE) e2e)

# The build of Kubernetes takes many minutes on a new machine. Two tests run only nightly: TestTop with the
# metrics-server, whose build takes too long, and TestCSI_VolumeLimit, which waits for two minutes.
nodes:
	$(call stage,build of Kubernetes,nice -n 19 $(MAKE) kubernetes)
	$(call stage,tests with a cluster,$(E2E) -skip "^Test(Top|CSI_VolumeLimit)$$" ./cmd/podd/e2e/cluster)
	$(call stage,kubeadm init,$(E2E) -run "^TestInit$$" ./cmd/podd/e2e/kubeadm)
	$(call stage,end-to-end tests on other runtimes,$(MAKE) runtimes)
	$(call stage,tests of the packages that use a runtime,$(MAKE) contract)

units:
	$(call stage,lint,nice -n 19 $(MAKE) lint)
	$(call stage,unit tests,nice -n 19 $(MAKE) unit)

nightly: build ## Run the tests that target test omits (hours); as root
	$(call stage,cross builds,$(MAKE) cross)
	$(call stage,packages,$(MAKE) packages)
	$(call stage,fuzzing,$(MAKE) fuzz FUZZTIME=5m)
	$(call stage,all end-to-end tests on the oldest containerd,RUNTIME=debian $(E2E) -skip "^Test($(LONG))$$" ./cmd/podd/e2e)
	$(call stage,all end-to-end tests on CRI-O,$(MAKE) crio)
	$(call stage,tests with a cluster and kubeadm join,$(MAKE) cluster)
	$(call stage,node conformance,$(MAKE) conformance)
	$(call stage,node conformance with the oldest API server,$(MAKE) conformance PLANE=oldest)
	$(call stage,all tests of a kubelet,$(MAKE) e2e-node)
	$(call stage,tests of a kubelet without an API server,$(MAKE) e2e-node E2E_NODE=StandaloneMode E2E_NODE_FLAGS=--standalone-mode)
	$(call stage,tests of a kubelet with a CRI proxy,$(MAKE) e2e-node E2E_NODE=CriProxy E2E_NODE_FLAGS=--cri-proxy-enabled)
	$(call stage,tests of a kubelet with a lock file,$(MAKE) e2e-node E2E_NODE=LockContention E2E_NODE_FLAGS='--kubelet-flags=--lock-file=/var/run/kubelet.lock --kubelet-flags=--exit-on-lock-contention')
	$(call stage,faults,$(MAKE) faults)
	$(call stage,soak,$(MAKE) soak)

# The tests of reconcile run at the same time as those of the other packages, because each of their
# programs mostly uses one CPU.
unit: go ## Run unit, golden and property tests
	@command -v gcc >/dev/null || echo "NOT TESTED: data races, because gcc is not installed"
	@$(MAKE) --no-print-directory -j2 packagetests reconciletests

packagetests:
	$(UNIT) $$(go list ./... | grep -vxF $(addprefix -e ,$(filter-out $(NORACE),$(CONCURRENT))))
	$(RACE) $(filter-out podd/reconcile,$(CONCURRENT))

# Too many synctest bubbles in one process crash the race detector (go.dev/issue/78156), so the tests
# of reconcile run in several processes. BUSY lists the tests that take most of the time. Two long tests
# check values that do not depend on races. The race detector sees their goroutines in the other tests
# and in one of the four seeds of TestChurn.
BUSY := PoddDies|OldSnapshots|Suspend|StartLimit|SlowObserver|ConcurrentInstances|StopDuringStart|Probes|LostSandbox|Reapplied|ShowNothingPrivate
reconciletests:
	$(RACE) '-skip=Churn|CallsFail|NoSecretIsShown|$(BUSY)' ./reconcile
	$(RACE) '-run=Churn/seed_0|$(BUSY)' ./reconcile
	$(RACE) -run=CallsFail ./reconcile
	$(UNIT) '-run=Churn|NoSecretIsShown' ./reconcile

# FUZZTIME is the duration of each of about 30 fuzz tests; the default is one minute.
fuzz: go ## Run every fuzz test; FUZZTIME: duration of each
	@grep -roE --include='*_test.go' '^func Fuzz\w+' cmd manifest reconcile runtime server | sort | while IFS=: read -r file name; do \
	echo "$$(dirname "$$file") $${name#func }"; \
	go test -vet=off -run - -fuzz "^$${name#func }\$$" -fuzztime $(or $(FUZZTIME),1m) -fuzzminimizetime 1s "./$$(dirname "$$file")" || exit; done

cross: go ## Build podd for arm64 and arm
	GOARCH=arm64 $(BUILD) -o /dev/null ./cmd/podd
	GOARCH=arm $(BUILD) -o /dev/null ./cmd/podd

# LONG lists the tests of the targets faults, soak and cluster, which take too long for e2e.
LONG := FaultScale|FaultLaterCallFails|FaultCallIsSlow|FaultCallHangs|FaultRuntimeDiesInCall|FaultRuntimeIsStopped|Soak|Takeover

e2e: build ## Run end-to-end tests on containerd
	$(E2E) -skip '^Test($(LONG))$$' ./cmd/podd/e2e

# RUNTIMETESTS are the packages below ./runtime with tests that need a runtime. These tests also run on
# the oldest containerd, and on CRI-O if it is in CRIO_DIR or PATH.
RUNTIMETESTS = $(shell grep -rl '^//go:build e2e' --include=*_test.go runtime | xargs -n1 dirname | sort -u | sed 's,^,./,')
contract: build ## Test packages with real runtimes
	$(E2E) $(RUNTIMETESTS) ./cmd/podd/e2e/nodesuite/privatehost

# ONRUNTIME lists the tests that depend most on the runtime. CRI-O comes from CRIO_DIR or PATH,
# because it cannot be built from a Go module.
runtimes: build
	RUNTIME=debian $(E2E) -run '^Test($(subst $() $(),|,$(strip $(ONRUNTIME))))$$' ./cmd/podd/e2e
	@if [ -n "$$CRIO_DIR" ] || command -v crio >/dev/null; then set -x; RUNTIME=crio $(E2E) -run '^Test($(subst $() $(),|,$(strip $(ONRUNTIME))))$$' ./cmd/podd/e2e; \
	else echo "NOT TESTED: podd on CRI-O, because CRIO_DIR is not set and the PATH has no crio"; fi
ONRUNTIME := AddEditRemove Attach Cgroups Edit_DuringGracePeriod Events Exec \
	ExecTerminal GracePeriodExceeded HookOrder HostPorts ImageByDigest ImageVolumes \
	InitContainersRunInOrder KilledContainerRestarts KubectlDebug LogsAreBounded \
	LostSandboxIsReplaced MountPropagation NamespacesAndSeccomp NetworkIsAbsent \
	PortForward PullBacksOff Resize Restart_KeepsContainers RunOnce_ExitCodes \
	RuntimeIsAbsentAtStart RuntimeIsKilledUnderPods SecurityContext Stats StopSignal \
	SupplementalGroups TerminationMessages UserNamespace

crio: build ## Run end-to-end tests on CRI-O; CRIO_DIR: directory of crio and pinns
	RUNTIME=crio $(E2E) $(RUNTIMETESTS)
	RUNTIME=crio $(E2E) -skip '^Test($(LONG))$$' ./cmd/podd/e2e

cluster: build ## Run tests with a real API server, kubeadm and kubelet
	$(E2E) ./cmd/podd/e2e/cluster ./cmd/podd/e2e/kubeadm
	$(E2E) -run '^TestTakeover$$' ./cmd/podd/e2e

# The quick tests of this target also run in e2e. The tests of damaged files and of lists
# larger than 16 MiB also run in unit.
faults: build ## Test full disks, damaged files, hanging calls, 5,000 pods (30 minutes)
	go test -count 1 -vet=off -run '^Test((Broken|Empty|Unreadable)Journal|Truncated|Flipped|Newer|Supersede|IndexFormats|RemoveChecksum_|CacheIgnoresDamage|Formats|Decode_|Open_|UnreadableIsKept|Observer_LargeList)' ./reconcile ./reconcile/journal ./manifest/source ./reconcile/device ./runtime/cri
	go test $(E2ETAGS) -count 1 -timeout 60m -vet=off -run '^(TestFault|TestFullDisk|TestReadOnlyDisk|TestPowerCut|TestAddress|TestHostname|TestResolvConf|TestRunDir|TestExitCodeIsUnknown|TestManifestsOnMount|TestLostRootDirectory|TestOrphanedDirectories)' ./cmd/podd/e2e

# SOAK is a duration; the default is one hour.
soak: build ## Repeat random edits, kills, full disks and slow calls; SOAK: duration
	PODD_SOAK=$(or $(SOAK),1h) go test $(E2ETAGS) -count 1 -timeout 0 -vet=off -v -run '^TestSoak$$' ./cmd/podd/e2e

# The first build takes many minutes.
kubernetes: go
	@go build -o bin/stack ./cmd/stack && exec bin/stack kubernetes

# CONFORMANCE is a regular expression of the tests to run. Targets test and cluster run thirty of them.
# PLANE=oldest tests with the oldest API server instead of the current one.
conformance: build ## Run NodeConformance of Kubernetes; RUNTIME=crio: on CRI-O
	PODD_PLANE=$(PLANE) PODD_CONFORMANCE='$(or $(CONFORMANCE),\[NodeConformance\])' go test $(E2ETAGS) -count 1 -timeout 60m -v -run '^TestNodeConformance$$' ./cmd/podd/e2e/cluster

# E2E_NODE is a regular expression of the specs to run; the default is all. E2E_NODE_FLAGS contains flags
# of the suite. Package nodesuite describes the tests, and its file skip.txt lists the specs that never run.
e2e-node: go ## Run Kubernetes' tests of a kubelet (hours); E2E_NODE: some of them
	PODD_NODE_SUITE='$(E2E_NODE)' PODD_NODE_SUITE_FLAGS='$(E2E_NODE_FLAGS)' go test $(E2ETAGS) -count 1 -timeout 10h -v -run '^TestNodeSuite$$' ./cmd/podd/e2e/nodesuite

# The machine is emulated and slow, so target test does not run it. VM=--step=nfs runs one
# step, VM=--from=nfs that step and the steps after it. The last steps, whose names begin with node-,
# run Kubernetes' tests of a kubelet, whose first build takes many minutes.
vm: go ## Test in a virtual machine: systemd, cgroup v2, swap, power cuts (hours)
	@[ "$$(id -u)" = 0 ] || { echo "make vm creates a disk image and must run as root: sudo make vm"; exit 1; }
	@go build -o bin/stack ./cmd/stack && exec bin/stack vm --version $(VERSION) $(VM)

bench: build ## Measure speed and memory, compared with bare CRI calls and a kubelet
	go run ./cmd/podd/bench --podd bin/podd $(BENCH)

# VULNDB is the URL of the database that govulncheck downloads, or file:///DIRECTORY.
VULNDB := https://vuln.go.dev
# With the tag e2e, lint checks all files, because no file requires that the tag is not set.
lint: go ## Run gofmt, go vet, staticcheck and govulncheck
	@test -z "$$(gofmt -l cmd manifest reconcile runtime server)" || { gofmt -l cmd manifest reconcile runtime server; exit 1; }
	go vet $(E2ETAGS) ./...
	go tool staticcheck $(E2ETAGS) ./...
	@go tool -n govulncheck >/dev/null && \
	if go tool govulncheck -db $(VULNDB) -version | grep -q '^DB updated'; then set -x; go tool govulncheck -db $(VULNDB) ./...; \
	else echo "NOT CHECKED: known vulnerabilities, because the database $(VULNDB) is unreachable"; fi

golden: go ## Rewrite golden files; review the diff
	go test -vet=off $$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep podd/runtime/runtimetest/golden | cut -d ' ' -f 1) -update

clean: ## Remove the built binaries
	rm -rf bin
