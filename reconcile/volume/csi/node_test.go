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
	"podd/runtime/runtimetest/syncbuffer"
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

// A testNode is a root directory with the Drivers of podd, and a running CSI driver.
type testNode struct {
	*Drivers
	driver   *csidriver.Driver
	root     string
	log      *syncbuffer.Buffer // the log of podd
	killPodd func()             // stops podd without unpublishing any volume
}

// newTestNode starts podd and a driver. The parameter can contains the capabilities of the driver's
// node service, such as "STAGE_UNSTAGE_VOLUME".
func newTestNode(t *testing.T, o Options, can ...string) *testNode {
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
	m := &testNode{root: filepath.Join(dir, "root"), log: &syncbuffer.Buffer{}}
	m.driver = &csidriver.Driver{Dir: filepath.Join(dir, "d"), Name: driver, Registry: filepath.Join(m.root, plugins.DirName), Capabilities: can}
	m.startPodd(t, o)
	m.startDriver(t)
	return m
}

// restartPodd kills podd, starts it with the options o, and waits until the driver is registered.
func (m *testNode) restartPodd(t *testing.T, o Options) {
	t.Helper()
	m.killPodd()
	m.startPodd(t, o)
	m.waitRegistered(t)
}

func (m *testNode) waitRegistered(t *testing.T) {
	t.Helper()
	m.waitFor(t, "the driver is registered", func() bool { all, _ := m.Registered(); return len(all) == 1 })
}

func (m *testNode) publish(t *testing.T, v Volume) PublishResult {
	t.Helper()
	p, err := m.Publish(t.Context(), v)
	must(t, err)
	return p
}

func (m *testNode) unpublish(t *testing.T, pod types.UID) {
	t.Helper()
	must(t, m.Unpublish(t.Context(), pod))
}

func (m *testNode) startDriver(t *testing.T) {
	t.Helper()
	must(t, os.MkdirAll(m.driver.Dir, 0o750))
	must(t, m.driver.Start())
	t.Cleanup(func() { _ = m.driver.Stop() })
	m.waitRegistered(t)
}

// startPodd starts podd with the options o. It does not wait until the driver is registered. The default
// of Options.CallTimeout is long enough for a busy host.
func (m *testNode) startPodd(t *testing.T, o Options) {
	t.Helper()
	if o.CallTimeout == 0 {
		o.CallTimeout = time.Hour
	}
	o.Root, o.NodeName, o.Log = m.root, "node1", slog.New(slog.NewTextHandler(m.log, nil))
	d, err := New(o)
	must(t, err)
	m.Drivers = d
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w := &plugins.Watcher{Dir: filepath.Join(m.root, plugins.DirName), Handlers: map[string]plugins.Handler{regv1.CSIPlugin: d}, Log: o.Log}
	running.Go(func() { w.Run(ctx) })
	running.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	m.killPodd = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(m.killPodd)
}

// waitFor waits until condition returns true. The parameter what describes the condition.
func (m *testNode) waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			done, _ := m.driver.Changes()
			t.Fatalf("timed out waiting until %s; calls: %q; log:\n%s", what, done, m.log)
		}
	}
}

// calls returns the events that the driver recorded: one for the start and one for the end of each
// call.
func (m *testNode) calls(t *testing.T) []csidriver.Call {
	t.Helper()
	all, err := m.driver.Calls()
	must(t, err)
	return all
}

// checkCalls waits until the driver has completed len(want) calls, and checks that they are equal
// to want. It also checks that no calls for a volume overlapped.
func (m *testNode) checkCalls(t *testing.T, want ...string) {
	t.Helper()
	calls := func() []string { all, err := m.driver.Changes(); must(t, err); return all }
	m.waitFor(t, fmt.Sprintf("the driver has completed the calls %q", want), func() bool { return len(calls()) >= len(want) })
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Fatalf("calls of the driver (-want +got):\n%s", diff)
	}
	m.checkNoOverlap(t)
}

// checkNoOverlap checks that no two calls for the same volume overlapped.
func (m *testNode) checkNoOverlap(t *testing.T) {
	t.Helper()
	for _, c := range m.calls(t) {
		if c.Overlaps {
			t.Errorf("%s for volume %s: got an overlap with another call, want none", c.Method, c.Volume)
		}
	}
}

// stopHanging waits until a hanging call of method has ended, and sets the driver so that later
// calls of method do not hang.
func (m *testNode) stopHanging(t *testing.T, method string) {
	t.Helper()
	m.waitFor(t, "a call of "+method+" has ended in the driver", func() bool {
		return slices.ContainsFunc(m.calls(t), func(c csidriver.Call) bool { return c.Event == csidriver.CallEnded && c.Method == method })
	})
	must(t, m.driver.SetBehavior(method, ""))
}

// lastRequest returns the JSON text of the newest request of method, or "" if there was no request.
// The root directory is replaced with ROOT.
func (m *testNode) lastRequest(t *testing.T, method string) string {
	t.Helper()
	for _, c := range slices.Backward(m.calls(t)) {
		if c.Event == csidriver.CallBegun && c.Method == method {
			var any any
			must(t, json.Unmarshal(c.Request, &any)) // indent again, because protojson adds random spaces
			text, err := json.MarshalIndent(any, "", " ")
			must(t, err)
			return strings.ReplaceAll(string(text), m.root, "ROOT")
		}
	}
	return ""
}

// waitInUse waits until exactly the volumes with these handles are in use.
func (m *testNode) waitInUse(t *testing.T, handles ...string) {
	t.Helper()
	m.waitFor(t, fmt.Sprintf("exactly the volumes %q are in use", handles), func() bool {
		inUse, _ := m.VolumesInUse()
		var got []string
		for _, id := range inUse {
			got = append(got, id.Handle)
		}
		return slices.Equal(got, handles)
	})
}

func newPod(uid types.UID) *manifest.Pod {
	group := int64(2000)
	return &manifest.Pod{
		Key: types.NamespacedName{Namespace: "shop", Name: "db"}, UID: uid,
		Object: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid},
			Spec:       v1.PodSpec{ServiceAccountName: "clerk", SecurityContext: &v1.PodSecurityContext{FSGroup: &group}},
		},
	}
}

// newVolume returns the volume "data" of the pod with this UID: the PersistentVolume pv-1.
func newVolume(uid types.UID) Volume {
	return Volume{
		Pod: newPod(uid), Name: "data",
		CSIVolume: &refs.CSIVolume{
			Driver: driver, Handle: "vol-1", Volume: "pv-1", FSType: "ext4", AccessMode: v1.ReadWriteOnce, MountOptions: []string{"noatime"},
			Attributes: map[string]string{"pool": "fast"}, Published: map[string]string{"lun": "7"}, Capacity: 1 << 20,
			StageSecret: map[string][]byte{"key": []byte("stage-secret")}, PublishSecret: map[string][]byte{"key": []byte("publish-secret")},
		},
	}
}

// newDriverSpec returns the spec of a CSIDriver that supports both lifecycle modes. change may
// modify the spec.
func newDriverSpec(change func(*storage.CSIDriverSpec)) *storage.CSIDriverSpec {
	s := &storage.CSIDriverSpec{VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral}}
	change(s)
	return s
}

func ptr[T any](v T) *T { return &v }

const pod1, pod2 = types.UID("pod-1"), types.UID("pod-2")
