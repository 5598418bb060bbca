package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/device/allocation"
	"podd/runtime"
)

const gpu = "example.com/gpu"

// A fake is a plugin. Functions that are nil have a default.
type fake struct {
	allocate func(ids []string) (*v1beta1.ContainerAllocateResponse, error)
	prefer   func(available, must []string, n int) ([]string, error)
	prepares bool

	mu    sync.Mutex // guards calls
	calls []string
}

func (f *fake) record(call string, ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call+" "+strings.Join(ids, " "))
}

func (f *fake) PreferredDevices(_ context.Context, available, must []string, n int) ([]string, error) {
	if f.prefer == nil {
		return nil, nil
	}
	return f.prefer(available, must, n)
}

func (f *fake) Allocate(_ context.Context, ids []string) (*v1beta1.ContainerAllocateResponse, error) {
	f.record("Allocate", ids)
	if f.allocate == nil {
		return &v1beta1.ContainerAllocateResponse{Envs: map[string]string{"IDS": strings.Join(ids, " ")}}, nil
	}
	return f.allocate(ids)
}

func (f *fake) PreStart(_ context.Context, ids []string) error {
	f.record("PreStart", ids)
	return nil
}

func (f *fake) RequiresPreStart() bool { return f.prepares }

func open(t testing.TB) *Manager {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "devices.json"))
}

func reopen(t testing.TB, file string) *Manager {
	t.Helper()
	l, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve registers a plugin that lists devices. A device with the prefix "-" is unhealthy.
func serve(l *Manager, resource string, p Plugin, ids string) {
	l.Register(resource, p)
	list(l, resource, p, ids)
}

func list(l *Manager, resource string, p Plugin, ids string) {
	var all []Device
	for _, id := range strings.Fields(ids) {
		all = append(all, Device{ID: strings.TrimPrefix(id, "-"), Healthy: !strings.HasPrefix(id, "-")})
	}
	l.SetDevices(resource, p, all)
}

// podRequesting returns a pod with containers that request devices: "main=2", "init:a=1" or
// "sidecar:b=1".
func podRequesting(t testing.TB, name string, containers ...string) *manifest.Pod {
	t.Helper()
	lists := map[bool]string{}
	for _, c := range containers {
		of, n, _ := strings.Cut(c, "=")
		kind, container, init := strings.Cut(of, ":")
		policy := ""
		if !init {
			container = kind
		} else if kind == "sidecar" {
			policy = ", restartPolicy: Always"
		}
		lists[init] += fmt.Sprintf("  - {name: %s, image: i, resources: {limits: {%s: %s}}%s}\n", container, gpu, n, policy)
	}
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  initContainers:\n" + lists[true] + "  containers:\n" + lists[false]
	if lists[false] == "" {
		text += "  - {name: none, image: i}\n"
	}
	f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "n"})
	if f.HasRefusedDocument() || len(f.Pods) != 1 {
		t.Fatalf("%s: %v", text, f.Problems)
	}
	return f.Pods[0]
}

// acquireDevices calls Acquire, and then the function done that Acquire has returned. It returns the
// IDs of the devices.
func acquireDevices(t testing.TB, l *Manager, p *manifest.Pod, container string) (string, error) {
	t.Helper()
	grants, done, err := l.Acquire(t.Context(), p, container)
	if err != nil {
		return "", err
	}
	done()
	var ids []string
	for _, g := range grants {
		ids = append(ids, g.IDs...)
	}
	return strings.Join(ids, " "), nil
}

