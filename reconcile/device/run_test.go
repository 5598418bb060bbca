package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/device/allocation"
	"podd/runtime/runtimetest/syncbuffer"
)

// startRun calls Run until the test ends or stop is called.
func startRun(t *testing.T, l *Manager, log *slog.Logger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx, log)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// TestRun checks how a resource is counted after its plugin has disconnected. After a restart of
// podd the resource is known but has no devices. It is forgotten if no plugin registers for 10
// minutes.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	synctest.Test(t, func(t *testing.T) {
		l, plugin := reopen(t, file), &fake{}
		stop := startRun(t, l, slog.New(slog.DiscardHandler))
		serve(l, gpu, plugin, "a b -c")
		synctest.Wait()
		l.Unregister(gpu, plugin)
		wantCounts := func(when string, wait time.Duration, want allocation.Count) {
			t.Helper()
			select {
			case <-l.Changed():
			default:
			}
			time.Sleep(wait)
			synctest.Wait()
			if got := counts(l); got != want {
				t.Errorf("%s: got %+v, want %+v", when, got, want)
			}
			select {
			case <-l.Changed():
			default:
				if wait > 0 {
					t.Errorf("%s: got no signal, want one", when)
				}
			}
		}
		wantCounts("at once", 0, allocation.Count{Listed: 3, IsAwaited: true})
		wantCounts("after 30 seconds", 30*time.Second, allocation.Count{Listed: 3})
		wantCounts("after 5 minutes", 5*time.Minute-30*time.Second, allocation.Count{})
		if _, known := l.Counts()[gpu]; !known {
			t.Error("after 5 minutes: got an unknown resource, want one without devices")
		}
		stop()

		l = reopen(t, file)
		stop = startRun(t, l, slog.New(slog.DiscardHandler))
		wantCounts("after a restart", 0, allocation.Count{IsAwaited: true})
		wantCounts("30 seconds after a restart", 30*time.Second, allocation.Count{})
		serve(l, gpu, plugin, "a")
		wantCounts("registered again", 0, allocation.Count{Total: 1, Listed: 1, Healthy: 1, IsServed: true})
		stop()

		l = reopen(t, file)
		stop = startRun(t, l, slog.New(slog.DiscardHandler))
		wantCounts("10 minutes after a restart", 10*time.Minute, allocation.Count{})
		if _, known := l.Counts()[gpu]; known {
			t.Error("10 minutes after a restart: got a known resource, want a forgotten one")
		}
		stop()
		if _, known := reopen(t, file).Counts()[gpu]; known {
			t.Error("after another restart: got a known resource, want a forgotten one")
		}
	})
}

// TestRun_Idle checks that Run writes no file if no plugin has listed devices.
func TestRun_Idle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	synctest.Test(t, func(t *testing.T) {
		l := reopen(t, file)
		stop := startRun(t, l, slog.New(slog.DiscardHandler))
		l.Register(gpu, &fake{})
		time.Sleep(time.Hour)
		stop()
	})
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want that the file does not exist", err)
	}
}

// TestRun_Error checks that Run logs an error once, and tries again until the file is written.
func TestRun_Error(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	log := &syncbuffer.Buffer{}
	synctest.Test(t, func(t *testing.T) {
		l := reopen(t, filepath.Join(dir, "devices.json"))
		writeFile(t, dir, nil)
		stop := startRun(t, l, slog.New(slog.NewTextHandler(log, nil)))
		serve(l, gpu, &fake{}, "a")
		time.Sleep(time.Minute)
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("got %d errors in the log, want 1:\n%s", n, log)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveRetryInterval)
		stop()
		if _, known := reopen(t, l.file).Counts()[gpu]; !known {
			t.Error("got an unknown resource, want a known one")
		}
	})
}

// TestRegister_Update checks that the devices of the first plugin are used until the second plugin
// of the same resource has listed its devices. They are used again when the second plugin exits.
func TestRegister_Update(t *testing.T) {
	l, first, second := open(t), &fake{}, &fake{}
	serve(l, gpu, first, "a b")
	l.Register(gpu, second)
	if got, want := counts(l), (allocation.Count{Total: 2, Listed: 2, Healthy: 2, IsServed: true}); got != want {
		t.Errorf("second plugin registered: got %+v, want %+v", got, want)
	}
	list(l, gpu, second, "a")
	list(l, gpu, first, "a b c")
	if got, want := counts(l), (allocation.Count{Total: 1, Listed: 1, Healthy: 1, IsServed: true}); got != want {
		t.Errorf("second plugin has listed: got %+v, want %+v", got, want)
	}
	if _, err := acquireDevices(t, l, podRequesting(t, "p", "main=1"), ""); err != nil || len(first.calls) > 0 || len(second.calls) != 1 {
		t.Errorf("got error %v, calls %q of the first and %q of the second plugin; want one call of the second", err, first.calls, second.calls)
	}
	l.Unregister(gpu, second)
	if got, want := counts(l), (allocation.Count{Total: 3, Listed: 3, Healthy: 3, IsServed: true}); got != want {
		t.Errorf("second plugin exited: got %+v, want %+v", got, want)
	}
}

