//go:build e2e

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/server"
)

// TestFaultNoFileDescriptors takes all file descriptors from podd while a container is
// killed and a manifest is added. It makes up for both when it has some again.
func TestFaultNoFileDescriptors(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("steady", shell("main", serve("steady"))), d.pod("dies", shell("main", serve("dies"))))
	d.untilApplied("steady")
	d.untilApplied("dies")
	steady, dies := d.runs("steady", "main"), d.runs("dies", "main")

	var before unix.Rlimit
	if err := unix.Prlimit(d.proc.pid(), unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(d.proc.pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(dies.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.apply(d.pod("late", shell("main", serve("late"))))
	without := time.NewTimer(5 * time.Second)
	<-without.C
	if err := unix.Prlimit(d.proc.pid(), unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	d.untilPod("runs again", "dies", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("%d restarts, ready %v", n, p.Ready)
		}
		return nil
	})
	d.untilApplied("late")
	if now := d.runs("steady", "main"); now != steady {
		t.Errorf("it is now %+v, was %+v", now, steady)
	}
}
