package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"podd/runtime/runtimetest/golden"
	"podd/server"
)

func view() *server.View {
	running := v1.ContainerStatus{Name: "main", ContainerID: "containerd://1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	waiting := v1.ContainerStatus{Name: "main", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}
	web := named("web-n1", v1.PodRunning, running)
	web.Status.QOSClass = v1.PodQOSBestEffort
	web.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred, LastTransitionTime: metav1.Unix(3990, 0)}}
	web.Spec.Volumes = []v1.Volume{
		{Name: "a", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "b", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
	}
	web.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b"}}
	return &server.View{
		Node: "n1", Version: "v9",
		Files: []server.FileView{
			{Path: "/etc/podd/web.yaml", ContentTime: time.Unix(1000, 5e8), OutdatedReason: "edit refused"},
			{Path: "/etc/podd/db.yaml", ContentTime: time.Unix(2000, 0)},
		},
		Pods: []*server.PodView{
			{Pod: named("db-n1", v1.PodRunning, waiting), Path: "/etc/podd/db.yaml", SandboxID: "s1", Rule: "Run", RuntimeContainers: server.ContainerCounts{Exited: 1},
				Decisions: []server.DecisionView{{Container: "main", Rule: "CrashBackOff", Reason: "CrashLoopBackOff", NeedsUser: true}}},
			{Pod: web, Path: "/etc/podd/web.yaml", SandboxID: "s2", Ready: true, Rule: "Run", RuntimeContainers: server.ContainerCounts{Running: 1, Exited: 1}},
		},
		Problems: []server.ProblemView{
			{Path: "/etc/podd/web.yaml", Severity: "error", Message: `a "quoted" message`},
			{Severity: "error", Message: "no runtime"},
		},
	}
}

func named(name string, phase v1.PodPhase, containers ...v1.ContainerStatus) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
		Status:     v1.PodStatus{Phase: phase, ContainerStatuses: containers},
	}
}

// inputs returns Inputs with which every metric has a series.
func inputs() Inputs {
	return Inputs{
		State:                   server.NewLatestView(view()),
		ClientCertificateExpiry: func() (time.Time, error) { return time.Time{}, errors.New("a token") },
		MirrorPodCount:          func() int { return 2 },
		CountPodCertificates: func() map[PodCertificateState]int {
			return map[PodCertificateState]int{{"example.com/mesh", "fresh"}: 2, {"example.com/mesh", "denied"}: 1}
		},
		PullRecords: func() (intents, records int) { return 1, 2 },
		FeatureGates: func(visit func(name, stage string, isEnabled bool)) {
			visit("NodeSwap", "", true)
			visit("AllAlpha", "ALPHA", false)
		},
		Disks: func(context.Context) (*DiskUsage, error) {
			data := ClaimUsage{Namespace: "default", Name: "data", CapacityBytes: 100, AvailableBytes: 60, UsedBytes: 40, Inodes: 10, InodesFree: 7, InodesUsed: 3}
			return &DiskUsage{Claims: []ClaimUsage{data, data}, Logs: []LogUsage{{"default", "web-n1", "uid-web-n1", "main", 4096}}}, nil
		},
	}
}

