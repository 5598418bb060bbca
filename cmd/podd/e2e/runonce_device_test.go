//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podd/reconcile/device/plugin/plugintest"
)

// startRunPlugin waits until the run r serves the registration of device plugins. Then it starts the
// plugin p.
func startRunPlugin(t *testing.T, r *onceRun, p *plugintest.Plugin) {
	t.Helper()
	r.d.eventually("the run serves the registration of device plugins", func() error {
		if _, err := os.Stat(filepath.Join(p.Dir, "kubelet.sock")); err != nil {
			return err
		}
		return p.Start()
	})
	t.Cleanup(p.Stop)
}

// TestRunOnce_Devices checks that the pods of a run get the devices of a device plugin. If there are too
// few devices, the pods must run one after the other.
func TestRunOnce_Devices(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	use := "cat /usr/lib/fancy/driver; echo; ls /dev/fancy-$FANCY; " + exclusive("used")
	d.writePods("pods", d.jobPod("a", never, withDevices(shell("c", use), "1")), d.jobPod("b", never, withDevices(shell("c", use), "1")), d.jobPod("plain", never, shell("c", note("plain"))))
	r := d.startRun(nil, "pods.yaml")
	// The test does not wait for the pod plain, because a run waits only 30 s for a device plugin.
	d.untilPrinted(&r.err, "a: waits: the pod requests 1 of "+fancy+", which no device plugin provides now")
	p := newTestPlugin(d)
	p.SetDevices("one")
	startRunPlugin(t, r, p)
	r.wantExit(0, "podd: 3 pods, 0 failed", "of which other pods request 1")
	if want := []string{"PreStart one", "Allocate one", "PreStart one", "Allocate one"}; !slices.Equal(slices.Sorted(slices.Values(p.Calls())), slices.Sorted(slices.Values(want))) {
		t.Errorf("calls of the plugin: got %q, want \"Allocate one\" twice and \"PreStart one\" twice", p.Calls())
	}
	for _, line := range []string{"a/c | the driver\n", "a/c | /dev/fancy-one\n", "b/c | the driver\n", "b/c | /dev/fancy-one\n"} {
		if !strings.Contains(r.out.String(), line) {
			t.Errorf("stdout of the run: got %q, want %q in it", r.out.String(), line)
		}
	}
}

// TestRunOnce_DevicesMissing checks the error if no device plugin registers, or if a pod requests more
// devices than the plugin has.
func TestRunOnce_DevicesMissing(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("pods", d.jobPod("job", never, withDevices(shell("c", note("runs")), "3")))
	began := time.Now()
	d.run("pods.yaml").wantExit(125, "FAIL  job the pod requests 3 of "+fancy+", which no device plugin provides now", "waited 30s")
	if took := time.Since(began); took < 30*time.Second {
		t.Errorf("duration of the run without a device plugin: got %s, want at least 30s", took)
	}
	r := d.startRun(nil, "pods.yaml")
	startRunPlugin(t, r, newTestPlugin(d))
	r.wantExit(125, "FAIL  job the pod requests 3 of "+fancy+"; the node has 2 for pods, of which other pods request 0")
	if got := d.notes(); strings.Join(got, "") != "" {
		t.Errorf("started pods: got %q, want none", got)
	}
}

// TestRunOnce_DevicesInUse checks that a run waits while another run uses the device plugins, and fails
// if they are registered with a daemon.
func TestRunOnce_DevicesInUse(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("first", d.jobPod("first", never, withDevices(shell("c", note("first")+"until [ -e /trace/enough ]; do sleep 0.1; done"), "1")))
	d.writePods("second", d.jobPod("second", never, withDevices(shell("c", note("second")), "1")))
	first := d.startRun(nil, "first.yaml")
	startRunPlugin(t, first, newTestPlugin(d))
	d.untilNote("first")
	d.run("--timeout", "2s", "second.yaml").wantExitCode(124, "timed out after 2s: another run uses the device plugins of "+d.root()+"; nothing was started")
	second := d.startRun(nil, "second.yaml")
	d.untilPrinted(&second.err, "waiting for the device plugins of "+d.root()+", which another run uses")
	if got := d.notes(); len(got) != 1 {
		t.Errorf("started pods while the first run uses the device plugins: got %q, want only \"first\"", got)
	}
	d.touch("enough")
	first.wait()
	if code := first.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("first run: got exit code %d, want 0\n%s", code, first.err.String())
	}
	startRunPlugin(t, second, newTestPlugin(d))
	second.wantExit(0)
	d.untilNoted("first", "second")
	d.start()
	d.run("second.yaml").wantExitCode(125, "the device plugins of root directory "+d.root()+" are registered with the podd with PID ")
}

// TestRunOnce_DevicesBeforeDaemon starts a daemon during a run that uses device plugins. The daemon must
// not register device plugins before the run has ended, but must register CSI drivers during the run.
func TestRunOnce_DevicesBeforeDaemon(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("pods", d.jobPod("job", never, withDevices(shell("c", note("runs")+"until [ -e /trace/enough ]; do sleep 0.1; done; ls /dev/fancy-$FANCY"), "1")))
	r := d.startRun(nil, "pods.yaml")
	startRunPlugin(t, r, newTestPlugin(d))
	d.untilNote("runs")
	d.start()
	untilLogged := func(text string) {
		t.Helper()
		d.eventually("podd has logged "+text, func() error {
			log, err := os.ReadFile(d.logFile())
			if err == nil && !strings.Contains(string(log), text) {
				err = errors.New("got no such text in the log")
			}
			return err
		})
	}
	untilLogged("a podd run --runonce uses the device plugins of this root directory")
	d.startCSIDriver(newCSIDriver(d, "STAGE_UNSTAGE_VOLUME"))
	untilLogged("CSI driver registered")
	d.touch("enough")
	r.wantExitCode(0)
	startRunPlugin(t, r, newTestPlugin(d))
	untilLogged("device plugin registered")
}
