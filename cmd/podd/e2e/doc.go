// Package e2e tests podd on a real containerd and runc. Every test starts podd and writes
// manifests. It then checks not only the state that podd reports, but also the CRI runtime and the
// processes, mounts, cgroups and files on the host.
//
//	test ── writes ──▶ manifests ── read by ──▶ podd ── CRI ──▶ containerd ──▶ containers
//	 ├── starts, kills, sends requests to ───────▲                  ▲              ▲
//	 ├── lists sandboxes and containers of ─────────────────────────┘              │
//	 └── checks processes, mounts, cgroups and files of ───────────────────────────┘
//
// Each podd has its own root, run and log directories, parent cgroup and node name.
//
// The tests have the build tag e2e and need root. Tests that do not stop or change their
// containerd share one private containerd of package runtimetest/stack. Each of the other tests
// starts a separate one. The program component replaces the programs of kubeadm's control plane.
//
// These environment variables configure the tests:
//
//	RUNTIME            debian: Debian's containerd 1.6; crio: CRI-O; default: the pinned containerd
//	PODD_E2E_BINARY    path of the podd to test; default: podd is built
//	PODD_E2E_PATIENCE  maximum time that a test waits for an event; default: 3m
//
// A test must leave nothing on the host. If a test binary is killed, the next test binary removes
// its stack.
package e2e
