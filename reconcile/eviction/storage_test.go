package eviction

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
)

// podDirs returns the pod directories below a root directory.
func podDirs(root string) volume.Dir { return volume.Dir{Root: filepath.Join(root, "pods")} }

// evictions contains the evictions that were requested, by the name of the pod.
type evictions map[string]plan.Eviction

func (e evictions) Evict(_ context.Context, key types.NamespacedName, evict plan.Eviction) error {
	e[key.Name] = evict
	return nil
}

// layers is a runtime that responds with the same layers, or with the same error, to every request.
type layers struct {
	of       map[string]int64
	reported bool // the runtime reports layers
	err      error
	hangs    bool // until the request is canceled
	requests [][]types.UID
}

func (l *layers) WritableLayers(ctx context.Context, _ []string, uids []types.UID) (map[types.UID]cri.LayerUsage, error) {
	l.requests = append(l.requests, uids)
	if l.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	all := map[types.UID]cri.LayerUsage{}
	for _, uid := range uids {
		all[uid] = cri.LayerUsage{Bytes: l.of, Partial: !l.reported}
	}
	return all, l.err
}

// reportOf returns a report of a pod that runs as version v1:a.
func reportOf(p *v1.Pod) *state.Report {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	return &state.Report{Key: key, Pod: p, Version: &manifest.Pod{Key: key, UID: p.UID, Hash: "v1:a", Object: p, Origin: manifest.Origin{Path: "/m/p.yaml", Line: 3}}}
}

// podsOf returns a function that returns the reports of pods.
func podsOf(pods ...*v1.Pod) func() []*state.Report {
	var all []*state.Report
	for _, p := range pods {
		all = append(all, reportOf(p))
	}
	return func() []*state.Report { return all }
}

// diskPod returns a running pod with a container that has an ephemeral-storage limit.
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

