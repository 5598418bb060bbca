package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	v1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/device"
	"podd/reconcile/device/allocation"
	"podd/reconcile/device/plugin/plugintest"
	"podd/reconcile/plugins"
	"podd/runtime/runtimetest/syncbuffer"
)

const gpu = "example.com/gpu"

// A testServer is a Server with its sockets.
type testServer struct {
	*Server
	registry string
	log      *syncbuffer.Buffer
	stop     func()
}

// startServer starts a server in a directory. It runs until the test ends or stop is
// called.
func startServer(t *testing.T, dir string) *testServer {
	t.Helper()
	m, err := device.Open(filepath.Join(dir, "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	log := &syncbuffer.Buffer{}
	a := &testServer{
		Server:   &Server{Dir: filepath.Join(dir, "device-plugins"), Manager: m, Log: slog.New(slog.NewTextHandler(log, nil))},
		registry: filepath.Join(dir, "plugins_registry"),
		log:      log,
	}
	if err := PrepareDir(a.Dir); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(a.Dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		watch := &plugins.Watcher{Dir: a.registry, Handlers: map[string]plugins.Handler{v1.DevicePlugin: a.Handler()}, Log: a.Log}
		watch.Run(ctx)
	})
	a.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(a.stop)
	return a
}

// shortTempDir returns a directory with a name that is short enough for sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (a *testServer) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s; got counts %+v", what, a.Manager.Counts())
		}
	}
}

func (a *testServer) untilCounts(t *testing.T, want allocation.Count) {
	t.Helper()
	a.until(t, fmt.Sprintf("the counts are %+v", want), func() bool { return a.Manager.Counts()[gpu] == want })
}

func pod(t *testing.T, n int) *manifest.Pod {
	t.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, image: i, resources: {limits: {%s: %d}}}]}\n", gpu, n)
	f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "n"})
	if len(f.Pods) != 1 {
		t.Fatal(f.Problems)
	}
	return f.Pods[0]
}

func start(t *testing.T, p *plugintest.Plugin) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
}

// TestPlugin checks the registration of a plugin, its lists and calls, its exit, and its
// registration after a restart of podd.
func TestPlugin(t *testing.T) {
	dir := shortTempDir(t)
	a := startServer(t, dir)
	p := &plugintest.Plugin{Dir: a.Dir, Resource: gpu}
	p.Options = v1beta1.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}
	p.Prefer = func(available, must []string, n int) []string { return available[len(available)-n:] }
	p.AllocateFunc = func(ids []string) (*v1beta1.ContainerAllocateResponse, error) {
		return &v1beta1.ContainerAllocateResponse{Envs: map[string]string{"IDS": strings.Join(ids, " ")}}, nil
	}
	p.SetDevices("a", "b", "-c", "", strings.Repeat("x", maxIDLength+1))
	var allocations []string
	a.OnAllocate = func(resource string, took time.Duration) {
		allocations = append(allocations, fmt.Sprint(resource, " ", took > 0))
	}
	start(t, p)
	a.untilCounts(t, allocation.Count{Total: 2, Listed: 3, Healthy: 2, IsServed: true})

	requesting := pod(t, 1)
	grants, done, err := a.Manager.Acquire(t.Context(), requesting, "main")
	if err != nil || len(grants) != 1 || grants[0].Response.Envs["IDS"] != "b" {
		t.Fatalf("Acquire: got %v (error %v), want device b", grants, err)
	}
	done()
	if err := a.Manager.PreStart(t.Context(), "main", grants); err != nil {
		t.Error(err)
	}
	if got, want := p.Calls(), []string{"Prefer a b", "Allocate b", "PreStart b"}; !slices.Equal(got, want) {
		t.Errorf("got calls %q, want %q", got, want)
	}
	if want := []string{gpu + " true"}; !slices.Equal(allocations, want) {
		t.Errorf("got calls of OnAllocate %q, want %q", allocations, want)
	}
	p.SetDevices("a", "-b", "", "")
	a.untilCounts(t, allocation.Count{Total: 2, Listed: 2, Healthy: 1, IsServed: true})
	p.SetDevices("-a", "-b", "", "")
	a.untilCounts(t, allocation.Count{Total: 1, Listed: 2, IsServed: true})
	p.Stop()
	a.untilCounts(t, allocation.Count{Total: 1, Listed: 2, IsAwaited: true})
	if n := strings.Count(a.log.String(), "their IDs are empty or too long"); n != 1 {
		t.Errorf("log records about devices without a valid ID: got %d, want 1", n)
	}

	a.stop()
	a = startServer(t, dir)
	a.untilCounts(t, allocation.Count{Total: 1, IsAwaited: true})
	p.SetDevices("a", "b")
	start(t, p)
	a.untilCounts(t, allocation.Count{Total: 2, Listed: 2, Healthy: 2, IsServed: true})
	if grants, done, err = a.Manager.Acquire(t.Context(), requesting, "main"); err != nil || grants[0].IDs[0] != "b" {
		t.Fatalf("Acquire: got %v (error %v), want device b", grants, err)
	}
	done()
}

