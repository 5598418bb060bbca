package metrics

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// TestHandler_StaticLabel checks that pods of an API server are not counted as static pods.
func TestHandler_StaticLabel(t *testing.T) {
	m, in := exercised(), inputs()
	ofAPI := named("api", v1.PodRunning)
	m.o.IsStatic = func(p *v1.Pod) bool { return p.Name != ofAPI.Name }
	v := *view()
	v.Pods = append(v.Pods, &server.PodView{Pod: ofAPI, Rule: "Run"})
	in.State = server.NewLatestView(&v)
	got := scrape(m.Handler(in), "/metrics")
	for _, want := range []string{
		`kubelet_desired_pods{static=""} 1`, `kubelet_desired_pods{static="true"} 2`,
		`kubelet_active_pods{static=""} 1`, `kubelet_active_pods{static="true"} 2`,
		`kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1`, `kubelet_working_pods{config="desired",lifecycle="sync",static="true"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}

// TestHandler_TerminalPods checks where pods that were rejected or have terminated are counted. A rejected pod
// has no worker in the kubelet. A pod that was evicted is active until its containers have stopped.
func TestHandler_TerminalPods(t *testing.T) {
	m, in := exercised(), inputs()
	m.o.IsStatic = func(p *v1.Pod) bool { return strings.HasPrefix(p.Name, "file") }
	withVolumes := func(p *v1.Pod) *v1.Pod {
		p.Spec.Volumes = []v1.Volume{{Name: "used", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "used", MountPath: "/a"}}
		return p
	}
	in.State = server.NewLatestView(&server.View{Pods: []*server.PodView{
		{Pod: withVolumes(named("rejected", v1.PodFailed)), Path: server.ClusterSource, IsRejected: true},
		{Pod: withVolumes(named("file-rejected", v1.PodPending)), Path: "/m/p.yaml", Rule: "NotAdmitted", NeedsUser: true},
		{Pod: withVolumes(named("evicted", v1.PodFailed)), Path: server.ClusterSource, SandboxID: "s1", RuntimeContainers: server.ContainerCounts{Running: 1}},
		{Pod: withVolumes(named("done", v1.PodSucceeded)), Path: server.ClusterSource, RuntimeContainers: server.ContainerCounts{Exited: 1}},
	}})
	got := scrape(m.Handler(in), "/metrics")
	for _, want := range []string{
		`kubelet_desired_pods{static=""} 3`, `kubelet_desired_pods{static="true"} 1`,
		`kubelet_active_pods{static=""} 1`, `kubelet_active_pods{static="true"} 0`,
		`kubelet_working_pods{config="desired",lifecycle="terminating",static=""} 1`,
		`kubelet_working_pods{config="desired",lifecycle="terminated",static=""} 1`,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"} 1`,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}

// TestHandler_Volumes checks which volumes are counted. A volume that no container uses is not mounted, and a
// pod that is being deleted needs its volumes until its containers have stopped.
func TestHandler_Volumes(t *testing.T) {
	m, in := exercised(), inputs()
	p := named("web", v1.PodRunning)
	emptyDir := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
	p.Spec.Volumes = []v1.Volume{
		{Name: "unused", VolumeSource: emptyDir}, {Name: "init", VolumeSource: emptyDir}, {Name: "main", VolumeSource: emptyDir}, {Name: "debug", VolumeSource: emptyDir},
		{Name: "device", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
	}
	mounts := func(name string) []v1.VolumeMount { return []v1.VolumeMount{{Name: name, MountPath: "/" + name}} }
	p.Spec.InitContainers = []v1.Container{{Name: "first", VolumeMounts: mounts("init")}}
	p.Spec.Containers = []v1.Container{{Name: "main", VolumeMounts: mounts("main"), VolumeDevices: []v1.VolumeDevice{{Name: "device", DevicePath: "/dev/a"}}}}
	p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debugger", VolumeMounts: mounts("debug")}}}
	for name, test := range map[string]struct {
		isDeleted                  bool
		running                    int
		wantDesired, wantEmptyDirs string
	}{
		"running":                 {false, 1, "3", "3"},
		"not started":             {false, 0, "3", "3"},
		"deleted while it runs":   {true, 1, "3", "3"},
		"deleted and not running": {true, 0, "", "3"},
	} {
		v := &server.PodView{Pod: p.DeepCopy(), SandboxID: "s1", VolumePlugins: map[string]string{"device": "kubernetes.io/csi:disk.example.com"}, RuntimeContainers: server.ContainerCounts{Running: test.running}}
		if test.isDeleted {
			v.Pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(4000, 0)}
		}
		in.State = server.NewLatestView(&server.View{Pods: []*server.PodView{v}})
		got := scrape(New(m.o).Handler(in), "/metrics")
		if want := `volume_manager_total_volumes{plugin_name="kubernetes.io/csi:disk.example.com",state="actual_state_of_world"} 1`; !strings.Contains(got, want+"\n") {
			t.Errorf("%s: got no line %s", name, want)
		}
		for state, want := range map[string]string{"desired_state_of_world": test.wantDesired, "actual_state_of_world": test.wantEmptyDirs} {
			line := `volume_manager_total_volumes{plugin_name="kubernetes.io/empty-dir",state="` + state + `"} `
			if _, after, _ := strings.Cut(got, line); !strings.HasPrefix(after, want) || want == "" && after != "" {
				t.Errorf("%s: got %.3s empty directories in %s, want %s", name, after, state, want)
			}
		}
	}
}