// TestStorageLimiter checks that podd measures the volumes, logs and layers of a pod with a limit,
// and does not measure a pod without a limit. podd calls the runtime only if the other parts do not
// exceed the limit.
func TestStorageLimiter(t *testing.T) {
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
		return filepath.Join(podDirs(root).Root, "uid-"+pod, "volumes/kubernetes.io~empty-dir/disk/file")
	}
	write(volume("fills"), 2<<20)
	write(volume("free"), 2<<20)
	write(filepath.Join(logs, "default_logs_uid-logs/app/0.log"), 2<<20)
	write(filepath.Join(podDirs(root).Root, "uid-hosts/etc-hosts"), 2<<20)
	write(filepath.Join(podDirs(root).Root, "uid-writes-message/containers/app/00000001"), 2<<20)
	for _, tt := range []struct {
		name   string
		pod    *v1.Pod
		layers layers
		calls  int
		want   string
	}{
		{"its volume", diskPod("fills", "1Mi"), layers{reported: true}, 0, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. The usage is 2"},
		{"its logs", diskPod("logs", "1Mi"), layers{reported: true}, 0, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. The usage is 2"},
		{"its layer", diskPod("writes", "1Mi"), layers{of: map[string]int64{"app": 2 << 20}, reported: true}, 1, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. The usage is 2Mi"},
		{"its hosts file", diskPod("hosts", "1Mi"), layers{reported: true}, 0, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. The usage is 2Mi"},
		{"its message", diskPod("writes-message", "1Mi"), layers{reported: true}, 0, "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. The usage is 2Mi"},
		{"little", diskPod("small", "1Mi"), layers{of: map[string]int64{"app": 1 << 20}, reported: true}, 1, ""},
		{"the runtime is not available", diskPod("small", "1Mi"), layers{err: runtime.ErrUnavailable}, 1, ""},
		{"no limit", diskPod("free", ""), layers{}, 0, ""},
	} {
		got := evictions{}
		var log strings.Builder
		k := NewStorageLimiter(StorageOptions{Disk: podDirs(root), Node: render.Node{LogsDir: logs}, Reports: podsOf(tt.pod), Router: got, Layers: &tt.layers, Restarts: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		k.check(t.Context())
		evict, evicted := got[tt.pod.Name]
		if !strings.HasPrefix(evict.Message, tt.want) || evicted != (tt.want != "") {
			t.Errorf("%s: eviction: got message %q, want %q", tt.name, evict.Message, tt.want)
		}
		if evicted && (evict.UID != tt.pod.UID || evict.Hash != "v1:a" || evict.StorageLimit != "ephemeralpodfs.limit" || !evict.Restarts) {
			t.Errorf("%s: evicted version: got UID %s, hash %s, limit %s, restarts %t; want UID %s, hash v1:a, limit ephemeralpodfs.limit, restarts true", tt.name, evict.UID, evict.Hash, evict.StorageLimit, evict.Restarts, tt.pod.UID)
		}
		if len(tt.layers.requests) != tt.calls {
			t.Errorf("%s: got %d calls of the runtime, want %d", tt.name, len(tt.layers.requests), tt.calls)
		}
		if failed := tt.layers.err != nil; strings.Contains(log.String(), "failed") != failed {
			t.Errorf("%s: log: got %s, want a failure %t", tt.name, log.String(), failed)
		}
	}
}

// TestStorageLimiter_ImageDisk checks that the writable layer of a container does not count toward the
// limit of the container if the runtime has its own disk. podd determines this only if it matters.
func TestStorageLimiter_ImageDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		layer        int64
		hasImageDisk bool
		err          error
		wantCalls    int
		want         string // signal of the eviction
	}{
		"below the limit":                 {1 << 20, false, nil, 0, ""},
		"above the limit, one disk":       {2 << 20, false, nil, 1, "ephemeralcontainerfs.limit"},
		"above the limit, disk of images": {2 << 20, true, nil, 1, ""},
		"above the limit, disk unknown":   {2 << 20, false, runtime.ErrUnavailable, 1, ""},
		"above the limit of the pod":      {4 << 20, true, nil, 0, "ephemeralpodfs.limit"},
	} {
		p := diskPod("p", "1Mi")
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "other"})
		p.Spec.Containers[1].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("2Mi")}
		got, calls := evictions{}, 0
		var log strings.Builder
		NewStorageLimiter(StorageOptions{
			Disk: podDirs(t.TempDir()), Node: render.Node{LogsDir: t.TempDir()}, Reports: podsOf(p), Router: got,
			Layers:       &layers{of: map[string]int64{"app": tt.layer}, reported: true},
			HasImageDisk: func(context.Context) (bool, error) { calls++; return tt.hasImageDisk, tt.err },
			Log:          slog.New(slog.NewTextHandler(&log, nil)),
		}).check(t.Context())
		if signal := got["p"].StorageLimit; signal != tt.want || len(got) > 0 != (tt.want != "") {
			t.Errorf("%s: got %d evictions with the signal %q, want %q", name, len(got), signal, tt.want)
		}
		if calls != tt.wantCalls {
			t.Errorf("%s: got %d calls of HasImageDisk, want %d", name, calls, tt.wantCalls)
		}
		if failed := tt.err != nil; strings.Contains(log.String(), "failed") != failed {
			t.Errorf("%s: log: got %s, want a failure %t", name, log.String(), failed)
		}
	}
}

// TestStorageLimiter_Deleted checks that a limit also applies to a pod that is being deleted: if
// the pod exceeds the limit, it is evicted.
func TestStorageLimiter_Deleted(t *testing.T) {
	root := t.TempDir()
	disk := filepath.Join(podDirs(root).Root, "uid-full/volumes/kubernetes.io~empty-dir/disk")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(disk, "file"), make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	reports := podsOf(diskPod("full", "1Mi"), diskPod("small", "1Mi"))()
	for _, r := range reports {
		r.Version = nil
	}
	got := evictions{}
	NewStorageLimiter(StorageOptions{
		Disk: podDirs(root), Node: render.Node{LogsDir: t.TempDir()}, Reports: func() []*state.Report { return reports },
		Router: got, Layers: &layers{reported: true}, Log: slog.New(slog.DiscardHandler),
	}).check(t.Context())
	want := plan.Eviction{UID: "uid-full", Message: got["full"].Message, StorageLimit: "ephemeralpodfs.limit"}
	if diff := cmp.Diff(evictions{"full": want}, got); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	if prefix := "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. The usage is 2"; !strings.HasPrefix(want.Message, prefix) {
		t.Errorf("got message %q, want one that begins with %q", want.Message, prefix)
	}
}