// TestAllocate_Canceled checks that a caller can cancel a call to a plugin that does not respond,
// also while it waits for another call. The plugin stays registered.
func TestAllocate_Canceled(t *testing.T) {
	a, hung := startServer(t, shortTempDir(t)), make(chan struct{})
	p := &plugintest.Plugin{Dir: a.Dir, Resource: gpu, AllocateFunc: func([]string) (*v1beta1.ContainerAllocateResponse, error) {
		<-hung
		return nil, errors.New("too late")
	}}
	p.SetDevices("a", "b")
	start(t, p)
	defer close(hung) // runs before the plugin is stopped
	a.untilCounts(t, allocation.Count{Total: 2, Listed: 2, Healthy: 2, IsServed: true})
	ctx, cancel := context.WithCancel(t.Context())
	all := make(chan error)
	for _, name := range []string{"p", "q"} {
		p := *pod(t, 1)
		p.Key.Name = name
		go func() {
			_, _, err := a.Manager.Acquire(ctx, &p, "main")
			all <- err
		}()
	}
	a.until(t, "a call is in progress", func() bool { return len(p.Calls()) > 0 })
	cancel()
	for range 2 {
		if err := <-all; !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
	}
	a.untilCounts(t, allocation.Count{Total: 2, Listed: 2, Healthy: 2, IsServed: true})
}

