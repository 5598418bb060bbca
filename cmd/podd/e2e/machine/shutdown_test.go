//go:build vm

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

// ended is where the pods of a shutdown note that they were told to end.
var ended = filepath.Join(notes, "ended")

// ending is a pod of a class that notes its end, and has time for it.
func ending(name, class string) string {
	more := ""
	if class != "" {
		more = "  priorityClassName: " + class + "\n"
	}
	script := "trap 'echo " + name + " >>/notes/ended; sync; exit 0' TERM; sleep 36000 & wait"
	return strings.Replace(pod(name, more, container(name, script, "")), "Seconds: 2\n", "Seconds: 60\n", 1)
}

// wantEnded is the order that the shutdown is to have.
func wantEnded() error {
	text, err := os.ReadFile(ended)
	if err == nil && string(text) != "usual\nsystem\n" {
		err = fmt.Errorf("they ended in the order %q", text)
	}
	return err
}

const (
	shutdownUnit   = "/etc/systemd/system/podd.service.d/shutdown.conf"
	shutdownConfig = "/etc/podd/shutdown.yaml"
	login          = " org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager "
)

// TestShutdown has logind wait for the pods, for longer than it would by itself, and
// asks it for a reboot, which a lock of the test's own keeps from coming to its end:
// the power is cut instead. TestAfterShutdown sees what came of it.
func TestShutdown(t *testing.T) {
	config := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshutdownGracePeriod: 600s\nshutdownGracePeriodCriticalPods: 300s\n"
	unit := "[Service]\nExecStart=\nExecStart=" + command(t) + " --config=" + shutdownConfig + "\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(shutdownUnit), 0o755),
		os.WriteFile(shutdownConfig, []byte(config), 0o644), os.WriteFile(shutdownUnit, []byte(unit), 0o644)); err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl unmask systemd-logind") // the disk has it masked, for nobody logs in
	run(t, "systemctl start dbus systemd-logind")
	restart(t)
	apply(t, map[string]string{"usual": ending("usual", ""), "system": ending("system", "system-node-critical")})
	untilReady(t, "usual", "system")
	eventually(t, "logind would wait for podd", func() error {
		delay, err := system("busctl get-property" + login + "InhibitDelayMaxUSec")
		locks, lerr := system("busctl call" + login + "ListInhibitors")
		if err = errors.Join(err, lerr); err == nil && (delay != "t 600000000" || !strings.Contains(locks, `"podd"`)) {
			err = fmt.Errorf("%s, %s", delay, locks)
		}
		return err
	})
	// podd's own stop is none of the machine's.
	restart(t)
	untilReady(t, "usual", "system")
	if _, err := os.Stat(ended); err == nil {
		t.Fatal("a restart of podd ends pods")
	}
	eventually(t, "logind would wait for podd again", func() error {
		locks, err := system("busctl call" + login + "ListInhibitors")
		if err == nil && !strings.Contains(locks, `"podd"`) {
			err = errors.New(locks)
		}
		return err
	})
	lock := exec.Command("systemd-inhibit", "--what=shutdown", "--mode=delay", "--who=test", "sleep", "3600")
	if err := lock.Start(); err != nil { // the power cut ends it
		t.Fatal(err)
	}
	eventually(t, "logind would wait for the test", func() error {
		locks, err := system("busctl call" + login + "ListInhibitors")
		if err == nil && !strings.Contains(locks, `"test"`) {
			err = errors.New(locks)
		}
		return err
	})
	run(t, "busctl call"+login+"Reboot b false")
	eventually(t, "the pods have ended", wantEnded)
	eventually(t, "logind waits for the test alone", func() error {
		locks, err := system("busctl call" + login + "ListInhibitors")
		if err == nil && strings.Contains(locks, `"podd"`) {
			err = errors.New(locks)
		}
		return err
	})
	// A podd that comes in between starts none of them.
	run(t, "systemctl restart podd")
	eventually(t, "podd shows it", func() error {
		out, err := system("/payload/podd ps")
		if err == nil && strings.Count(out, "Terminated") != 2 {
			err = errors.New(out)
		}
		return err
	})
	unix.Sync()
}

// TestAfterShutdown: the machine is up again, and so are the pods.
func TestAfterShutdown(t *testing.T) {
	if err := wantEnded(); err != nil {
		t.Error(err)
	}
	untilReady(t, "usual", "system")
	for _, name := range []string{"usual", "system"} {
		if all, now := starts(t, name); all != 2 || now != 1 {
			t.Errorf("%s has started %d times, %d of them in this boot", name, all, now)
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