// TestStorageLimiter_Critical checks that a critical pod that exceeds a limit is neither evicted nor
// stopped faster. The exceeded limit is a problem of the pod, which does not change with the usage.
func TestStorageLimiter_Critical(t *testing.T) {
	pods := podsOf(diskPod("critical", "1Mi"), diskPod("deleted", "1Mi"), diskPod("small", "1Ti"), diskPod("normal", "1Mi"))()
	for _, r := range pods[:3] {
		r.Pod.Spec.Priority = new(int32(manifest.CriticalPriority))
	}
	pods[1].Version = nil
	got, usage := evictions{}, &layers{of: map[string]int64{"app": 2 << 20}, reported: true}
	var reported [][]manifest.Problem
	k := NewStorageLimiter(StorageOptions{
		Disk: podDirs(t.TempDir()), Node: render.Node{LogsDir: t.TempDir()}, Reports: func() []*state.Report { return pods },
		Router: got, Layers: usage, Log: slog.New(slog.DiscardHandler),
		ReportProblems: func(_ context.Context, all []manifest.Problem) { reported = append(reported, all) },
	})
	k.check(t.Context())
	usage.of = map[string]int64{"app": 3 << 20}
	k.check(t.Context())
	if len(got) != 1 || got["normal"].UID != "uid-normal" {
		t.Errorf("evicted pods: got %v, want only the pod that is not critical", got)
	}
	if len(reported) != 1 || len(reported[0]) != 2 {
		t.Fatalf("problems: got %v, want two problems once", reported)
	}
	const want = "pod default/critical: Pod ephemeral local storage usage exceeds the total limit of containers 1Mi; podd does not evict the pod, because it is critical; raise the limit or write less"
	if p := reported[0][0]; p.Message != want || p.Pod.Name != "critical" || p.Path != "/m/p.yaml" || p.Severity != manifest.Warning {
		t.Errorf("problem: got %+v, want a warning with the message %q", p, want)
	}
	usage.of = nil
	if k.check(t.Context()); len(reported) != 2 || len(reported[1]) != 0 {
		t.Errorf("problems without usage: got %v, want an empty report", reported[1:])
	}
}

