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
// tests of podd/cmd/podd/internal/config compare with podd's tables. It also reads the names of the
// metrics and the reasons of the events from the source of the kubelet, for the tests of
// podd/server/metrics and podd/reconcile/event:
//
//	cd testdata/controlplane && go run ./settings
//
// To move to another version of Kubernetes:
//
//  1. Run upgrade.sh with the version, and set manifest.KubernetesVersion.
//  2. Run all programs above. The program settings moves feature gates that no longer exist to
//     cmd/podd/internal/config/former_feature_gates.txt.
//  3. Run go test ./manifest/supported -run TestFields -update to update the counts.
//  4. Run the tests, and correct podd, or the list that a test names.
//  5. Check the lists that no test compares with Kubernetes; see below.
//
// The tests fail for these differences:
//
//   - fields of pods without a verdict (manifest/supported), or without a decision whether they are private
//     (manifest/redact)
//   - list types (server/kube/managed), and defaults and validation of pods (manifest/decode)
//   - fields of the configuration, flags and feature gates without a verdict (cmd/podd/internal/config), and
//     fields without a text (cmd/podd/docs_effects_test.go). A new feature gate must be in a table or in
//     testdata/gates-elsewhere.txt; search for the gate in the source of the kubelet, including pkg/apis/core
//     and pkg/api/pod, with which a kubelet checks static pods.
//   - metrics that podd neither serves nor explains (server/metrics), and metrics in the recording that are
//     no expected difference (cmd/podd/e2e/shape/expected.go)
//   - reasons of events that podd neither records nor explains (reconcile/event)
//   - RPCs of CRI without a verdict (TestRPCs in runtime/cri), and fields of the status of a pod without one
//     (reconcile/status)
//   - CRI requests, events and statuses of recorded pods (reconcile)
//
// No test compares these lists with Kubernetes:
//
//   - the buckets of histograms (kubeletBuckets in server/metrics), and the labels of metrics without a series
//     in the recording
//   - reasons of events that the kubelet computes, such as those of rejected pods
//   - which gates of testdata/gates-elsewhere.txt the kubelet has begun to read
//
// Package cluster runs the control plane, and the module oldest pins the oldest one. The program up
// runs it for tests of podd as a node, with the controllers if necessary. The programs are statically
// linked, so that they can run in images without other files. Package suite is the node conformance
// test suite of Kubernetes.
package controlplane
