// Package controlplane is empty: its module pins the programs of Kubernetes
// 1.34.4 that podd is measured against, and asks them what is true. The module
// is nested so that none of it reaches podd's own dependencies.
//
// Program validation asks the API server's own code what it makes of some
// thousand pods, and records it in testdata/manifests/kubernetes.jsonl.gz, with
// which podd/manifest's tests compare themselves:
//
//	cd testdata/controlplane && go run ./validation
package controlplane
