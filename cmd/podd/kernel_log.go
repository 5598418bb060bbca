package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/durable"
	"podd/reconcile/event"
)

// kernelLog reads what the kernel has said since the last time. A nil one has
// nothing.
type kernelLog struct{ fd int }

// openKernelLog begins at the end of a log like /dev/kmsg; nil where it cannot be
// read.
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

// mostRecords bounds what is read at a time of a kernel that does not stop talking,
// and mostOOMs what is told of it.
const mostRecords, mostOOMs = 4096, 10

// lines are the records, which the kernel hands out one at a time.
func (k *kernelLog) lines() (all []string) {
	buffer := make([]byte, 8<<10) // the longest record
	for range mostRecords {
		n, err := syscall.Read(k.fd, buffer)
		switch {
		case err == syscall.EPIPE: // some were overwritten before they were read
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

// ooms are the events of processes that were ended because the machine, and not a
// control group, had no memory left.
func (k *kernelLog) ooms(at time.Time) (all []event.Event) {
	if k == nil {
		return nil
	}
	for _, line := range k.lines() {
		if message := systemOOM(line); message != "" && len(all) < mostOOMs {
			all = append(all, event.Node(v1.EventTypeWarning, "SystemOOM", message, at))
		}
	}
	return all
}

// victim is of a record such as "4,1234,5678,-;oom-kill:constraint=CONSTRAINT_NONE,
// nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/,task=x,pid=9,uid=0".
// A process gives itself its name, and what is not of the kernel has a larger number
// in front.
var victim = regexp.MustCompile(`^[0-7],[^;]*;oom-kill:.*,global_oom,task_memcg=.*,task=(.*),pid=(\d+),uid=\d+`)

func systemOOM(record string) string {
	m := victim.FindStringSubmatch(record)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("System OOM encountered, victim process: %s, pid: %s", m[1], m[2])
}

// rebooted says that the machine was started anew since podd last ran, by the id
// that a kernel gives to each time, and remembers the one of now in a file.
func rebooted(path, now string) (bool, error) {
	if now == "" {
		return false, nil
	}
	before, err := os.ReadFile(path)
	if err == nil && string(before) == now {
		return false, nil
	}
	if werr := durable.Write(path, []byte(now)); werr != nil {
		return false, fmt.Errorf("remembering the machine's boot id: %w", werr)
	}
	return err == nil && len(before) > 0, nil
}
