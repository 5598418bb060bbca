package daemon

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/daemon/view"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/server"
	"podd/server/metrics"
)

// TestNewMetrics_DeletedPods checks where pods that are being deleted are counted. A pod that is being deleted in
// the API server is still desired, a pod without its file is orphaned, and podd never had a manifest of a pod that
// it found only in the runtime. podd was started during the deletion.
func TestNewMetrics_DeletedPods(t *testing.T) {
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: "default", Name: name}
	}
	pod := func(name, kind string) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: types.UID(name), DeletionTimestamp: new(metav1.Unix(4000, 0)),
				Annotations: map[string]string{manifest.AnnotationConfigSource: kind},
			},
			Spec:   v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
			Status: v1.PodStatus{Phase: v1.PodRunning},
		}
	}
	running := []runtime.Incarnation{{Sandbox: runtime.Sandbox{ID: "s", Ready: true}}}
	api := pod("api", manifest.KindAPI)
	m := newMetrics(render.Node{}, time.Now(), "", true)
	p := view.NewPublisher(view.Options{OnPodChanged: m.UpdatePod})
	p.Publish(reconcile.Change{
		SetChanged: true,
		Set:        &manifest.Set{TerminatingPods: map[types.NamespacedName]*manifest.Pod{key("api"): {Key: key("api"), UID: "api", Object: api}}},
		Reports: []*state.Report{
			{Key: key("api"), Pod: api, IsInSource: true, Observed: running},
			{Key: key("file"), Pod: pod("file", manifest.KindFile), Observed: running},
			{Key: key("found"), Observed: running},
		},
	})
	w := httptest.NewRecorder()
	m.Handler(metrics.Inputs{State: p.Latest}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`kubelet_desired_pods{static=""} 1`, `kubelet_desired_pods{static="true"} 0`,
		`kubelet_active_pods{static=""} 1`, `kubelet_active_pods{static="true"} 0`,
		`kubelet_working_pods{config="desired",lifecycle="terminating",static=""} 1`,
		`kubelet_working_pods{config="desired",lifecycle="terminating",static="true"} 0`,
		`kubelet_working_pods{config="orphan",lifecycle="terminating",static=""} 0`,
		`kubelet_working_pods{config="orphan",lifecycle="terminating",static="true"} 1`,
		`kubelet_working_pods{config="runtime_only",lifecycle="terminating",static="unknown"} 1`,
		`kubelet_orphaned_runtime_pods_total 2`, // file and found
	} {
		if !strings.Contains(w.Body.String(), "\n"+want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}

// TestImageVolumes checks the numbers of image volumes and of their mounts in a container, for each
// outcome of the start of the container.
func TestImageVolumes(t *testing.T) {
	image := v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "data:1"}}
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{
		Volumes: []v1.Volume{{Name: "data", VolumeSource: image}, {Name: "unused", VolumeSource: image}, {Name: "empty"}},
		Containers: []v1.Container{
			{Name: "main", VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/a"}, {Name: "data", MountPath: "/b"}, {Name: "empty", MountPath: "/c"}}},
			{Name: "other"},
		},
	}}}
	tests := map[string]struct {
		pod       *manifest.Pod
		container string
		err       error
		want      metrics.ImageVolumes
	}{
		"started":          {p, "main", nil, metrics.ImageVolumes{Volumes: 1, Mounts: 2, HasStarted: true}},
		"mount failed":     {p, "main", errors.New("creating the container: ImageVolumeMountFailed: no space left"), metrics.ImageVolumes{Volumes: 1, Mounts: 2, HasMountFailed: true}},
		"other failure":    {p, "main", errors.New("no such command"), metrics.ImageVolumes{Volumes: 1, Mounts: 2}},
		"no image volumes": {p, "other", nil, metrics.ImageVolumes{HasStarted: true}},
		"no pod":           {nil, "main", nil, metrics.ImageVolumes{}},
		"no container":     {p, "gone", nil, metrics.ImageVolumes{}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, imageVolumes(effect.Outcome{Pod: test.pod, Err: test.err}, test.container)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOutcomeCounter_Starts checks which outcomes count as a start of a container and as a failure of it. As in
// the kubelet, a failed pull and a failed postStart hook are failures of the start.
func TestOutcomeCounter_Starts(t *testing.T) {
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "first"}}, Containers: []v1.Container{{Name: "main"}}}}}
	failure := errors.New("failed")
	for name, test := range map[string]struct {
		outcome                effect.Outcome
		wantStarts, wantErrors string
	}{
		"started":                       {effect.Outcome{Action: plan.StartContainer{Container: "main"}}, `container_type="container"} 1`, ""},
		"start failed":                  {effect.Outcome{Action: plan.StartContainer{Container: "main"}, Err: failure, Reason: "RunContainerError"}, `container_type="container"} 1`, `code="RunContainerError",container_type="container"} 1`},
		"pull succeeded":                {effect.Outcome{Action: plan.EnsureImage{Container: "main"}}, "", ""},
		"pull failed":                   {effect.Outcome{Action: plan.EnsureImage{Container: "first"}, Err: failure, Reason: "ErrImagePull"}, `container_type="init_container"} 1`, `code="ErrImagePull",container_type="init_container"} 1`},
		"pull canceled":                 {effect.Outcome{Action: plan.EnsureImage{Container: "main"}, Err: failure, Reason: "ErrImagePull", Canceled: true}, "", ""},
		"pull for the successor failed": {effect.Outcome{Action: plan.EnsureImage{Container: "main", ForSuccessor: true}, Err: failure, Reason: "ErrImagePull"}, "", ""},
		"hook failed":                   {effect.Outcome{Action: plan.RunPostStart{Container: "main"}, Err: failure}, "", `code="PostStartHookError",container_type="container"} 1`},
		"hook not called":               {effect.Outcome{Action: plan.RunPostStart{Container: "main"}, Err: runtime.ErrUnavailable}, "", ""},
	} {
		m := metrics.New(metrics.Options{KubernetesVersion: "v1.37.2"})
		test.outcome.Pod = p
		outcomeCounter(m, nil)(test.outcome)
		w := httptest.NewRecorder()
		m.Handler(metrics.Inputs{State: server.NewLatestView(&server.View{})}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for metric, want := range map[string]string{"kubelet_started_containers_total{": test.wantStarts, "kubelet_started_containers_errors_total{": test.wantErrors} {
			_, after, _ := strings.Cut(w.Body.String(), "\n"+metric)
			if got, _, _ := strings.Cut(after, "\n"); got != want {
				t.Errorf("%s: got %s%s, want %s", name, metric, got, want)
			}
		}
	}
}

// TestNewSandbox_Handler checks that the metrics of sandboxes have the handler of the RuntimeClass and not the
// name of the RuntimeClass, as in the kubelet.
func TestNewSandbox_Handler(t *testing.T) {
	p := &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{RuntimeClassName: new("gvisor")}}}
	if got := newSandbox(effect.Outcome{Pod: p}, map[string]string{"gvisor": "runsc"}).Handler; got != "runsc" {
		t.Errorf("got handler %q, want runsc", got)
	}
	p.ServerRuntimeHandler = new("kata")
	if got := newSandbox(effect.Outcome{Pod: p}, nil).Handler; got != "kata" {
		t.Errorf("RuntimeClass of an API server: got handler %q, want kata", got)
	}
	if got := newSandbox(effect.Outcome{}, nil).Handler; got != "" {
		t.Errorf("no pod: got handler %q, want none", got)
	}
}