// exercised returns Metrics in which every metric has a series.
func exercised() *Metrics {
	m := New(Options{
		CgroupVersion: 2, KubernetesVersion: "v1.37.2", NotAdmittedRule: "NotAdmitted", AdmittedPhases: []string{"run"},
		BootTime: time.Unix(900, 0), StartTime: time.Unix(920, 0), CredentialConfigHash: "sha256:0123",
	})
	m.RecordCertificateRequest(true, time.Unix(1000, 0), time.Unix(8000, 0), nil)
	m.RecordCertificateRequest(true, time.Time{}, time.Unix(8000, 0), nil)
	m.RecordCertificateRequest(true, time.Unix(1000, 0), time.Unix(8000, 0), errors.New("denied"))
	m.RecordCertificateRequest(false, time.Unix(1000, 0), time.Unix(8000, 0), errors.New("denied"))
	m.RecordCall("RunPodSandbox", 300*time.Millisecond, nil)
	m.RecordCall("PullImage", time.Second, errors.New("no route"))
	m.RecordRelist(time.Unix(3000, 0), 10*time.Millisecond)
	m.RecordRelist(time.Unix(3010, 0), 10*time.Millisecond)
	m.RecordPodRelist(2 * time.Millisecond)
	m.RecordSandbox(Sandbox{UID: "users", HasUserNamespace: true, Call: &Call{Duration: 300 * time.Millisecond}})
	m.RecordSandbox(Sandbox{Handler: "vm", Err: errors.New("no vm"), Call: &Call{time.Second, errors.New("no vm")}})
	m.RecordSandbox(Sandbox{HasUserNamespace: true, Err: errors.New("no IDs")})
	m.RecordClientRequest("200", "GET", "10.0.0.1:6443")
	m.RecordClientRequest("<error>", "PATCH", "10.0.0.1:6443")
	m.RecordContainerStart("users", "container", "")
	m.RecordContainerStart("web", "init_container", "CreateContainerError")
	m.RecordEnsureImage("IfNotPresent", new(false), new(true))
	m.RecordEnsureImage("Never", new(false), nil)
	m.RecordVerifyImage("mustAuthenticate")
	m.RecordPull(20<<20, 2*time.Second)
	m.RecordCollectedImage("space")
	m.RecordImageVolumes(ImageVolumes{Volumes: 1, Mounts: 2, HasStarted: true})
	before, after := &server.PodView{Pod: named("web-n1", v1.PodPending), Rule: "NoSandbox"}, view().Pods[1]
	after.Phase = "run"
	after.Pod.Spec.Volumes = nil // so that the SLI includes the pod
	start := metav1.Unix(4000, 0)
	after.Pod.Status.StartTime = &start
	m.UpdatePod(nil, before, time.Unix(4000, 0))
	m.RecordFirstAction(before.Pod.UID, time.Unix(4000, 5e8))
	m.RecordPullTime(before.Pod.UID, time.Unix(4000, 0), time.Unix(4001, 0))
	m.RecordMount(Mount{before.Pod.UID, "data", "kubernetes.io/nfs", time.Unix(4001, 0)})
	m.UpdatePod(before, after, time.Unix(4002, 0))
	m.RecordAction(OperationCreate, 300*time.Millisecond)
	m.RecordAction(OperationKill, time.Second)
	m.RecordCgroup("create", time.Millisecond)
	m.SetMemoryProtection(1<<30, 2<<30)
	m.RecordPluginRegistration("example.com/fpga")
	m.RecordPodResourcesRequest("v1", "List", false)
	m.RecordPodResourcesRequest("v1", "List", true)
	m.RecordPodResourcesRequest("v1", "Get", true)
	m.RecordPodResourcesRequest("v1", "GetAllocatableResources", true)
	m.RecordPodResourcesRequest("v1alpha1", "List", false)
	m.RecordDeviceAllocation("example.com/fpga", 20*time.Millisecond)
	m.RecordPodsRequest("ListPods", "OK")
	m.RecordPodsRequest("GetPod", "NotFound")
	m.RecordPodsRequest("WatchPods", "Canceled")
	m.RecordDriverCall("host.csi.example.com", "/csi.v1.Node/NodeStageVolume", "OK", time.Second)
	m.RecordRegistrationAttempt(time.Unix(925, 0))
	m.RecordRegistration(time.Unix(926, 0))
	m.RecordNodeReady(time.Unix(936, 0))
	m.RecordCredentialProvider("ecr", 2*time.Second, false)
	m.RecordCredentialProvider("ecr", 20*time.Millisecond, true)
	m.RecordStatusSync(120 * time.Millisecond)
	m.RecordEvictionStatsAge("memory.available", 40*time.Millisecond)
	m.SetShutdownTimes(time.Unix(500, 0), time.Time{})
	m.SetShutdownTimes(time.Unix(500, 0), time.Unix(530, 5e8))
	m.RecordResize(80*time.Millisecond, nil)
	m.RecordResize(5*time.Second, errors.New("too small"))
	resized := *after
	resized.Pod = after.Pod.DeepCopy()
	resized.Pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}
	m.UpdatePod(after, &resized, time.Unix(4002, 0))
	m.RecordVolumeMeasurement("du", 2*time.Millisecond)
	m.RecordPlainHook()
	m.RecordVolumeOperation("kubernetes.io/nfs", "volume_mount", time.Second, nil)
	m.RecordVolumeOperation("kubernetes.io/nfs", "volume_mount", time.Second, errors.New("no server"))
	for _, plugin := range []string{"kubernetes.io/iscsi", "kubernetes.io/csi:driver.example.com"} {
		for result, n := range map[VolumeLabelResult]int{LabelMounted: 4, LabelConflicted: 3, LabelsDiffer: 2, LabelInvalid: 1} {
			for range n {
				m.RecordVolumeLabel(VolumeLabel{Plugin: plugin, AccessMode: "RWO", Result: result})
			}
		}
	}
	m.RecordVolumeLabel(VolumeLabel{Plugin: "kubernetes.io/iscsi", AccessMode: "inline", Result: LabelsDiffer, IsErrorIgnored: true})
	m.RecordVolumeLabel(VolumeLabel{Plugin: "kubernetes.io/iscsi", AccessMode: "RWX", Result: LabelInvalid, IsErrorIgnored: true})
	ended := *after
	ended.Pod = named("web-n1", v1.PodFailed)
	ended.Pod.Status.Reason, ended.EvictionSignal = evicted, "ephemeralpodfs.limit"
	m.UpdatePod(after, &ended, time.Unix(4004, 0))
	preemptedPod := *after
	preemptedPod.Pod, preemptedPod.PreemptionSignal = named("web-n1", v1.PodFailed), "memory"
	preemptedPod.Pod.Status.Reason = preempted
	m.UpdatePod(after, &preemptedPod, time.Unix(4004, 0))
	restarted := *after
	restarted.Pod = after.Pod.DeepCopy()
	restarted.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{ContainerID: "containerd://0", ExitCode: 1, Reason: "Error"}
	m.UpdatePod(after, &restarted, time.Unix(4003, 0))
	rejected := &server.PodView{Pod: named("big-n1", v1.PodFailed), Rule: "NotAdmitted", NeedsUser: true, Path: "/etc/podd/big.yaml"}
	rejected.Pod.Status.Reason, rejected.InsufficientResource = "OutOfhugepages-2Mi", "hugepages-2Mi"
	m.UpdatePod(nil, rejected, time.Unix(4002, 0))
	m.UpdatePod(rejected, rejected, time.Unix(4002, 0))
	unattached, full := &server.PodView{Pod: named("disks", v1.PodPending)}, &server.PodView{Pod: named("disks", v1.PodFailed), IsRejected: true}
	full.Pod.Status.Reason = "VolumeAttachmentLimitExceeded"
	rejectedEarlier := *full
	rejectedEarlier.IsRejected = false
	m.UpdatePod(nil, &rejectedEarlier, time.Unix(4002, 0)) // rejected by an earlier podd
	unknown := &server.PodView{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "disks"}, Status: v1.PodStatus{Phase: v1.PodUnknown}}}
	m.UpdatePod(unknown, &rejectedEarlier, time.Unix(4002, 0)) // rejected by an earlier podd, before the sources were read
	m.UpdatePod(unattached, full, time.Unix(4002, 0))
	m.UpdatePod(full, full, time.Unix(4002, 0))
	replacement := *full
	replacement.Pod = full.Pod.DeepCopy()
	replacement.Pod.UID = "replacement"
	m.UpdatePod(full, &replacement, time.Unix(4002, 0))
	lost := &server.PodView{Pod: named("lost-n1", "")}
	lost.Pod.DeletionTimestamp = &start
	m.UpdatePod(nil, lost, time.Unix(4002, 0))
	m.UpdatePod(lost, lost, time.Unix(4002, 0))
	m.UpdatePod(after, after, time.Unix(4003, 0))
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	m.RecordProbe(Probe{Pod: key, UID: "u", Container: "main", Kind: "liveness", Passed: true, Duration: time.Millisecond})
	m.RecordProbe(Probe{Pod: key, UID: "u", Container: "main", Kind: "readiness", Err: errors.New("container not found")})
	m.RecordHealthCheck("healthz", "syncloop", nil)
	m.RecordHealthCheck("healthz", "syncloop", errors.New("no progress"))
	m.RecordHealthCheck("readyz", "runtime", nil)
	counted := m.CountRequests("readwrite", http.NotFoundHandler())
	for _, path := range []string{"/pods", "/metrics/cadvisor", "/exec/a/b/c", "/%00/weird", "/"} {
		counted.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	counted.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/pods", nil))
	return m
}

