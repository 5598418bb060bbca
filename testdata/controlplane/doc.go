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
// Program requests runs the kubelet itself on a runtime in memory and records
// what it asks of that: alone, for some hundred pods, those of kubeadm and of
// podd's own goldens among them, in testdata/render/kubelet.jsonl.gz; with an API
// server, for pods that read ConfigMaps, Secrets and claims, in
// testdata/render/kubelet-api.jsonl.gz; and for what happens to pods that run, in
// the stories of testdata/kubelet. Tests of podd/reconcile and the packages below
// it, named TestKubelet, compare themselves with these. It needs root on a
// machine with cgroups and loop devices, and minutes to build the programs, which
// --programs keeps for the next time, as well as for each part:
//
//	cd testdata/controlplane && go run ./requests --programs /tmp/bin [static|api|calls]…
//
// podd/cmd/podd/e2e/measure has the kubelet of those programs and podd run the same
// pods side by side, compares what both tell that these use, and records in
// testdata/kubelet/stats.txt which fields and metrics there are.
//
// After the first two go test ./manifest/supported -run TestFields -update counts anew.
//
// Package cluster is the control plane that it uses, a real one, and program up
// runs that, and the controllers where they are asked for, for tests of podd as a
// node. They are static programs, so images can be made of them. Package suite is
// Kubernetes' own tests of a node's agent.
package controlplane