func TestStorageLimiter_NoLayers(t *testing.T) {
	for _, unreported := range []layers{{}, {err: runtime.ErrUnimplemented}} {
		var log strings.Builder
		k := NewStorageLimiter(StorageOptions{Disk: podDirs(t.TempDir()), Node: render.Node{LogsDir: t.TempDir()}, Reports: podsOf(diskPod("p", "1Mi")), Router: evictions{}, Layers: &unreported, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 {
			k.check(t.Context())
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "are not counted toward limits") {
			t.Errorf("%+v: log: got %s, want one line about layers", unreported, log.String())
		}
	}
}

// TestStorageLimiter_SlowRuntime checks that a runtime that does not respond does not delay the
// eviction of a pod whose volumes and logs already exceed its limit. podd first evicts this pod.
// Then it queries the layers of all other pods with one call for each round.
func TestStorageLimiter_SlowRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		disk := filepath.Join(podDirs(root).Root, "uid-full/volumes/kubernetes.io~empty-dir/disk")
		if err := os.MkdirAll(disk, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(disk, "file"), make([]byte, 2<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		var pods []*v1.Pod
		for n := range 50 {
			pods = append(pods, diskPod(fmt.Sprint("small", n), "1Mi"))
		}
		pods = append(pods, diskPod("full", "1Mi"))
		got, slow := evictions{}, &layers{hangs: true}
		k := NewStorageLimiter(StorageOptions{Disk: podDirs(root), Node: render.Node{LogsDir: t.TempDir()}, Reports: podsOf(pods...), Router: got, Layers: slow, Log: slog.New(slog.DiscardHandler)})
		k.check(t.Context())
		if len(got) != 1 || got["full"].UID != "uid-full" {
			t.Errorf("evicted pods: got %v, want only the pod that exceeds its limit", got)
		}
		if len(slow.requests) != 1 || len(slow.requests[0]) != 50 || slices.Contains(slow.requests[0], "uid-full") {
			t.Errorf("calls of the runtime: got %v, want one for the 50 small pods", slow.requests)
		}
	})
}

// TestStorageLimiter_NotMeasured checks that a part of a pod that cannot be measured in several
// consecutive rounds is a problem of the pod until it can be measured.
func TestStorageLimiter_NotMeasured(t *testing.T) {
	root, logs := t.TempDir(), t.TempDir()
	broken := map[string]string{ // a file replaces the directory
		`volume "disk"`: filepath.Join(podDirs(root).Root, "uid-p/volumes/kubernetes.io~empty-dir/disk"),
		"the hosts file and termination messages": filepath.Join(podDirs(root).Root, "uid-p/containers"),
		"the logs of container app":               filepath.Join(logs, "default_p_uid-p/app"),
	}
	for _, path := range broken {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	var reported [][]manifest.Problem
	failing := &layers{reported: true, err: runtime.ErrUnavailable}
	k := NewStorageLimiter(StorageOptions{
		Disk: podDirs(root), Node: render.Node{LogsDir: logs}, Reports: podsOf(diskPod("p", "1Mi")), Router: evictions{}, Layers: failing, Log: slog.New(slog.NewTextHandler(&log, nil)),
		ReportProblems: func(_ context.Context, all []manifest.Problem) { reported = append(reported, all) },
	})
	for range unmeasuredRounds - 1 {
		k.check(t.Context())
	}
	if len(reported) != 0 {
		t.Errorf("problems before the last round: got %v, want none", reported)
	}
	for range 3 {
		k.check(t.Context())
	}
	if len(reported) != 1 || len(reported[0]) != len(broken)+1 {
		t.Fatalf("problems: got %v, want one for each of the %d parts", reported, len(broken)+1)
	}
	var all strings.Builder
	for _, p := range reported[0] {
		all.WriteString(p.String() + "\n")
		if p.Pod.Name != "p" || p.Path != "/m/p.yaml" || p.Position.Line != 3 || !strings.Contains(p.Message, "; ") {
			t.Errorf("problem: got %+v, want one with the pod, its file and a remedy", p)
		}
	}
	for part := range broken {
		if n := strings.Count(all.String(), part); n != 1 {
			t.Errorf("problems about %s: got %d, want 1:\n%s", part, n, all.String())
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != len(broken)+1 {
		t.Errorf("log warnings: got %d, want %d:\n%s", n, len(broken)+1, log.String())
	}
	for _, path := range broken {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	failing.err = nil
	k.check(t.Context())
	if len(reported) != 2 || len(reported[1]) != 0 {
		t.Errorf("problems after the repair: got %v, want an empty report", reported[1:])
	}
}

// TestStorageLimiter_NotMeasuredDeleted checks that a pod that is being deleted and cannot be measured
// is a problem, too. Such a pod has no file.
func TestStorageLimiter_NotMeasuredDeleted(t *testing.T) {
	reports := podsOf(diskPod("p", "1Mi"))()
	reports[0].Version = nil
	var problems []manifest.Problem
	k := NewStorageLimiter(StorageOptions{
		Disk: podDirs(t.TempDir()), Node: render.Node{LogsDir: t.TempDir()}, Reports: func() []*state.Report { return reports },
		Router: evictions{}, Layers: &layers{err: runtime.ErrUnavailable}, Log: slog.New(slog.DiscardHandler),
		ReportProblems: func(_ context.Context, all []manifest.Problem) { problems = all },
	})
	for range unmeasuredRounds {
		k.check(t.Context())
	}
	if len(problems) != 1 || problems[0].Pod != reports[0].Key || problems[0].Path != "" || !strings.Contains(problems[0].Message, "pod default/p") {
		t.Errorf("got %v, want one problem of pod default/p without a file", problems)
	}
}

func TestMeasuringRemedy(t *testing.T) {
	for err, want := range map[error]string{
		&fs.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE}: "open files",
		syscall.ENFILE: "open files",
		syscall.EIO:    "check the disk",
		syscall.EACCES: "remove the limit",
	} {
		if got := measuringRemedy(err); !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
