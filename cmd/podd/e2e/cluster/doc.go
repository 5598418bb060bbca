// Package cluster proves podd as the node of a cluster: on a real containerd, with a
// real kube-apiserver 1.34.4 and etcd on loopback (testdata/controlplane), which
// package tools of runtimetest builds once. Controllers and the scheduler run there
// for a test that asks for them, controlPlane.control; for the others no controller
// runs, and what one would do they do themselves.
//
//	test ──▶ up ──▶ etcd, kube-apiserver ◀── podd (system:node:nN) ──▶ containerd
//	  └── administrator ──▲
//
// Each test has a node of its own. One has Kubernetes' own tests judge podd: those of
// conformance.txt, or all of them with make conformance. The tests have the build tag
// e2e and need root; make cluster runs them. Everything ends with the test binary,
// also when that is killed.
package cluster