// TestCall_TimeoutExcludesWait checks that the timeout of a call does not include the wait
// for other calls.
func TestCall_TimeoutExcludesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{callSlot: make(chan struct{}, 1)}
		slow := func(ctx context.Context) error {
			select {
			case <-time.After(callTimeout - time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := c.call(t.Context(), callTimeout, "to wait", slow); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// TestPrepare checks that PrepareDir removes old sockets and no other files.
func TestPrepare(t *testing.T) {
	dir := shortTempDir(t)
	ln, err := net.Listen("unix", filepath.Join(dir, "old.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "kept"), nil, 0o600), os.Mkdir(filepath.Join(dir, "sub"), 0o700), PrepareDir(dir)); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 || entries[0].Name() != "kept" {
		t.Errorf("remaining entries: got %v, want kept and sub", entries)
	}
}

// TestRegister_Again checks that a plugin replaces an earlier plugin at the same socket.
func TestRegister_Again(t *testing.T) {
	a := startServer(t, shortTempDir(t))
	first := &plugintest.Plugin{Dir: a.Dir, Resource: gpu}
	first.SetDevices("a")
	start(t, first)
	a.untilCounts(t, allocation.Count{Total: 1, Listed: 1, Healthy: 1, IsServed: true})
	if err := os.Rename(filepath.Join(a.Dir, first.Endpoint()), filepath.Join(a.Dir, "moved")); err != nil {
		t.Fatal(err)
	}
	second := &plugintest.Plugin{Dir: a.Dir, Resource: gpu}
	second.SetDevices("a", "b", "c")
	start(t, second)
	a.untilCounts(t, allocation.Count{Total: 3, Listed: 3, Healthy: 3, IsServed: true})
	second.Stop()
	a.untilCounts(t, allocation.Count{Listed: 3, IsAwaited: true})
}

// TestRegister_Several checks that the plugin of a resource that registered last is used, and that
// the others are used when it exits. If there are too many, the oldest is displaced.
func TestRegister_Several(t *testing.T) {
	a := startServer(t, shortTempDir(t))
	var all []*plugintest.Plugin
	devices := []string{"a", "b", "c", "d", "e"}
	for i := range maxPluginsPerResource + 1 {
		p := &plugintest.Plugin{Dir: a.Dir, Resource: gpu, Socket: fmt.Sprintf("%d.sock", i)}
		p.SetDevices(devices[:i+1]...)
		start(t, p)
		n := int64(i + 1)
		a.untilCounts(t, allocation.Count{Total: n, Listed: n, Healthy: n, IsServed: true})
		all = append(all, p)
	}
	a.until(t, "the oldest plugin is displaced", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.countPluginsLocked() == maxPluginsPerResource
	})
	for i := maxPluginsPerResource; i > 1; i-- {
		all[i].Stop()
		n := int64(i)
		a.untilCounts(t, allocation.Count{Total: n, Listed: n, Healthy: n, IsServed: true})
	}
	all[1].Stop()
	a.untilCounts(t, allocation.Count{Listed: 2, IsAwaited: true})
}

// TestRegister_Invalid checks that invalid registrations fail with an error.
func TestRegister_Invalid(t *testing.T) {
	a := startServer(t, shortTempDir(t))
	valid := v1beta1.RegisterRequest{Version: v1beta1.Version, ResourceName: gpu, Endpoint: "gpu.sock"}
	tests := map[string]struct{ version, resource, endpoint, want string }{
		"another version":   {version: "v1alpha", want: `version "v1alpha"`},
		"no resource":       {resource: "gpu", want: "<domain>/<name>"},
		"Kubernetes' own":   {resource: "kubernetes.io/gpu", want: "<domain>/<name>"},
		"a quota":           {resource: "requests.example.com/gpu", want: "<domain>/<name>"},
		"a path":            {endpoint: "../gpu.sock", want: "not the name of a socket"},
		"an absolute path":  {endpoint: "/run/gpu.sock", want: "not the name of a socket"},
		"podd's own socket": {endpoint: SocketName, want: "not the name of a socket"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := v1beta1.RegisterRequest{Version: valid.Version, ResourceName: valid.ResourceName, Endpoint: valid.Endpoint}
			for to, from := range map[*string]string{&r.Version: tt.version, &r.ResourceName: tt.resource, &r.Endpoint: tt.endpoint} {
				if from != "" {
					*to = from
				}
			}
			err := plugintest.Register(t.Context(), a.Dir, &r)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("registration: got error %v, want one with %q", err, tt.want)
			}
		})
	}
	if len(a.Manager.Counts()) > 0 {
		t.Errorf("resources after invalid registrations: got %v, want none", a.Manager.Counts())
	}
}

// TestWatched checks that a plugin is discovered by its socket in plugins_registry and notified of
// its registration. Its devices are counted only while the socket exists. A second plugin that
// creates the socket again is discovered, too. A plugin with an invalid resource name is notified
// of the error.
func TestWatched(t *testing.T) {
	a := startServer(t, shortTempDir(t))
	a.until(t, "the directory exists", func() bool { _, err := os.Stat(a.registry); return err == nil })
	for range 2 {
		p := &plugintest.Plugin{Dir: a.registry, Resource: gpu, WaitsForDiscovery: true}
		p.SetDevices("a", "b")
		start(t, p)
		a.untilCounts(t, allocation.Count{Total: 2, Listed: 2, Healthy: 2, IsServed: true})
		a.until(t, "the plugin is notified", func() bool { return p.Status().GetPluginRegistered() })
		p.Stop()
		a.untilCounts(t, allocation.Count{Listed: 2, IsAwaited: true})
	}
	invalid := &plugintest.Plugin{Dir: a.registry, Resource: "gpu", WaitsForDiscovery: true}
	start(t, invalid)
	a.until(t, "the plugin is notified of the error", func() bool { return strings.Contains(invalid.Status().GetError(), "<domain>/<name>") })
}

// TestWatched_Displaced checks that a discovered plugin is displaced if too many later plugins serve
// its resource. The plugin is registered again only when its socket is recreated.
func TestWatched_Displaced(t *testing.T) {
	a := startServer(t, shortTempDir(t))
	a.until(t, "the directory exists", func() bool { _, err := os.Stat(a.registry); return err == nil })
	devices := []string{"a", "b", "c", "d", "e"}
	for i := range maxPluginsPerResource + 1 {
		p := &plugintest.Plugin{Dir: a.registry, Resource: gpu, Socket: fmt.Sprintf("%d.sock", i), WaitsForDiscovery: true}
		p.SetDevices(devices[:i+1]...)
		start(t, p)
		n := int64(i + 1)
		a.untilCounts(t, allocation.Count{Total: n, Listed: n, Healthy: n, IsServed: true})
	}
	a.until(t, "the first plugin is displaced", func() bool { return strings.Count(a.log.String(), "has registered and replaced this one") == 1 })
	if err := os.Chtimes(filepath.Join(a.registry, "0.sock"), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	a.untilCounts(t, allocation.Count{Total: 1, Listed: 1, Healthy: 1, IsServed: true})
	a.until(t, "the second plugin is displaced", func() bool { return strings.Count(a.log.String(), "has registered and replaced this one") == 2 })
}

// TestWatched_UnsupportedType checks that a plugin of an unsupported type is not notified,
// and is logged once for each socket that it creates.
func TestWatched_UnsupportedType(t *testing.T) {
	a := startServer(t, shortTempDir(t))
	a.until(t, "the directory exists", func() bool { _, err := os.Stat(a.registry); return err == nil })
	for n := range 2 {
		p := &plugintest.Plugin{Dir: a.registry, Resource: "csi.example.com", WaitsForDiscovery: true, Type: v1.CSIPlugin}
		start(t, p)
		a.until(t, "the plugin is logged", func() bool { return strings.Count(a.log.String(), "plugin of an unsupported type ignored") == n+1 })
		if p.Stop(); p.Status() != nil {
			t.Errorf("status of the registration that the plugin got: got %v, want none", p.Status())
		}
	}
}