// allocations returns all allocations as "pod/container=a b".
func allocations(l *Manager) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for h, pod := range l.pods {
		for container, grants := range pod {
			all = append(all, h.Key.Name[:len(h.Key.Name)-2]+"/"+container+"="+strings.Join(grants[gpu].IDs, " "))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func counts(l *Manager) allocation.Count { return l.Counts()[gpu] }

// TestUse checks the allocations for the containers of a pod, which reuse the devices of
// init containers.
func TestUse(t *testing.T) {
	tests := map[string]struct {
		containers []string
		want       string
	}{
		"one":                      {[]string{"main=1"}, "p/main=a"},
		"two containers":           {[]string{"main=1", "other=2"}, "p/main=a, p/other=b c"},
		"after an init container":  {[]string{"init:first=2", "main=1", "other=1"}, "p/first=a b, p/main=a, p/other=b"},
		"more than the init has":   {[]string{"init:first=1", "main=2"}, "p/first=a, p/main=a b"},
		"one init after the other": {[]string{"init:first=1", "init:second=2"}, "p/first=a, p/second=a b"},
		"with a sidecar":           {[]string{"sidecar:s=1", "main=1"}, "p/main=b, p/s=a"},
		"a sidecar after an init":  {[]string{"init:first=1", "sidecar:s=1", "init:second=1", "main=1"}, "p/first=a, p/main=b, p/s=a, p/second=b"},
		"all devices":              {[]string{"init:first=4", "sidecar:s=1", "main=3"}, "p/first=a b c d, p/main=b c d, p/s=a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, p := open(t), podRequesting(t, "p", tt.containers...)
			serve(l, gpu, &fake{}, "a b c d -e")
			if _, err := acquireDevices(t, l, p, ""); err != nil || allocations(l) != tt.want {
				t.Errorf("got allocations %s (error %v), want %s", allocations(l), err, tt.want)
			}
			total := manifest.PodRequests(p.Object)[gpu]
			held := l.allocatedLocked()[gpu].Len()
			if int64(held) != total.Value() {
				t.Errorf("allocated devices of the pod: got %d, want the %d of its admission", held, total.Value())
			}
		})
	}
}

// TestUse_Restart checks that a container that is started again has the same devices, also after a
// restart of podd. Allocate is not called again. PreStart is called for each start.
func TestUse_Restart(t *testing.T) {
	l, p, plugin := open(t), podRequesting(t, "p", "main=1"), &fake{prepares: true}
	serve(l, gpu, plugin, "a b")
	for _, again := range []bool{false, true, true} {
		manager := l
		if again {
			manager = reopen(t, l.file)
			manager.Register(gpu, plugin)
		}
		grants, done, err := manager.Acquire(t.Context(), p, "main")
		if err != nil || len(grants) != 1 || grants[0].Response.Envs["IDS"] != "a" {
			t.Fatalf("Acquire: got %v (error %v), want device a", grants, err)
		}
		done()
		if err := manager.PreStart(t.Context(), "main", grants); err != nil {
			t.Error(err)
		}
	}
	if err := reopen(t, l.file).PreStart(t.Context(), "main", reopen(t, l.file).Grants(p.Key, p.UID, "main")); !errors.Is(err, errNoPlugin) {
		t.Errorf("PreStart without the plugin: got error %v, want one", err)
	}
	if got, want := strings.Join(plugin.calls, ", "), "Allocate a, PreStart a, PreStart a, PreStart a"; got != want {
		t.Errorf("got calls %s, want %s", got, want)
	}
}

// TestOpen_InvalidFile checks that, if the file is invalid, containers keep the devices in their
// annotations and Allocate is called again.
func TestOpen_InvalidFile(t *testing.T) {
	l, p, plugin := open(t), podRequesting(t, "p", "main=1"), &fake{}
	if err := os.WriteFile(l.file, []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost, err := Open(l.file)
	if err == nil || !strings.Contains(err.Error(), l.file) {
		t.Errorf("Open: got error %v, want one that names %s", err, l.file)
	}
	inc := runtime.Incarnation{Containers: []runtime.Container{{Name: "main", Annotations: map[string]string{runtime.AnnotationDevices: `{"` + gpu + `":["b"]}`}}, {Name: "other"}}}
	lost.SetHolders(map[allocation.PodVersion]allocation.IDs{versionOf(p): allocation.RecordedIDs(&inc)}, false)
	serve(lost, gpu, plugin, "a b")
	if got := counts(lost); got != (allocation.Count{Total: 2, Listed: 2, Healthy: 2, IsServed: true}) {
		t.Errorf("counts: got %+v, want 2 served devices", got)
	}
	if ids, err := acquireDevices(t, lost, podRequesting(t, "q", "main=1"), "main"); ids != "a" {
		t.Errorf("devices of pod q: got %q (error %v), want a", ids, err)
	}
	if ids, err := acquireDevices(t, lost, p, "main"); ids != "b" {
		t.Errorf("devices of pod p: got %q (error %v), want b of the annotation", ids, err)
	}
	// A device that is allocated to another pod in the meantime stays allocated to that pod.
	lost.SetHolders(map[allocation.PodVersion]allocation.IDs{versionOf(podRequesting(t, "r", "main=1")): allocation.RecordedIDs(&inc)}, false)
	if got, want := allocations(lost), "p/main=b, q/main=a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSetHolders_AllocateFails checks that a running container keeps the devices in its
// annotation if Allocate fails.
func TestSetHolders_AllocateFails(t *testing.T) {
	l, p, broken := open(t), podRequesting(t, "p", "main=1", "side=1"), errors.New("it burns")
	inc := runtime.Incarnation{Containers: []runtime.Container{{Name: "main", Annotations: map[string]string{runtime.AnnotationDevices: `{"` + gpu + `":["b"]}`}}}}
	l.SetHolders(map[allocation.PodVersion]allocation.IDs{versionOf(p): allocation.RecordedIDs(&inc)}, false)
	serve(l, gpu, &fake{allocate: func([]string) (*v1beta1.ContainerAllocateResponse, error) {
		err := broken
		broken = nil
		return &v1beta1.ContainerAllocateResponse{}, err
	}}, "a b")
	if _, err := acquireDevices(t, l, p, "side"); err == nil || allocations(l) != "p/main=b" {
		t.Errorf("failed Allocate: got error %v and allocations %s; want an error and allocations p/main=b", err, allocations(l))
	}
	if ids, err := acquireDevices(t, l, p, "side"); ids != "a" || allocations(l) != "p/main=b, p/side=a" {
		t.Errorf("successful Allocate: got devices %q (error %v) and allocations %s; want devices \"a\" and allocations p/main=b, p/side=a", ids, err, allocations(l))
	}
}

// TestSetHolders checks that the devices of a pod are released when it is not in a complete
// list of holders, unless it is being started.
func TestSetHolders(t *testing.T) {
	l, p := open(t), podRequesting(t, "p", "main=1")
	serve(l, gpu, &fake{}, "a")
	if l.HasAllocations() {
		t.Error("HasAllocations without allocations: got true, want false")
	}
	_, done, err := l.Acquire(t.Context(), p, "")
	if err != nil || !l.HasAllocations() {
		t.Fatal(err, l.HasAllocations())
	}
	steps := []struct {
		name  string
		do    func()
		holds bool
	}{
		{"incomplete list", func() { l.SetHolders(nil, false) }, true},
		{"being started", func() { l.SetHolders(nil, true) }, true},
		{"started", func() { done(); l.SetHolders(map[allocation.PodVersion]allocation.IDs{versionOf(p): nil}, true) }, true},
		{"plugin unregistered", func() { l.Unregister(gpu, l.resources[gpu].plugins[0].Plugin) }, true},
		{"not in a complete list", func() { l.SetHolders(nil, true) }, false},
	}
	for _, s := range steps {
		if s.do(); (allocations(l) == "p/main=a") != s.holds {
			t.Errorf("%s: got allocations %q, want p/main=a allocated: %t", s.name, allocations(l), s.holds)
		}
	}
	if got, want := counts(l), (allocation.Count{Listed: 1, IsAwaited: true}); got != want {
		t.Errorf("counts: got %+v, want %+v", got, want)
	}
}

// TestUse_NewVersion checks that a new version of a pod gets the devices of the earlier version.
func TestUse_NewVersion(t *testing.T) {
	l, p, q := open(t), podRequesting(t, "p", "main=1"), podRequesting(t, "p", "other=1")
	serve(l, gpu, &fake{}, "a")
	if _, err := acquireDevices(t, l, p, ""); err != nil {
		t.Fatal(err)
	}
	if ids, err := acquireDevices(t, l, q, "other"); ids != "a" || allocations(l) != "p/other=a" {
		t.Errorf("new version: got devices %q (error %v) and allocations %s; want devices \"a\" and allocations p/other=a", ids, err, allocations(l))
	}
}

// TestGrants_TwoVersions checks that Grants returns the devices of all versions of a pod, always in
// the same order.
func TestGrants_TwoVersions(t *testing.T) {
	l := open(t)
	first := versionOf(podRequesting(t, "p", "main=1"))
	second := first
	first.Hash, second.Hash = "1", "2"
	l.SetHolders(map[allocation.PodVersion]allocation.IDs{first: {"main": {gpu: {"b"}}}, second: {"main": {gpu: {"a"}}}}, true)
	for range 20 {
		var got []string
		for _, g := range l.Grants(first.Key, first.UID, "main") {
			got = append(got, g.IDs...)
		}
		if want := []string{"b", "a"}; !slices.Equal(got, want) {
			t.Fatalf("got devices %q, want %q", got, want)
		}
	}
}

// TestHealth checks that unhealthy devices are not allocated, and that allocated devices that
// become unhealthy stay allocated and are counted.
func TestHealth(t *testing.T) {
	l, p, plugin := open(t), podRequesting(t, "p", "main=1"), &fake{}
	serve(l, gpu, plugin, "a b -c")
	if _, err := acquireDevices(t, l, p, ""); err != nil {
		t.Fatal(err)
	}
	list(l, gpu, plugin, "-a b -c")
	if got, want := counts(l), (allocation.Count{Total: 2, Listed: 3, Healthy: 1, IsServed: true}); got != want {
		t.Errorf("counts: got %+v, want %+v", got, want)
	}
	if ids, err := acquireDevices(t, l, p, "main"); ids != "a" {
		t.Errorf("devices of pod p: got %q (error %v), want a, which is unhealthy", ids, err)
	}
	_, err := acquireDevices(t, l, podRequesting(t, "q", "main=2"), "")
	if want := "allocating 2 of example.com/gpu for container main: 2 devices are requested, but only 1 are free"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// TestUse_ReplacesUnhealthy checks that unhealthy and unlisted devices are replaced if no
// container of the pod runs and the plugin has listed its devices.
func TestUse_ReplacesUnhealthy(t *testing.T) {
	tests := map[string]struct{ then, container, want string }{
		"all healthy":      {"a b c d", "", "p/first=a b, p/main=a"},
		"one unhealthy":    {"-a b c d", "", "p/first=b c, p/main=b"},
		"one not listed":   {"a c", "", "p/first=a c, p/main=a"},
		"a container runs": {"-a b c d", "main", "p/first=a b, p/main=a"},
		"too few devices":  {"c", "", ""},
		"no list yet":      {"", "", "p/first=a b, p/main=a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, p, plugin := open(t), podRequesting(t, "p", "init:first=2", "main=1"), &fake{}
			serve(l, gpu, plugin, "a b c d")
			if _, err := acquireDevices(t, l, p, ""); err != nil {
				t.Fatal(err)
			}
			if tt.then == "" {
				l.Register(gpu, plugin)
			} else {
				list(l, gpu, plugin, tt.then)
			}
			if _, err := acquireDevices(t, l, p, tt.container); (err != nil) != (tt.want == "") || allocations(l) != tt.want {
				t.Errorf("got allocations %s (error %v), want %s", allocations(l), err, tt.want)
			}
		})
	}
}

// TestPreferred checks that available devices that the plugin prefers are chosen.
func TestPreferred(t *testing.T) {
	l := open(t)
	var request string
	serve(l, gpu, &fake{prefer: func(available, must []string, n int) ([]string, error) {
		request = fmt.Sprint(available, must, n)
		return []string{"c", "a", "taken"}, nil
	}}, "a b c")
	p := podRequesting(t, "p", "init:first=1", "main=2")
	if _, err := acquireDevices(t, l, p, ""); err != nil || allocations(l) != "p/first=a, p/main=a c" {
		t.Errorf("got allocations %s (error %v), want p/first=a, p/main=a c", allocations(l), err)
	}
	if want := "[a b c] [a] 2"; request != want {
		t.Errorf("got request %s, want %s", request, want)
	}
}

// TestAllocate_Errors checks that a failed call of Allocate or an invalid response results in no
// allocation.
func TestAllocate_Errors(t *testing.T) {
	type response = v1beta1.ContainerAllocateResponse
	tests := map[string]struct {
		response *response
		err      error
		want     string
	}{
		"error":               {nil, errors.New("it burns"), "it burns"},
		"no response":         {nil, nil, "no response"},
		"large response":      {&response{Envs: map[string]string{"A": strings.Repeat("x", maxResponseBytes)}}, nil, "limit 1048576"},
		"invalid variable":    {&response{Envs: map[string]string{"A=B": "x"}}, nil, `variable "A=B"`},
		"NUL byte":            {&response{Envs: map[string]string{"A": "secret\x00"}}, nil, `variable "A"`},
		"relative path":       {&response{Mounts: []*v1beta1.Mount{{HostPath: "lib", ContainerPath: "/lib"}}}, nil, `mounts "lib"`},
		"mount path with ..":  {&response{Mounts: []*v1beta1.Mount{{HostPath: "/opt/../etc", ContainerPath: "/lib"}}}, nil, "must not contain"},
		"device path with ..": {&response{Devices: []*v1beta1.DeviceSpec{{HostPath: "/dev/null", ContainerPath: "../x"}}}, nil, "must not contain"},
		"invalid permissions": {&response{Devices: []*v1beta1.DeviceSpec{{HostPath: "/dev/null", ContainerPath: "/dev/x", Permissions: "rwx"}}}, nil, `"rwx"`},
		"podd's annotation":   {&response{Annotations: map[string]string{runtime.AnnotationContainerKind: "init:0"}}, nil, "podd/kind"},
		"runtime annotation":  {&response{Annotations: map[string]string{runtime.AnnotationPreStopHandler: "{}"}}, nil, "preStopHandler"},
		"invalid CDI name":    {&response{CdiDevices: []*v1beta1.CDIDevice{{Name: "all"}}}, nil, "vendor/class=name"},
		"nil in a list":       {&response{Mounts: []*v1beta1.Mount{nil}}, nil, "absolute"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, p := open(t), podRequesting(t, "p", "main=1")
			serve(l, gpu, &fake{allocate: func([]string) (*response, error) { return tt.response, tt.err }}, "a")
			_, err := acquireDevices(t, l, p, "main")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
			if allocations(l) != "" || counts(l).Total != 1 {
				t.Errorf("after the failed Allocate: got allocations %s and counts %+v; want no allocations and a total of 1", allocations(l), counts(l))
			}
		})
	}
}

// TestAllocate_Hangs checks that a plugin that does not respond does not delay other pods.
func TestAllocate_Hangs(t *testing.T) {
	l, called, hung := open(t), make(chan struct{}), make(chan struct{})
	serve(l, "example.com/slow", &fake{allocate: func([]string) (*v1beta1.ContainerAllocateResponse, error) {
		close(called)
		<-hung
		return nil, errors.New("too late")
	}}, "a")
	serve(l, gpu, &fake{}, "a")
	slow := podRequesting(t, "slow", "main=1")
	slow.Object.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/slow": *slow.Object.Spec.Containers[0].Resources.Limits.Name(gpu, "")}
	var waiting sync.WaitGroup
	waiting.Go(func() { acquireDevices(t, l, slow, "") })
	<-called
	if ids, err := acquireDevices(t, l, podRequesting(t, "p", "main=1"), "main"); ids != "a" {
		t.Errorf("pod of another plugin: got devices %q (error %v), want a", ids, err)
	}
	// Another start of the same pod waits for the first one until ctx is done.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := l.Acquire(ctx, slow, "main"); err == nil {
		t.Error("second start of the same pod: got no error, want one because its context was canceled")
	}
	close(hung)
	waiting.Wait()
	l.SetHolders(nil, true)
	if got, want := allocations(l), ""; got != want {
		t.Errorf("allocations in the end: got %s, want none", got)
	}
}

// TestChanged checks that only changes are signaled.
func TestChanged(t *testing.T) {
	l, plugin := open(t), &fake{}
	changed := func() bool {
		select {
		case <-l.Changed():
			return true
		default:
			return false
		}
	}
	serve(l, gpu, plugin, "a b")
	if !changed() || changed() {
		t.Error("new plugin with devices: got no signal or two, want one")
	}
	if list(l, gpu, plugin, "b a"); changed() {
		t.Error("unchanged list: got a signal, want none")
	}
	if list(l, gpu, &fake{prepares: true}, "a"); changed() || len(l.HealthyDevices()[gpu]) != 2 {
		t.Error("list of an unregistered plugin: got a signal or a change, want neither")
	}
	if list(l, gpu, plugin, "a -b"); !changed() {
		t.Error("unhealthy device: got no signal, want one")
	}
}
