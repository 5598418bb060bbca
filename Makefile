# podd: Kubernetes pods from files, on a CRI runtime.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# grpcnotrace leaves html/template out, 0.7 MB.
BUILD   := go build -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=$(VERSION)"
RACE    := $(shell command -v gcc >/dev/null && echo -race)
E2E     := go test -tags e2e -count 1 -timeout 25m -p 1 ./cmd/podd/e2e ./runtime/...

.PHONY: help build run stop test unit e2e cluster conformance vm bench lint golden clean go
.DEFAULT_GOAL := help

help: ## tell what there is
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

go:
	@go version >/dev/null 2>&1 || { echo "podd needs Go 1.21 or later to fetch its toolchain: none is on the PATH"; exit 1; }
	@v=$$(go env GOVERSION | sed 's/go1\.\([0-9]*\).*/\1/'); [ "$$v" -ge 21 ] || { echo "podd needs Go 1.21 or later to fetch its toolchain; this is $$(go env GOVERSION)"; exit 1; }

build: go ## bin/podd, static
	CGO_ENABLED=0 $(BUILD) -o bin/podd ./cmd/podd

run: go ## try podd here: a private containerd, two pods, nothing but .run
	@[ "$$(id -u)" = 0 ] || { echo "make run starts a container runtime, which needs root: sudo make run"; exit 1; }
	@go build -o bin/stack ./cmd/stack && exec bin/stack run --version $(VERSION)

stop: go ## remove all that make run made
	@go build -o bin/stack ./cmd/stack && exec bin/stack down

test: lint unit e2e ## everything, as CI does
	RUNTIME=debian $(E2E)

# Too many synctest bubbles in one process kill the race detector (go.dev/issue/78156),
# so reconcile has several.
unit: go ## unit, golden, property and fuzz tests; other platforms build
	go test $(RACE) $$(go list ./... | grep -v /reconcile$$)
	for only in '-skip=Churn|CallsFail|NothingTells' -run=Churn -run=CallsFail -run=NothingTells; do go test $(RACE) $$only ./reconcile || exit; done
	go test -run - -fuzz FuzzDecode -fuzztime 30s -fuzzminimizetime 1s ./manifest
	go test -run - -fuzz FuzzNext -fuzztime 30s -fuzzminimizetime 1s ./reconcile/plan
	GOARCH=arm64 CGO_ENABLED=0 $(BUILD) -o /dev/null ./cmd/podd
	GOARCH=arm CGO_ENABLED=0 $(BUILD) -o /dev/null ./cmd/podd

e2e: build ## the promises, on a real containerd
	$(E2E)

# An API server takes minutes to build, once: no part of test.
cluster: build ## podd as the node of a cluster, set up by kubeadm, and after a kubelet: all of them real
	go test -tags e2e -count 1 -timeout 40m -p 1 ./cmd/podd/e2e/cluster ./cmd/podd/e2e/kubeadm
	go test -tags e2e,kubelet -count 1 -run '^TestTakeover$$' ./cmd/podd/e2e

# The suite takes a quarter of an hour to build, once, and as long to run. CONFORMANCE
# is a regular expression of the tests to run.
conformance: build ## Kubernetes' own tests of a node's agent
	PODD_CONFORMANCE='$(CONFORMANCE)' go test -tags e2e,conformance -count 1 -timeout 60m -v -run '^TestNodeConformance$$' ./cmd/podd/e2e/cluster

# Emulated, so slow: no part of test. VM=--step=cut takes one step of it.
vm: go ## in a virtual machine: systemd, cgroup v2 alone, swap, huge pages, power cuts; 15 to 25 minutes
	@[ "$$(id -u)" = 0 ] || { echo "make vm makes a disk image, which needs root: sudo make vm"; exit 1; }
	@go build -o bin/stack ./cmd/stack && exec bin/stack vm --version $(VERSION) $(VM)

bench: build ## speed and memory beside bare CRI calls
	go run ./cmd/podd/bench --podd bin/podd $(BENCH)

lint: go ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l cmd manifest reconcile runtime server)" || { gofmt -l cmd manifest reconcile runtime server; exit 1; }
	go vet ./... && go vet -tags e2e,conformance,kubelet,vm ./...
	go tool staticcheck ./... && go tool staticcheck -tags e2e,conformance,kubelet,vm ./...

golden: go ## rewrite expected outputs; read the diff
	go test ./... -update

clean: ## remove what was built
	rm -rf bin
