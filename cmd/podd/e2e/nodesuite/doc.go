// Package nodesuite runs test/e2e_node, the tests of Kubernetes for a kubelet, with podd as the
// kubelet and a real containerd:
//
//	test ──▶ private host: ginkgo ──▶ e2e_node.test ──▶ etcd, kube-apiserver (in its process)
//	                          │            └── systemd-run ──▶ kubelet (podd) ──▶ containerd
//	                          └── registry on loopback, with the images of the specs
//
// The specs use fixed paths, ports and cgroups, such as /var/lib/kubelet and /kubepods. Therefore
// everything runs on a private host; see package privatehost. The specs start and restart the
// kubelet as a unit of systemd. The private host has no systemd, so package systemd replaces
// systemd-run and systemctl. D-Bus and journald are missing.
//
// Some specs require what the private host cannot have: systemd, cgroup v2, swap or all
// capabilities. The last steps of make vm run these specs in a virtual machine:
//
//	make vm VM=--step=node-memory  # MemoryQoS; the file vm_steps.go of cmd/stack lists the other steps
//
// The virtual machine is emulated, and the containers of the steps node-resize and node-pod-resources may
// use a few percent of its slow CPU. crun starts them, because it needs less CPU time than runc.
//
// The file skip.txt lists the specs that do not run, and why. make e2e-node runs the tests on the
// private host, as root and with the build tag e2e:
//
//	make e2e-node                                    # all specs that need no flag of the suite; takes hours
//	make e2e-node E2E_NODE='\[NodeConformance\]'     # specs that match a regular expression
//	make e2e-node E2E_NODE=CriProxy E2E_NODE_FLAGS=--cri-proxy-enabled  # with a flag of the suite
//	make e2e-node E2E_NODE=StandaloneMode E2E_NODE_FLAGS=--standalone-mode  # without an API server
//	make e2e-node E2E_NODE=LockContention E2E_NODE_FLAGS='--kubelet-flags=--lock-file=/var/run/kubelet.lock --kubelet-flags=--exit-on-lock-contention'
//
// Specs without the label Serial run in four processes. Specs with this label run one after the
// other, and many of them restart the kubelet. If podd rejects the configuration of such a spec, the
// spec fails after two minutes, and its cleanup restores the previous configuration. skip.txt should
// contain these specs.
//
// The specs of evictions because of memory take their thresholds from /stats/summary, which counts only
// the memory of the private host's cgroup, but podd measures the available memory of the real host. So
// these specs fail if other programs use some hundred MiB or read many files, which fills the active
// page cache. The test empties this cache at its start; to do so again during a long run, write 1 to
// /proc/sys/vm/drop_caches. The specs of disks use a disk of their own.
// Specs with the label Feature:CriProxy need the flag --cri-proxy-enabled, specs with the label
// Feature:StandaloneMode the flag --standalone-mode, and the spec with the label
// Feature:LockContention two flags of the kubelet. Without the flags they are skipped.
//
// Several runs at the same time can divide the specs by name. Each run has its own private host, and
// together they need less time, because most specs wait. Each run needs its own $PODD_NODE_SUITE_LOGS.
// Run the specs of huge pages, and those of evictions because of memory or processes, without another
// run, because they change or measure resources of the real host. With $PODD_NODE_SUITE_KUBELET, start
// only one run, because a kubelet changes sysctls of the real host, and each run restores the values that
// it found.
//
// If $PODD_NODE_SUITE_LOGS is set, the logs of the suite and of podd are copied to this directory. It
// must not be below /tmp, /run or another directory that the private host covers.
// If $PODD_NODE_SUITE_KUBELET is the path of a kubelet, this kubelet runs instead of podd. Use it to
// find out whether a spec fails because of podd or because of the host.
package nodesuite
