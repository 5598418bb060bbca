package nodestatus

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
)

// A kernelLog reads the records that the kernel has logged since the last read. A nil
// kernelLog contains no records.
type kernelLog struct{ fd int }

// openKernelLog opens a log such as /dev/kmsg at its end. It returns nil if the log
// cannot be read.
func openKernelLog(path string) *kernelLog {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	_, _ = syscall.Seek(fd, 0, 2)
	return &kernelLog{fd}
}

func (k *kernelLog) close() {
	if k != nil {
		_ = syscall.Close(k.fd)
	}
}

// maxKernelRecords limits the records that oomRecords reads, because the kernel may write faster
// than podd reads. maxOOMEvents limits the events that oomEvents returns.
const maxKernelRecords, maxOOMEvents = 4096, 10

// oomRecords reads the new records and returns the records of the OOM killer.
func (k *kernelLog) oomRecords() (all []string) {
	buffer := make([]byte, 8<<10) // size of the longest record
	for range maxKernelRecords {
		n, err := syscall.Read(k.fd, buffer)
		switch {
		case err == syscall.EPIPE: // records were overwritten before they were read
			continue
		case err != nil || n <= 0:
			return all
		}
		if text := string(buffer[:n]); strings.Contains(text, "oom-kill:") {
			all = append(all, text)
		}
	}
	return all
}

// oomEvents returns an event for each process that was killed because the node was out of
// memory. Processes that were killed because of the limit of a cgroup are omitted.
func (k *kernelLog) oomEvents(at time.Time) (all []event.Event) {
	if k == nil {
		return nil
	}
	for _, line := range k.oomRecords() {
		if message := oomMessage(line); message != "" && len(all) < maxOOMEvents {
			all = append(all, event.NewNodeEvent(v1.EventTypeWarning, "SystemOOM", message, at))
		}
	}
	return all
}

// oomVictim matches a record such as "4,1234,5678,-;oom-kill:constraint=CONSTRAINT_NONE,
// nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/,task=x,pid=9,uid=0".
// The name of the task is untrusted: processes set it themselves. Only records of the
// kernel have a priority of one digit.
var oomVictim = regexp.MustCompile(`^[0-7],[^;]*;oom-kill:.*,global_oom,task_memcg=.*,task=(.*),pid=(\d+),uid=\d+`)

// oomMessage returns the message of the event for a record, or "" if the record does not report a
// global OOM kill.
func oomMessage(record string) string {
	m := oomVictim.FindStringSubmatch(record)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("System OOM encountered, victim process: %s, pid: %s", m[1], m[2])
}
