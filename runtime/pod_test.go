package runtime

import (
	"testing"
	"time"
)

func TestStartInterrupted(t *testing.T) {
	cancelled := "failed to create containerd task: failed to create shim task: context canceled"
	for name, test := range map[string]struct {
		container Container
		want      bool
	}{
		"client killed during the start":                                    {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: cancelled}, true},
		"client of containerd 1.6 killed":                                   {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: "failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown"}, true},
		"client of containerd 1.6 killed before the sandbox process exists": {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to create new parent process: namespace path: lstat /proc/0/ns/ipc: no such file or directory: unknown"}, true},
		"program does not exist":                                            {Container{State: Exited, ExitCode: 128, Reason: "StartError", Message: "exec: \"nope\": executable file not found in $PATH"}, false},
		"program ran and failed":                                            {Container{State: Exited, ExitCode: 1, StartedAt: time.Unix(1, 0), Message: "context canceled"}, false},
		"not started yet":                                                   {Container{State: Created, Message: cancelled}, false},
	} {
		if got := test.container.WasStartInterrupted(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
