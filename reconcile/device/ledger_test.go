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
	"podd/reconcile/plan"
	"podd/runtime"
)

const gpu = "example.com/gpu"

// fake is a plugin; what is nil does nothing.
type fake struct {
	answer   func(ids []string) (*v1beta1.ContainerAllocateResponse, error)
	prefer   func(available, must []string, n int) ([]string, error)
	prepares bool

	mu    sync.Mutex // guards calls
	calls []string
}

func (f *fake) note(call string, ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call+" "+strings.Join(ids, " "))
}

func (f *fake) Preferred(_ context.Context, available, must []string, n int) ([]string, error) {
	if f.prefer == nil {
		return nil, nil
	}
	return f.prefer(available, must, n)
}

func (f *fake) Allocate(_ context.Context, ids []string) (*v1beta1.ContainerAllocateResponse, error) {
	f.note("Allocate", ids)
	if f.answer == nil {
		return &v1beta1.ContainerAllocateResponse{Envs: map[string]string{"IDS": strings.Join(ids, " ")}}, nil
	}
	return f.answer(ids)
}

func (f *fake) PreStart(_ context.Context, ids []string) error {
	f.note("PreStart", ids)
	return nil
}

func (f *fake) Prepares() bool { return f.prepares }

func open(t testing.TB) *Ledger {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "devices.json"))
}

