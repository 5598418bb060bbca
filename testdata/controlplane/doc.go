// Package controlplane is empty. Its module pins the programs of Kubernetes with which
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
// life of running pods, in the scenarios of testdata/kubelet. Tests named TestKubelet in
// podd/reconcile and the packages below it compare podd with these recordings. The program needs
// root on a host with cgroups and loop devices. Building the programs of Kubernetes takes minutes;
// --programs keeps them for the next run. Each part also takes minutes:
//
//	cd testdata/controlplane && go run ./requests --programs /tmp/bin [static|api|calls]…
//
// podd/cmd/podd/e2e/measure runs the same pods under the kubelet and under podd at the same
// time, compares the resource usage that they report, and records the fields and metrics in
// testdata/kubelet/stats.txt.
//
// The program settings records the kubelet's feature gates, flags and default configuration, which the
// tests of podd/cmd/podd/internal/config compare with podd's tables:
//
//	cd testdata/controlplane && go run ./settings
//
// To move to another version of Kubernetes, run upgrade.sh with the version, set
// manifest.KubernetesVersion, and run all of these programs. Then the tests of podd fail for every
// difference: fields of pods without a verdict (manifest/supported) or without a decision whether
// they are private (manifest/redact), fields of the configuration without an effect
// (cmd/podd/docs_effects_test.go), settings without a verdict (cmd/podd/internal/config), list types (server/kube/managed), defaults and validation
// (manifest/decode), CRI requests, events and statuses (reconcile).
//
// After validation and requests run go test ./manifest/supported -run TestFields -update to update
// the counts.
//
// Package cluster runs the control plane, and the module oldest pins the oldest one. The program up runs it for tests of podd as a node,
// with the controllers if necessary. The programs are statically linked, so that they can run in
// images without other files. Package suite is the node conformance test suite of Kubernetes.
package controlplane
