package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	regv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plugins"
	"podd/runtime/runtimetest/csidriver"
)

func TestMain(m *testing.M) {
	csidriver.Main()
	os.Exit(m.Run())
}

const driver = "host.csi.example.com"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// machine is a root directory with the drivers of it, and one that runs.
type machine struct {
	*Drivers
	driver *csidriver.Driver
	root   string
	logged *lines
	stop   func() // as a kill would
}

// lines is what was logged.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String implements fmt.Stringer.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) has(what string) bool { return strings.Contains(l.String(), what) }

// newMachine starts a driver that can what is named.
func newMachine(t *testing.T, o Options, can ...string) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	must(t, err)
	t.Cleanup(func() {
		left, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		if err != nil {
			t.Error(err)
		}
		for i := len(left) - 1; i >= 0; i-- {
			_ = unix.Unmount(left[i].Mountpoint, unix.MNT_DETACH)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	m := &machine{root: filepath.Join(dir, "root"), logged: &lines{}}
	m.driver = &csidriver.Driver{Dir: filepath.Join(dir, "d"), Name: driver, Registry: filepath.Join(m.root, plugins.Dir), Capabilities: can}
	m.begin(t, o)
	m.startDriver(t)
	return m
}

// restart is podd starting anew, after a kill.
func (m *machine) restart(t *testing.T, o Options) {
	t.Helper()
	m.stop()
	m.begin(t, o)
	m.registered(t)
}

func (m *machine) registered(t *testing.T) {
	t.Helper()
	m.until(t, "the driver is registered", func() bool { all, _ := m.Registered(); return len(all) == 1 })
}

func (m *machine) publish(t *testing.T, v Volume) Published {
	t.Helper()
	p, err := m.Publish(t.Context(), v)
	must(t, err)
	return p
}

func (m *machine) unpublish(t *testing.T, pod types.UID) {
	t.Helper()
	must(t, m.Unpublish(t.Context(), pod))
}

func (m *machine) startDriver(t *testing.T) {
	t.Helper()
	must(t, os.MkdirAll(m.driver.Dir, 0o750))
	must(t, m.driver.Start())
	t.Cleanup(func() { _ = m.driver.Stop() })
	m.registered(t)
}

// begin is podd starting on the machine.
func (m *machine) begin(t *testing.T, o Options) {
	t.Helper()
	o.Root, o.Node, o.Log = m.root, "node1", slog.New(slog.NewTextHandler(m.logged, nil))
	d, err := New(o)
	must(t, err)
	m.Drivers = d
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w := &plugins.Watcher{Dir: filepath.Join(m.root, plugins.Dir), Kinds: map[string]plugins.Kind{regv1.CSIPlugin: d}, Log: o.Log}
	running.Go(func() { w.Run(ctx) })
	running.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	m.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(m.stop)
}

func (m *machine) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			done, _ := m.driver.Changes()
			t.Fatalf("never: %s; the driver did %q and podd said\n%s", what, done, m.logged.text.String())
		}
	}
}

// calls are what the driver wrote of them.
func (m *machine) calls(t *testing.T) []csidriver.Call {
	t.Helper()
	all, err := m.driver.Calls()
	must(t, err)
	return all
}

// done has the driver have done this, and nothing else, and nothing at once for one
// volume.
func (m *machine) done(t *testing.T, want ...string) {
	t.Helper()
	did := func() []string { all, err := m.driver.Changes(); must(t, err); return all }
	m.until(t, fmt.Sprintf("%q", want), func() bool { return len(did()) >= len(want) })
	if diff := cmp.Diff(want, did()); diff != "" {
		t.Fatalf("-want +did\n%s", diff)
	}
	m.inTurns(t)
}

// inTurns looks that no calls for one volume overlapped.
func (m *machine) inTurns(t *testing.T) {
	t.Helper()
	for _, c := range m.calls(t) {
		if c.Overlaps {
			t.Errorf("%s for %s overlaps another call", c.Method, c.Volume)
		}
	}
}

// hung waits until a call of a method that hangs has come to an end, and has no more
// of them hang.
func (m *machine) hung(t *testing.T, method string) {
	t.Helper()
	m.until(t, "the driver has given up, too", func() bool {
		return slices.ContainsFunc(m.calls(t), func(c csidriver.Call) bool { return c.Event == csidriver.Ended && c.Method == method })
	})
	must(t, m.driver.Set(method, ""))
}

// request is the newest one of a method.
func (m *machine) request(t *testing.T, method string) string {
	t.Helper()
	for _, c := range slices.Backward(m.calls(t)) {
		if c.Event == csidriver.Begun && c.Method == method {
			var any any
			must(t, json.Unmarshal(c.Request, &any)) // protojson puts spaces by chance
			text, err := json.MarshalIndent(any, "", " ")
			must(t, err)
			return strings.ReplaceAll(string(text), m.root, "ROOT")
		}
	}
	return ""
}

func (m *machine) inUse(t *testing.T, handles ...string) {
	t.Helper()
	m.until(t, fmt.Sprintf("in use are %q", handles), func() bool {
		uses, _ := m.InUse()
		var have []string
		for _, u := range uses {
			have = append(have, u.Handle)
		}
		return slices.Equal(have, handles)
	})
}

func podOf(uid types.UID) *manifest.Pod {
	group := int64(2000)
	return &manifest.Pod{
		Key: types.NamespacedName{Namespace: "shop", Name: "db"}, UID: uid,
		Spec: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid},
			Spec:       v1.PodSpec{ServiceAccountName: "clerk", SecurityContext: &v1.PodSecurityContext{FSGroup: &group}},
		},
	}
}

func volumeOf(uid types.UID) Volume {
	return Volume{
		Pod: podOf(uid), Name: "data",
		CSI: &refs.CSI{
			Driver: driver, Handle: "vol-1", Volume: "pv-1", FSType: "ext4", AccessMode: v1.ReadWriteOnce, MountOptions: []string{"noatime"},
			Attributes: map[string]string{"pool": "fast"}, Published: map[string]string{"lun": "7"}, Capacity: 1 << 20,
			StageSecret: map[string][]byte{"key": []byte("stage-secret")}, PublishSecret: map[string][]byte{"key": []byte("publish-secret")},
		},
	}
}

func wishes(change func(*storage.CSIDriverSpec)) *storage.CSIDriverSpec {
	s := &storage.CSIDriverSpec{VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral}}
	change(s)
	return s
}

func ptr[T any](v T) *T { return &v }

const one, two = types.UID("pod-1"), types.UID("pod-2")
