//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ended is a file to which pods made by termNotingPod append their name when they receive SIGTERM.
var ended = filepath.Join(notes, "ended")

// termNotingPod returns the manifest of a pod with a priority class. When the pod receives SIGTERM, it
// appends its name to the file ended and exits. Its grace period is a minute.
func termNotingPod(name, class string) string {
	more := ""
	if class != "" {
		more = "  priorityClassName: " + class + "\n"
	}
	script := "trap 'echo " + name + " >>/notes/ended; sync; exit 0' TERM; sleep 36000 & wait"
	return strings.Replace(pod(name, more, container(name, script, "")), "Seconds: 2\n", "Seconds: 60\n", 1)
}

// checkStopOrder returns an error unless the pods have been stopped in the order of their
// priorities.
func checkStopOrder() error {
	text, err := os.ReadFile(ended)
	if err == nil && string(text) != "usual\nsystem\n" {
		err = fmt.Errorf("order in which the pods were stopped: got %q, want \"usual\\nsystem\\n\"", text)
	}
	return err
}

const (
	shutdownUnit   = "/etc/systemd/system/podd.service.d/shutdown.conf"
	shutdownConfig = "/etc/podd/shutdown.yaml"
	login          = " org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager "
)

// TestShutdown checks that logind delays a reboot until podd has stopped its pods, even if this takes
// longer than logind's default delay. The test requests a reboot. Its own inhibitor lock prevents the
// reboot. Then make vm cuts the power, and TestAfterShutdown checks the result.
func TestShutdown(t *testing.T) {
	config := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshutdownGracePeriod: 600s\nshutdownGracePeriodCriticalPods: 300s\n"
	unit := "[Service]\nExecStart=\nExecStart=" + command(t) + " --config=" + shutdownConfig + "\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(shutdownUnit), 0o755),
		os.WriteFile(shutdownConfig, []byte(config), 0o644), os.WriteFile(shutdownUnit, []byte(unit), 0o644)); err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl unmask systemd-logind") // logind is masked on the disk, because no user logs in
	run(t, "systemctl start dbus systemd-logind")
	restart(t)
	apply(t, map[string]string{"usual": termNotingPod("usual", ""), "system": termNotingPod("system", "system-node-critical")})
	untilReady(t, "usual", "system")
	eventually(t, "logind has an inhibitor of podd", func() error {
		delay, err := system("busctl get-property" + login + "InhibitDelayMaxUSec")
		locks, lerr := system("busctl call" + login + "ListInhibitors")
		if err = errors.Join(err, lerr); err == nil && (delay != "t 600000000" || !strings.Contains(locks, `"podd"`)) {
			err = fmt.Errorf("got InhibitDelayMaxUSec %q and inhibitors %s, want \"t 600000000\" and an inhibitor of podd", delay, locks)
		}
		return err
	})
	// A restart of podd is not a shutdown of the node.
	restart(t)
	untilReady(t, "usual", "system")
	if _, err := os.Stat(ended); err == nil {
		t.Fatal("after a restart of podd: got stopped pods, want none")
	}
	eventually(t, "logind has an inhibitor of podd again", func() error {
		locks, err := system("busctl call" + login + "ListInhibitors")
		if err == nil && !strings.Contains(locks, `"podd"`) {
			err = errors.New(locks)
		}
		return err
	})
	lock := exec.Command("systemd-inhibit", "--what=shutdown", "--mode=delay", "--who=test", "sleep", "3600")
	if err := lock.Start(); err != nil { // the power cut ends this process
		t.Fatal(err)
	}
	eventually(t, "logind has an inhibitor of the test", func() error {
		locks, err := system("busctl call" + login + "ListInhibitors")
		if err == nil && !strings.Contains(locks, `"test"`) {
			err = errors.New(locks)
		}
		return err
	})
	run(t, "busctl call"+login+"Reboot b false")
	eventually(t, "the pods are stopped", checkStopOrder)
	eventually(t, "logind has no inhibitor of podd", func() error {
		locks, err := system("busctl call" + login + "ListInhibitors")
		if err == nil && strings.Contains(locks, `"podd"`) {
			err = errors.New(locks)
		}
		return err
	})
	// If podd is restarted during the shutdown, it must not start the stopped pods.
	run(t, "systemctl restart podd")
	eventually(t, "podd shows the pods as terminated", func() error {
		out, err := system("/payload/podd ps")
		if err == nil && strings.Count(out, "Terminated") != 2 {
			err = errors.New(out)
		}
		return err
	})
	unix.Sync()
}

// TestAfterShutdown checks that the pods run again after the reboot.
func TestAfterShutdown(t *testing.T) {
	if err := checkStopOrder(); err != nil {
		t.Error(err)
	}
	untilReady(t, "usual", "system")
	for _, name := range []string{"usual", "system"} {
		if all, now := starts(t, name); all != 2 || now != 1 {
			t.Errorf("pod %s: got %d starts, %d of them in this boot; want 2 starts, 1 of them in this boot", name, all, now)
		}
	}
	if err := errors.Join(os.Remove(shutdownUnit), os.Remove(ended)); err != nil {
		t.Error(err)
	}
	run(t, "systemctl mask systemd-logind")
	restart(t)
	remove(t, "usual", "system")
	untilClean(t)
}
