// Package cluster tests podd as a node of a cluster, on a real containerd. A real kube-apiserver
// and etcd listen on loopback. Package tools of runtimetest builds them once, from the module
// testdata/controlplane. The controller manager and the scheduler run only in tests that call
// controlPlane.startControllers. The other tests do the work of controllers themselves.
//
//	test ── starts ──▶ up ── starts ──▶ etcd, kube-apiserver ◀── requests ── podd ── CRI ──▶ containerd
//	 ├── sends requests as administrator to ──────────▲                       ▲
//	 └── starts and kills ────────────────────────────────────────────────────┘
//
// The program up of testdata/controlplane starts and restarts etcd, kube-apiserver and the
// controllers. podd authenticates as system:node:NAME. Tests authenticate as a member of
// system:masters.
//
// Each test uses a different node. Tests run in parallel, except those that affect other nodes: they
// start the controllers or the metrics-server, stop the API server, or delete its data.
// TestNodeConformance runs node conformance tests of Kubernetes: those in conformance.txt or, with
// make conformance, all of them. The tests have the build tag e2e and need root; make cluster runs
// them. All processes exit with the test binary, even if it is killed.
package cluster
