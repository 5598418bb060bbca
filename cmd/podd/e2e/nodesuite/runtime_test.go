//go:build e2e

package nodesuite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/runtime/runtimetest/stack"
)

// supervise starts the runtime again whenever it exits, until the end of the test, because some specs
// kill it. On the virtual machine systemd does this, because other specs stop the unit of the runtime.
func supervise(t *testing.T, runtime *stack.Stack) {
	t.Helper()
	if thisHost.isMachine {
		if err := moveToUnit(t, runtime); err != nil {
			t.Fatal(err)
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for runtime.WaitForExit(ctx) == nil {
			if err := runtime.Restart(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("starting the runtime again: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// runtimeUnit is the file of the unit as which systemd runs the runtime.
const runtimeUnit = "/run/systemd/system/containerd.service"

// moveToUnit stops the runtime, and starts it as a unit of systemd with the same command until the end of
// the test.
func moveToUnit(t *testing.T, runtime *stack.Stack) error {
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", runtime.Daemon.PID))
	if err != nil {
		return err
	}
	if err := runtime.Stop(t.Context()); err != nil {
		return err
	}
	text := "[Service]\nType=notify\nDelegate=yes\nKillMode=process\nRestart=always\nRestartSec=1\nOOMScoreAdjust=-999\n" +
		"Environment=PATH=" + filepath.Dir(runtime.Tools.Containerd) + ":/usr/sbin:/usr/bin:/sbin:/bin\n" +
		"ExecStart=" + strings.ReplaceAll(strings.TrimRight(string(command), "\x00"), "\x00", " ") + "\n"
	t.Cleanup(func() {
		if err := system("systemctl stop containerd"); err != nil {
			t.Error(err)
		}
	})
	return errors.Join(os.WriteFile(runtimeUnit, []byte(text), 0o644), system("systemctl daemon-reload"), system("systemctl start containerd"))
}
