package systemd

import (
	"os"
	"testing"

	"podd/runtime/runtimetest/stack/reservation"
)

func TestState(t *testing.T) {
	self, err := reservation.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dead := self
	dead.PID = 1 << 30 // larger than the maximum of the kernel
	for _, tc := range []struct {
		name string
		unit unit
		want string
	}{
		{"the process runs", unit{Process: self}, "running"},
		{"the process was killed and still runs", unit{Process: self, Killed: true}, "running"},
		{"the process was killed and has exited", unit{Process: dead, Killed: true}, "exited"},
		{"the process has exited by itself", unit{Process: dead}, "running"},
	} {
		if got := tc.unit.state(); got != tc.want {
			t.Errorf("state if %s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
