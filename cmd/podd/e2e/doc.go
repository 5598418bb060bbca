// Package e2e proves podd on a real containerd and runc: every test starts
// podd itself, writes manifests, and then looks at the runtime through CRI, at
// processes, mounts, cgroups and files, and not only at what podd says.
//
//	manifests ──▶ podd (own root, run, log dirs, cgroup, node name) ──▶ containerd
//	                ▲ kill -9, start                                       ▲
//	               test ◀── what the pods wrote, CRI, /proc, /sys ─────────┘
//
// The tests have the build tag e2e and need root. One private containerd of
// package runtimetest/stack serves those that leave it alone; the others start
// their own. RUNTIME=debian runs all of them on Debian's containerd 1.6. With
// PODD_E2E_BINARY that podd is tested, else one built for it. Program component
// stands in for kubeadm's control plane.
//
// When a test is over, nothing of it may be left on the machine. A test binary
// that is killed leaves a stack behind, which the next one to start removes.
package e2e
