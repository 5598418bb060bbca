// Package controlplane is empty: its module pins the programs of Kubernetes
// 1.34.4 that podd is measured against, and asks them what is true. The module
// is nested so that none of it reaches podd's own dependencies.
//
// Program validation asks the API server's own code what it makes of some
// thousand pods, and records it in testdata/manifests/kubernetes.jsonl.gz, with
// which podd/manifest's tests compare themselves:
//
//	cd testdata/controlplane && go run ./validation
//
// Program requests runs the kubelet itself, alone and on a runtime in memory,
// and records what it asks of that for some hundred pods, those of kubeadm and
// of podd's own goldens among them, in testdata/render/kubelet.jsonl.gz. It
// needs root on a machine with cgroups, builds the kubelet in some minutes, and
// takes a few more:
//
//	cd testdata/controlplane && go run ./requests
//
// Afterwards go test ./manifest -run TestFields -update counts anew.
package controlplane
