// Package controlplane is empty. Its module pins the programs of Kubernetes 1.34.4 with which
// podd is compared, and records their behavior. The module is nested so that podd itself does
// not depend on them.
//
// The program validation passes some thousand pods to the code of the API server and records
// the results in testdata/manifests/kubernetes.jsonl.gz, with which the tests of podd/manifest
// compare podd:
//
//	cd testdata/controlplane && go run ./validation
//
// The program requests runs the kubelet on an in-memory runtime and records its CRI requests.
// Without an API server it records some hundred pods, including those of kubeadm and of podd's
// own goldens, in testdata/render/kubelet.jsonl.gz. With an API server it records pods that use
// ConfigMaps, Secrets and claims, in testdata/render/kubelet-api.jsonl.gz, and events in the
// life of running pods, in the scenarios of testdata/kubelet. The tests of podd/reconcile and
// the packages below it that are named TestKubelet compare podd with these. The program needs
// root on a host with cgroups and loop devices. It takes minutes to build the programs, which
// --programs keeps for the next time, and minutes for each part:
//
//	cd testdata/controlplane && go run ./requests --programs /tmp/bin [static|api|calls]…
//
// podd/cmd/podd/e2e/measure runs the same pods under the kubelet and under podd at the same
// time, compares the resource usage that they report, and records the fields and metrics in
// testdata/kubelet/stats.txt.
//
// After the first two run go test ./manifest/supported -run TestFields -update to update the
// counts.
//
// Package cluster runs the control plane. The program up runs it for tests of podd as a node,
// with the controllers if necessary. The programs are statically linked, so that images can be
// made of them. Package suite is the node conformance test suite of Kubernetes.
package controlplane
