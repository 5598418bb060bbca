package daemon

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLimitOpenFiles checks that limitOpenFiles raises the soft limit. If the kernel does not permit the
// requested limit, limitOpenFiles must return an error and set the soft limit to the hard limit.
func TestLimitOpenFiles(t *testing.T) {
	var start unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &start); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: start.Max}); err != nil {
		t.Fatal(err)
	}
	var got unix.Rlimit
	if err := limitOpenFiles(start.Max); err != nil {
		t.Fatal(err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &got); err != nil || got.Cur != start.Max {
		t.Errorf("got soft limit %d, error %v; want %d", got.Cur, err, start.Max)
	}
	err := limitOpenFiles(1 << 62)
	if err == nil || !strings.Contains(err.Error(), "set LimitNOFILE=") {
		t.Errorf("more files than the kernel permits: got error %v, want one that names LimitNOFILE", err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &got); err != nil || got.Cur != start.Max {
		t.Errorf("after the error: got soft limit %d, error %v; want %d", got.Cur, err, start.Max)
	}
}