func reopen(t testing.TB, file string) *Ledger {
	t.Helper()
	l, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve has a plugin list devices; one that begins with "-" is not healthy.
func serve(l *Ledger, resource string, p Plugin, ids string) {
	l.Serve(resource, p)
	list(l, resource, p, ids)
}

func list(l *Ledger, resource string, p Plugin, ids string) {
	var all []Device
	for _, id := range strings.Fields(ids) {
		all = append(all, Device{ID: strings.TrimPrefix(id, "-"), Healthy: !strings.HasPrefix(id, "-")})
	}
	l.Update(resource, p, all)
}

// asking is a pod whose containers, "main=2", "init:a=1" or "sidecar:b=1", ask for so
// many.
func asking(t testing.TB, name string, containers ...string) *manifest.Pod {
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
	f := manifest.Decode([]byte(text), manifest.Options{Path: "f", Node: "n"})
	if f.Refused() || len(f.Pods) != 1 {
		t.Fatalf("%s: %v", text, f.Problems)
	}
	return f.Pods[0]
}

// use is Use to its end.
func use(t testing.TB, l *Ledger, p *manifest.Pod, container string) (string, error) {
	t.Helper()
	grants, done, err := l.Use(t.Context(), p, container)
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

// has is who has what, as "pod/container=a b".
func has(l *Ledger) string {
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

func counts(l *Ledger) plan.Devices { return l.Counts()[gpu] }

// TestUse: a pod's containers are served together, each once, and init containers'
// devices again.
func TestUse(t *testing.T) {
	tests := map[string]struct {
		containers []string
		want       string
	}{
		"one":                        {[]string{"main=1"}, "p/main=a"},
		"two side by side":           {[]string{"main=1", "other=2"}, "p/main=a, p/other=b c"},
		"after an init container":    {[]string{"init:first=2", "main=1", "other=1"}, "p/first=a b, p/main=a, p/other=b"},
		"more than the init had":     {[]string{"init:first=1", "main=2"}, "p/first=a, p/main=a b"},
		"one init after the other":   {[]string{"init:first=1", "init:second=2"}, "p/first=a, p/second=a b"},
		"beside a sidecar":           {[]string{"sidecar:s=1", "main=1"}, "p/main=b, p/s=a"},
		"a sidecar after an init":    {[]string{"init:first=1", "sidecar:s=1", "init:second=1", "main=1"}, "p/first=a, p/main=b, p/s=a, p/second=b"},
		"all that there are, and an": {[]string{"init:first=4", "sidecar:s=1", "main=3"}, "p/first=a b c d, p/main=b c d, p/s=a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, p := open(t), asking(t, "p", tt.containers...)
			serve(l, gpu, &fake{}, "a b c d -e")
			if _, err := use(t, l, p, ""); err != nil || has(l) != tt.want {
				t.Errorf("got %s, %v; want %s", has(l), err, tt.want)
			}
			total := manifest.PodRequests(&p.Spec.Spec)[gpu]
			held := l.heldLocked()[gpu].Len()
			if int64(held) != total.Value() {
				t.Errorf("it has %d devices, and was admitted with %d", held, total.Value())
			}
		})
	}
}

// TestUseAgain: a second start has the same, without the plugin being asked, over a
// restart of podd too; only what is to be made ready is.
func TestUseAgain(t *testing.T) {
	l, p, plugin := open(t), asking(t, "p", "main=1"), &fake{prepares: true}
	serve(l, gpu, plugin, "a b")
	for _, again := range []bool{false, true, true} {
		ledger := l
		if again {
			ledger = reopen(t, l.file)
			ledger.Serve(gpu, plugin)
		}
		grants, done, err := ledger.Use(t.Context(), p, "main")
		if err != nil || len(grants) != 1 || grants[0].Response.Envs["IDS"] != "a" {
			t.Fatalf("got %v, %v", grants, err)
		}
		done()
		if err := ledger.PreStart(t.Context(), "main", grants); err != nil {
			t.Error(err)
		}
	}
	if err := reopen(t, l.file).PreStart(t.Context(), "main", reopen(t, l.file).Of(p.Key, p.UID, "main")); !errors.Is(err, errNoPlugin) {
		t.Errorf("without the plugin: %v", err)
	}
	if got, want := strings.Join(plugin.calls, ", "), "Allocate a, PreStart a, PreStart a, PreStart a"; got != want {
		t.Errorf("the plugin was asked %s, want %s", got, want)
	}
}

// TestLostFile: what containers are seen to have is theirs, and the plugin says anew
// what goes with it.
func TestLostFile(t *testing.T) {
	l, p, plugin := open(t), asking(t, "p", "main=1"), &fake{}
	if err := os.WriteFile(l.file, []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost, err := Open(l.file)
	if err == nil || !strings.Contains(err.Error(), l.file) {
		t.Errorf("got %v", err)
	}
	inc := runtime.Incarnation{Containers: []runtime.Container{{Name: "main", Annotations: map[string]string{runtime.AnnotationDevices: `{"` + gpu + `":["b"]}`}}, {Name: "other"}}}
	lost.Hold(map[Holder]Held{HolderOf(p): Seen(&inc)}, false)
	serve(lost, gpu, plugin, "a b")
	if got := counts(lost); got != (plan.Devices{Total: 2, Served: true}) {
		t.Errorf("got %+v", got)
	}
	if ids, err := use(t, lost, asking(t, "q", "main=1"), "main"); ids != "a" {
		t.Errorf("another got %q, %v", ids, err)
	}
	if ids, err := use(t, lost, p, "main"); ids != "b" {
		t.Errorf("it got %q, %v", ids, err)
	}
	// What another has by now is not taken from it.
	lost.Hold(map[Holder]Held{HolderOf(asking(t, "r", "main=1")): Seen(&inc)}, false)
	if got, want := has(lost), "p/main=b, q/main=a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSeenAndBroken: what a container runs with stays its own when the plugin does
// not say anew what goes with it.
func TestSeenAndBroken(t *testing.T) {
	l, p, broken := open(t), asking(t, "p", "main=1", "side=1"), errors.New("it burns")
	inc := runtime.Incarnation{Containers: []runtime.Container{{Name: "main", Annotations: map[string]string{runtime.AnnotationDevices: `{"` + gpu + `":["b"]}`}}}}
	l.Hold(map[Holder]Held{HolderOf(p): Seen(&inc)}, false)
	serve(l, gpu, &fake{answer: func([]string) (*v1beta1.ContainerAllocateResponse, error) {
		err := broken
		broken = nil
		return &v1beta1.ContainerAllocateResponse{}, err
	}}, "a b")
	if _, err := use(t, l, p, "side"); err == nil || has(l) != "p/main=b" {
		t.Errorf("got %v; has %s", err, has(l))
	}
	if ids, err := use(t, l, p, "side"); ids != "a" || has(l) != "p/main=b, p/side=a" {
		t.Errorf("got %q, %v; has %s", ids, err, has(l))
	}
}

// TestHold: devices are free when their pod is not named any more, not before all
// is known, and not while it is being started.
func TestHold(t *testing.T) {
	l, p := open(t), asking(t, "p", "main=1")
	serve(l, gpu, &fake{}, "a")
	if l.Held() {
		t.Error("somebody has devices")
	}
	_, done, err := l.Use(t.Context(), p, "")
	if err != nil || !l.Held() {
		t.Fatal(err, l.Held())
	}
	steps := []struct {
		what  string
		do    func()
		holds bool
	}{
		{"not all are known", func() { l.Hold(nil, false) }, true},
		{"it is being started", func() { l.Hold(nil, true) }, true},
		{"it was started", func() { done(); l.Hold(map[Holder]Held{HolderOf(p): nil}, true) }, true},
		{"the plugin is gone", func() { l.Leave(gpu, l.resources[gpu].plugin) }, true},
		{"it is gone", func() { l.Hold(nil, true) }, false},
	}
	for _, s := range steps {
		if s.do(); (has(l) == "p/main=a") != s.holds {
			t.Errorf("%s: %s", s.what, has(l))
		}
	}
	if got := counts(l); got != (plan.Devices{}) {
		t.Errorf("got %+v", got)
	}
}

// TestSuccessor: a newer version of a pod has what the one before had.
func TestSuccessor(t *testing.T) {
	l, p, q := open(t), asking(t, "p", "main=1"), asking(t, "p", "other=1")
	serve(l, gpu, &fake{}, "a")
	if _, err := use(t, l, p, ""); err != nil {
		t.Fatal(err)
	}
	if ids, err := use(t, l, q, "other"); ids != "a" || has(l) != "p/other=a" {
		t.Errorf("got %q, %v: %s", ids, err, has(l))
	}
}

// TestHealth: what is ill is not given, who has it keeps it, and it counts as had.
func TestHealth(t *testing.T) {
	l, p, plugin := open(t), asking(t, "p", "main=1"), &fake{}
	serve(l, gpu, plugin, "a b -c")
	if _, err := use(t, l, p, ""); err != nil {
		t.Fatal(err)
	}
	list(l, gpu, plugin, "-a b -c")
	if got := counts(l); got.Total != 2 {
		t.Errorf("got %+v", got)
	}
	if ids, err := use(t, l, p, "main"); ids != "a" {
		t.Errorf("got %q, %v", ids, err)
	}
	_, err := use(t, l, asking(t, "q", "main=2"), "")
	if want := "giving container main 2 of example.com/gpu: 2 are asked for and 1 are free"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestReplaceIll: a pod of which nothing runs gets others for devices that are ill
// or gone, once the plugin has listed some.
func TestReplaceIll(t *testing.T) {
	tests := map[string]struct{ then, container, want string }{
		"all are well":         {"a b c d", "", "p/first=a b, p/main=a"},
		"one is ill":           {"-a b c d", "", "p/first=b c, p/main=b"},
		"one is gone":          {"a c", "", "p/first=a c, p/main=a"},
		"a container runs":     {"-a b c d", "main", "p/first=a b, p/main=a"},
		"nothing is to be had": {"c", "", ""},
		"no list yet":          {"", "", "p/first=a b, p/main=a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, p, plugin := open(t), asking(t, "p", "init:first=2", "main=1"), &fake{}
			serve(l, gpu, plugin, "a b c d")
			if _, err := use(t, l, p, ""); err != nil {
				t.Fatal(err)
			}
			if tt.then == "" {
				l.Serve(gpu, plugin)
			} else {
				list(l, gpu, plugin, tt.then)
			}
			if _, err := use(t, l, p, tt.container); (err != nil) != (tt.want == "") || has(l) != tt.want {
				t.Errorf("got %s, %v; want %s", has(l), err, tt.want)
			}
		})
	}
}

// TestPreferred: what a plugin prefers is honoured where it is to be had.
func TestPreferred(t *testing.T) {
	l := open(t)
	var asked string
	serve(l, gpu, &fake{prefer: func(available, must []string, n int) ([]string, error) {
		asked = fmt.Sprint(available, must, n)
		return []string{"c", "a", "taken"}, nil
	}}, "a b c")
	p := asking(t, "p", "init:first=1", "main=2")
	if _, err := use(t, l, p, ""); err != nil || has(l) != "p/first=a, p/main=a c" {
		t.Errorf("got %s, %v", has(l), err)
	}
	if want := "[a b c] [a] 2"; asked != want {
		t.Errorf("it was asked %s, want %s", asked, want)
	}
}

// TestBroken: what a plugin cannot or may not give is given to nobody.
func TestBroken(t *testing.T) {
	type answer = v1beta1.ContainerAllocateResponse
	tests := map[string]struct {
		answer *answer
		err    error
		want   string
	}{
		"it fails":              {nil, errors.New("it burns"), "it burns"},
		"no answer":             {nil, nil, "no answer"},
		"a huge one":            {&answer{Envs: map[string]string{"A": strings.Repeat("x", responseLimit)}}, nil, "more than 1048576"},
		"a variable that isn't": {&answer{Envs: map[string]string{"A=B": "x"}}, nil, `variable "A=B"`},
		"a NUL":                 {&answer{Envs: map[string]string{"A": "secret\x00"}}, nil, `variable "A"`},
		"a relative path":       {&answer{Mounts: []*v1beta1.Mount{{HostPath: "lib", ContainerPath: "/lib"}}}, nil, `mounts "lib"`},
		"a way up":              {&answer{Mounts: []*v1beta1.Mount{{HostPath: "/opt/../etc", ContainerPath: "/lib"}}}, nil, "without .."},
		"a device upwards":      {&answer{Devices: []*v1beta1.DeviceSpec{{HostPath: "/dev/null", ContainerPath: "../x"}}}, nil, "without .."},
		"odd permissions":       {&answer{Devices: []*v1beta1.DeviceSpec{{HostPath: "/dev/null", ContainerPath: "/dev/x", Permissions: "rwx"}}}, nil, `"rwx"`},
		"podd's annotation":     {&answer{Annotations: map[string]string{runtime.AnnotationKind: "init:0"}}, nil, "podd/kind"},
		"a hook":                {&answer{Annotations: map[string]string{runtime.AnnotationPreStopHandler: "{}"}}, nil, "preStopHandler"},
		"no CDI name":           {&answer{CdiDevices: []*v1beta1.CDIDevice{{Name: "all"}}}, nil, "vendor/class=name"},
		"nothing in a list":     {&answer{Mounts: []*v1beta1.Mount{nil}}, nil, "absolute"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, p := open(t), asking(t, "p", "main=1")
			serve(l, gpu, &fake{answer: func([]string) (*answer, error) { return tt.answer, tt.err }}, "a")
			_, err := use(t, l, p, "main")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if has(l) != "" || counts(l).Total != 1 {
				t.Errorf("it has %s of %+v", has(l), counts(l))
			}
		})
	}
}

// TestHung: a plugin that does not answer holds up nobody else.
func TestHung(t *testing.T) {
	l, hung := open(t), make(chan struct{})
	serve(l, "example.com/slow", &fake{answer: func([]string) (*v1beta1.ContainerAllocateResponse, error) {
		<-hung
		return nil, errors.New("too late")
	}}, "a")
	serve(l, gpu, &fake{}, "a")
	slow := asking(t, "slow", "main=1")
	slow.Spec.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/slow": *slow.Spec.Spec.Containers[0].Resources.Limits.Name(gpu, "")}
	var waiting sync.WaitGroup
	waiting.Go(func() { use(t, l, slow, "") })
	if ids, err := use(t, l, asking(t, "p", "main=1"), "main"); ids != "a" {
		t.Errorf("got %q, %v", ids, err)
	}
	// Another start of the same pod waits its turn, for as long as it may.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := l.Use(ctx, slow, "main"); err == nil {
		t.Error("it did not wait")
	}
	close(hung)
	waiting.Wait()
	l.Hold(nil, true)
	if got, want := has(l), ""; got != want {
		t.Errorf("got %s", got)
	}
}

// TestChanged: what changes nothing wakes nobody.
func TestChanged(t *testing.T) {
	l, plugin := open(t), &fake{}
	told := func() bool {
		select {
		case <-l.Changed():
			return true
		default:
			return false
		}
	}
	serve(l, gpu, plugin, "a b")
	if !told() || told() {
		t.Error("serving was not told once")
	}
	if list(l, gpu, plugin, "b a"); told() {
		t.Error("the same was told")
	}
	if list(l, gpu, &fake{prepares: true}, "a"); told() || len(l.Healthy()[gpu]) != 2 {
		t.Error("a plugin that is the resource's no more was heard")
	}
	if list(l, gpu, plugin, "a -b"); !told() {
		t.Error("an illness was not told")
	}
}
