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

// TestFaultNoFileDescriptors sets podd's limit of open files so low that podd cannot open any. While the
// limit is low, a container is killed and a manifest is added. When the limit is restored, podd must
// restart the container and start the pod.
func TestFaultNoFileDescriptors(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("steady", shell("main", serve("steady"))), d.pod("dies", shell("main", serve("dies"))))
	d.untilApplied("steady")
	d.untilApplied("dies")
	steady, dies := d.container("steady", "main"), d.container("dies", "main")

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
			return fmt.Errorf("got restarts %d, ready %t; want restarts 1, ready true", n, p.Ready)
		}
		return nil
	})
	d.untilApplied("late")
	if now := d.container("steady", "main"); now != steady {
		t.Errorf("container of pod steady: got %+v, want %+v", now, steady)
	}
}