func scrape(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Body.String()
}

// variable matches lines with values that differ between processes.
var variable = regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(go_|process_|promhttp_|kubernetes_build_info|kubelet_http_requests_duration).*\n`)

func TestHandler(t *testing.T) {
	h := exercised().Handler(inputs())
	for path, file := range map[string]string{"/metrics": "metrics.txt", "/metrics/probes": "probes.txt", "/metrics/slis": "slis.txt"} {
		got := variable.ReplaceAllString(scrape(h, path), "")
		golden.Compare(t, filepath.Join("testdata", file), got)
	}
}

// kubeletNames are names of metrics that violate rules of promlint. podd uses these names because the
// kubelet uses them.
var kubeletNames = strings.Fields(`kubelet_evictions kubelet_pod_resize_duration_milliseconds kubelet_preemptions kubelet_running_pods kubelet_node_name kubelet_cgroup_version
volume_manager_selinux_container_errors_total volume_manager_selinux_container_warnings_total
volume_manager_selinux_pod_context_mismatch_errors_total volume_manager_selinux_pod_context_mismatch_warnings_total
volume_manager_selinux_volume_context_mismatch_errors_total volume_manager_selinux_volumes_admitted_total
volume_manager_total_volumes kubelet_certificate_manager_client_expiration_renew_errors kubelet_server_expiration_renew_errors
kubelet_pod_resources_endpoint_requests_list kubelet_pod_resources_endpoint_requests_get
kubelet_pod_resources_endpoint_requests_get_allocatable kubelet_pod_resources_endpoint_errors_list
kubelet_pod_resources_endpoint_errors_get kubelet_pod_resources_endpoint_errors_get_allocatable
kubelet_credential_provider_plugin_duration`)

func TestLint(t *testing.T) {
	h := exercised().Handler(inputs())
	for _, path := range []string{"/metrics", "/metrics/probes", "/metrics/slis"} {
		problems, err := promlint.New(strings.NewReader(scrape(h, path))).Lint()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, c := range problems {
			if !slices.Contains(kubeletNames, c.Metric) {
				t.Errorf("%s: %s: %s", path, c.Metric, c.Text)
			}
		}
	}
}

func TestOperation(t *testing.T) {
	for method, want := range map[string]string{
		"RunPodSandbox": "run_podsandbox", "ListPodSandbox": "list_podsandbox", "PodSandboxStatus": "podsandbox_status",
		"ListPodSandboxStats": "list_podsandbox_stats", "CreateContainer": "create_container", "ContainerStatus": "container_status",
		"ExecSync": "exec_sync", "UpdateContainerResources": "update_container", "UpdatePodSandboxResources": "update_podsandbox_resources", "ImageFsInfo": "image_fs_info", "Version": "version",
	} {
		if got := operationLabel(method); got != want {
			t.Errorf("%s: got %s, want %s", method, got, want)
		}
	}
}

// TestRecordProbe_Duration checks that the duration of a probe is recorded only if the probe passed, as in
// the kubelet. A failed probe often has the duration of its timeout.
func TestRecordProbe_Duration(t *testing.T) {
	m := New(Options{KubernetesVersion: "v1.37.2"})
	for _, p := range []Probe{
		{Passed: true, Duration: 2 * time.Second}, {Duration: 30 * time.Second}, {Duration: 40 * time.Second, Err: errors.New("no container")},
	} {
		p.Kind = "liveness"
		m.RecordProbe(p)
	}
	text := scrape(m.Handler(inputs()), "/metrics/probes")
	for name, want := range map[string]string{"sum": "2", "count": "1"} {
		if line := "prober_probe_duration_seconds_" + name + `{container="",namespace="",pod="",probe_type="Liveness"} ` + want; !strings.Contains(text, line+"\n") {
			t.Errorf("missing %s", line)
		}
	}
}

// TestForget checks that a deleted pod has no series.
func TestForget(t *testing.T) {
	m := exercised()
	h := m.Handler(inputs())
	m.deletePodSeries(types.NamespacedName{Namespace: "default", Name: "web-n1"})
	if text := scrape(h, "/metrics/probes"); strings.Contains(text, "web-n1") {
		t.Errorf("after the pod was deleted: got a series of it, want none:\n%s", text)
	}
}

// TestPod_Edited checks that an edit deletes the series of the replaced pod and not those of its
// successor.
func TestPod_Edited(t *testing.T) {
	m := exercised()
	h := m.Handler(inputs())
	before, after := &server.PodView{Pod: named("web-n1", v1.PodRunning)}, &server.PodView{Pod: named("web-n1", v1.PodPending)}
	before.Pod.UID, after.Pod.UID = "u", "next"
	m.RecordProbe(Probe{Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "next", Container: "main", Kind: "liveness", Passed: true})
	m.UpdatePod(before, after, time.Unix(4000, 0))
	text := scrape(h, "/metrics/probes")
	if strings.Contains(text, `pod_uid="u"`) || !strings.Contains(text, `pod_uid="next"`) {
		t.Errorf("after an edit: got\n%s\nwant only series of the new pod", text)
	}
}

// TestSources_InvalidUTF8 checks that file names that are not valid UTF-8 are served. Names that
// are equal after replacing invalid bytes share one series.
func TestSources_InvalidUTF8(t *testing.T) {
	old, broken := server.FileView{Path: "/m/\xff.yaml", ContentTime: time.Unix(1000, 0)}, server.FileView{Path: "/m/\xfe.yaml", ContentTime: time.Unix(2000, 0), OutdatedReason: "broken"}
	for _, files := range [][]server.FileView{{old, broken}, {broken, old}} {
		v := view()
		v.Files = append(v.Files, files...)
		v.Problems = []server.ProblemView{{Path: old.Path, Severity: "error"}, {Path: broken.Path, Severity: "error"}}
		w := httptest.NewRecorder()
		New(Options{KubernetesVersion: "v1.37.2"}).Handler(Inputs{State: server.NewLatestView(v)}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, want := range []string{
			`podd_manifest_last_good_seconds{source="/m/�.yaml"} 1000`, `podd_manifest_behind{source="/m/�.yaml"} 1`,
			`podd_manifest_behind{source="/etc/podd/db.yaml"} 0`, `podd_problems{reason="error",source="/m/�.yaml"} 2`,
		} {
			if w.Code != http.StatusOK || strings.Count(w.Body.String(), want+"\n") != 1 {
				t.Errorf("got status %d, want 200 and exactly one line %s", w.Code, want)
			}
		}
	}
}

// TestSources_Limit checks that the number of series is limited, whatever the number of files and
// their names. All files above the limit share one series, which has the worst value of these files.
func TestSources_Limit(t *testing.T) {
	v := view()
	v.Files, v.Problems = nil, nil
	for i := range 3 * maxSources {
		path := fmt.Sprintf("/m/%04d\n\"},%s.yaml", i, strings.Repeat("x", 200))
		v.Files = append(v.Files, server.FileView{Path: path, ContentTime: time.Unix(int64(5000-i), 0)})
		v.Problems = append(v.Problems, server.ProblemView{Path: path, Severity: "error"})
	}
	v.Files[len(v.Files)-1].OutdatedReason = "broken"
	got := scrape(New(Options{KubernetesVersion: "v1.37.2"}).Handler(Inputs{State: server.NewLatestView(v)}), "/metrics")
	for name, most := range map[string]int{"podd_manifest_behind{": maxSources + 1, "podd_manifest_last_good_seconds{": maxSources + 1, "podd_problems{": maxSources + 4} {
		if n := strings.Count(got, "\n"+name); n > most || n < maxSources {
			t.Errorf("got %d series of %s, want %d to %d", n, name, maxSources, most)
		}
	}
	for _, want := range []string{`podd_manifest_behind{source="other"} 1`, `podd_problems{reason="error",source="other"} 2000`, `podd_manifest_last_good_seconds{source="other"} 2001`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("want the series %s, got:\n%s", want, got)
		}
	}
}

// TestAlerts checks that the example alerts use only metrics and labels that exist.
func TestAlerts(t *testing.T) {
	rules, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) >= 2 {
			labels[f[0]] = strings.Join(f[2:], "")
		}
	}
	var parsed struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(rules, &parsed); err != nil {
		t.Fatal(err)
	}
	for _, g := range parsed.Groups {
		for _, r := range g.Rules {
			for _, m := range regexp.MustCompile(`((?:podd|kubelet)_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(r.Expr, -1) {
				has, known := labels[strings.TrimSuffix(m[1], "_count")]
				if !known {
					t.Errorf("alert %s: podd has no metric %s", r.Alert, m[1])
				}
				for _, l := range regexp.MustCompile(`(\w+)\s*[=!]`).FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(strings.Split(has, ","), l[1]) {
						t.Errorf("alert %s: metric %s has no label %s", r.Alert, m[1], l[1])
					}
				}
			}
			if r.Annotations["summary"] == "" {
				t.Errorf("alert %s has no summary", r.Alert)
			}
		}
	}
}