// TestUse_AfterRestart checks that after a restart of podd a new sandbox waits until a plugin has
// listed its devices, because the host may have other devices than before. A running sandbox does
// not wait.
func TestUse_AfterRestart(t *testing.T) {
	l, p, plugin := open(t), podRequesting(t, "p", "main=1"), &fake{}
	serve(l, gpu, plugin, "a b")
	if _, err := acquireDevices(t, l, p, ""); err != nil {
		t.Fatal(err)
	}
	l = reopen(t, l.file)
	if ids, err := acquireDevices(t, l, p, "main"); ids != "a" {
		t.Errorf("container of a running sandbox: got devices %q (error %v), want a", ids, err)
	}
	if _, err := acquireDevices(t, l, p, ""); !errors.Is(err, errNoPlugin) {
		t.Errorf("sandbox without a plugin: got error %v, want %v", err, errNoPlugin)
	}
	l.Register(gpu, plugin)
	if _, err := acquireDevices(t, l, p, ""); !errors.Is(err, errNoPlugin) {
		t.Errorf("sandbox before the list: got error %v, want %v", err, errNoPlugin)
	}
	list(l, gpu, plugin, "b")
	if _, err := acquireDevices(t, l, p, ""); err != nil || allocations(l) != "p/main=b" {
		t.Errorf("sandbox with other devices: got error %v and allocations %s; want no error and p/main=b", err, allocations(l))
	}
	l.Unregister(gpu, plugin)
	if _, err := acquireDevices(t, l, p, ""); err != nil {
		t.Errorf("sandbox after the plugin has exited: got error %v, want none", err)
	}
}

// TestUse_ResourceWithoutPlugin checks that a pod of a cluster may request a resource that another
// component has added to the Node. If a plugin has served the resource before, the pod waits for a
// plugin.
func TestUse_ResourceWithoutPlugin(t *testing.T) {
	l, p, plugin := open(t), podRequesting(t, "p", "main=1"), &fake{}
	p.Traits.FailsIfRejected = true
	for _, container := range []string{"", "main"} {
		if ids, err := acquireDevices(t, l, p, container); err != nil || ids != "" {
			t.Errorf("container %q: got devices %q (error %v), want none", container, ids, err)
		}
	}
	serve(l, gpu, plugin, "a")
	l.Unregister(gpu, plugin)
	if _, err := acquireDevices(t, l, p, ""); !errors.Is(err, errNoPlugin) {
		t.Errorf("plugin exited: got error %v, want %v", err, errNoPlugin)
	}
	serve(l, gpu, plugin, "a")
	if ids, err := acquireDevices(t, l, p, "main"); ids != "a" {
		t.Errorf("plugin registered: got devices %q (error %v), want a", ids, err)
	}
}

// TestImportKubelet checks that the resources of a kubelet are known, unless podd has its own file or
// the kubelet's file is invalid.
func TestImportKubelet(t *testing.T) {
	many := map[string][]string{}
	for i := range maxKubeletResources + 1 {
		many[fmt.Sprint("example.com/", i)] = nil
	}
	tooMany, err := json.Marshal(map[string]any{"Data": map[string]any{"RegisteredDevices": many}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		content string
		hasFile bool
		want    map[v1.ResourceName]allocation.Count
		fails   bool
	}{
		"kubelet":            {`{"Data":{"PodDeviceEntries":[{"PodUID":"u"}],"RegisteredDevices":{"` + gpu + `":["a"],"cpu":["b"]}},"Checksum":1}`, false, map[v1.ResourceName]allocation.Count{gpu: {IsAwaited: true}}, false},
		"no resources":       {`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}`, false, nil, false},
		"podd ran before":    {`{"Data":{"RegisteredDevices":{"example.com/other":["a"]}}}`, true, map[v1.ResourceName]allocation.Count{gpu: {Total: 2, IsAwaited: true}}, false},
		"damaged":            {`{"Data":`, false, nil, true},
		"other types":        {`{"Data":{"RegisteredDevices":["a"]}}`, false, nil, true},
		"no file":            {"", false, nil, true},
		"too many resources": {string(tooMany), false, nil, true},
	} {
		l, file := open(t), filepath.Join(t.TempDir(), KubeletFile)
		if tt.hasFile {
			saveSample(t, l)
			l = reopen(t, l.file)
		}
		if tt.content != "" {
			writeFile(t, file, []byte(tt.content))
		}
		if err := l.ImportKubelet(file); (err != nil) != tt.fails {
			t.Errorf("%s: got error %v, want one: %t", name, err, tt.fails)
		}
		if got := l.Counts(); !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestAwaitsPlugins checks that plugins of unknown resources are awaited for 30 seconds, and that Run
// signals the end of this time.
func TestAwaitsPlugins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "devices.json")
	synctest.Test(t, func(t *testing.T) {
		l := reopen(t, file)
		stop := startRun(t, l, slog.New(slog.DiscardHandler))
		defer stop()
		if !l.AwaitsPlugins() {
			t.Error("at the start: got false, want true")
		}
		<-l.Changed()
		if took := time.Since(l.openedAt); took != 30*time.Second || l.AwaitsPlugins() {
			t.Errorf("got a signal after %s, awaits plugins: %t; want a signal after 30s, awaits plugins: false", took, l.AwaitsPlugins())
		}
	})
}
