package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
)

// TestReported: the pods that a limit keeper looks at are those that are there.
func TestReported(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
	one := func(name string) *reconcile.Report {
		return &reconcile.Report{Key: key(name), Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	r := &reported{pods: map[types.NamespacedName]*v1.Pod{}}
	r.take(reconcile.Change{Reports: []*reconcile.Report{one("a"), one("b"), {Key: key("unknown")}}})
	r.take(reconcile.Change{Gone: []types.NamespacedName{key("a")}})
	if all := r.all(); len(all) != 1 || all[0].Name != "b" {
		t.Errorf("%v", all)
	}
}

// evictions are the reasons, by pod.
type evictions map[string]string

func (e evictions) Evict(_ context.Context, key types.NamespacedName, evict plan.Evict) error {
	e[key.Name] = evict.Message
	return nil
}

// layers is what a runtime tells, of every pod.
type layers struct {
	of    map[string]int64
	told  bool
	err   error
	calls int
}

func (l *layers) WritableLayers(context.Context, string, types.UID) (map[string]int64, bool, error) {
	l.calls++
	return l.of, l.told, l.err
}

// diskPod is a pod that runs, with a container that may have so much on disk.
func diskPod(name, limit string) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "app"}},
			Volumes:    []v1.Volume{{Name: "disk", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	if limit != "" {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
	}
	return p
}

// TestLimitKeeper: volumes, logs and layers of a pod with a limit are measured,
// of one without nothing is; a runtime that does not tell is mentioned once.
func TestLimitKeeper(t *testing.T) {
	root, logs := t.TempDir(), t.TempDir()
	write := func(path string, bytes int) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", bytes)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	volume := func(pod string) string {
		return filepath.Join(podsDir(root), "uid-"+pod, "volumes/kubernetes.io~empty-dir/disk/file")
	}
	write(volume("fills"), 2<<20)
	write(volume("free"), 2<<20)
	write(filepath.Join(logs, "default_talks_uid-talks/app/0.log"), 2<<20)
	for _, tt := range []struct {
		name   string
		pod    *v1.Pod
		layers layers
		want   string
	}{
		{"its volume", diskPod("fills", "1Mi"), layers{told: true}, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. It holds 2"},
		{"its logs", diskPod("talks", "1Mi"), layers{told: true}, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. It holds 2"},
		{"its layer", diskPod("writes", "1Mi"), layers{of: map[string]int64{"app": 2 << 20}, told: true}, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. It holds 2Mi"},
		{"little", diskPod("small", "1Mi"), layers{of: map[string]int64{"app": 1 << 20}, told: true}, ""},
		{"the runtime is away", diskPod("fills", "1Mi"), layers{err: runtime.ErrUnavailable}, "Pod ephemeral local storage usage exceeds"},
		{"no limit", diskPod("free", ""), layers{}, ""},
	} {
		got := evictions{}
		var log strings.Builder
		k := &limitKeeper{root: root, node: render.Node{LogsDir: logs}, router: got, layers: &tt.layers, log: slog.New(slog.NewTextHandler(&log, nil))}
		k.keep(t.Context(), tt.pod)
		if why := got[tt.pod.Name]; !strings.HasPrefix(why, tt.want) || (why == "") != (tt.want == "") {
			t.Errorf("%s: evicted for %q, want %q", tt.name, why, tt.want)
		}
		if limited := len(tt.pod.Spec.Containers[0].Resources.Limits) > 0; (tt.layers.calls > 0) != limited {
			t.Errorf("%s: the runtime was asked %d times", tt.name, tt.layers.calls)
		}
		if failed := tt.layers.err != nil; strings.Contains(log.String(), "not measured") != failed {
			t.Errorf("%s: logged %s", tt.name, log.String())
		}
	}
}

func TestLimitKeeperUntold(t *testing.T) {
	for _, untold := range []layers{{}, {err: runtime.ErrUnimplemented}} {
		var log strings.Builder
		k := &limitKeeper{root: t.TempDir(), node: render.Node{LogsDir: t.TempDir()}, router: evictions{}, layers: &untold, log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 3 {
			k.keep(t.Context(), diskPod("p", "1Mi"))
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "bound logs and volumes alone") {
			t.Errorf("%+v: logged %s", untold, log.String())
		}
	}
}
