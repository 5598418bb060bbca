package runtime

import (
	"testing"
	"time"
)

func TestCutShort(t *testing.T) {
	cancelled := "failed to create containerd task: failed to create shim task: context canceled"
	for name, test := range map[string]struct {
		c    Container
		want bool
	}{
		"killed during its start": {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: cancelled}, true},
		"killed on 1.6":           {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: "failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown"}, true},
		"half created on 1.6":     {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to create new parent process: namespace path: lstat /proc/0/ns/ipc: no such file or directory: unknown"}, true},
		"no such command":         {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: "exec: \"nope\": executable file not found in $PATH"}, false},
		"ran":                     {Container{State: Exited, ExitCode: 1, StartedAt: time.Unix(1, 0), Message: "context canceled"}, false},
		"not started yet":         {Container{State: Created, Message: cancelled}, false},
	} {
		if got := test.c.CutShort(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
