// Package e2e tests podd on a real containerd and runc. Every test starts podd, writes
// manifests, and then checks the runtime through CRI, processes, mounts, cgroups and files,
// and not only the state that podd reports.
//
//	manifests ──▶ podd (own root, run, log dirs, cgroup, node name) ──▶ containerd
//	                ▲ kill -9, start                                       ▲
//	               test ◀── files of the pods, CRI, /proc, /sys ─────────┘
//
// The tests have the build tag e2e and need root. One private containerd of package
// runtimetest/stack serves all tests that do not stop or change it; the others start
// another one. RUNTIME=debian runs them on Debian's containerd 1.6, RUNTIME=crio on CRI-O.
// PODD_E2E_BINARY names the podd to test; by default it is built. The program component
// replaces the programs of kubeadm's control plane.
//
// A test may leave nothing on the host. A test binary that is killed leaves a stack, which
// the next test binary removes.
package e2e
