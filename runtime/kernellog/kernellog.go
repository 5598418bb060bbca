// Package kernellog reads the OOM kills in the log of the kernel.
package kernellog

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podd/manifest/lazyregexp"
)

// Path is the path of the kernel's log.
const Path = "/dev/kmsg"

// An OOMKill is a process that the kernel has killed because memory was exhausted.
type OOMKill struct {
	// Time is computed from the kernel's clock, which does not run while the host is suspended. So the
	// time of a kill before a suspension is too late.
	Time time.Time
	// Constraint is the kernel's name for the cause, such as CONSTRAINT_MEMCG.
	Constraint string
	// LimitedCgroup is the path of the cgroup that has reached its limit; "" if the node was out of
	// memory.
	LimitedCgroup string
	// VictimCgroup is the path of the cgroup of the process.
	VictimCgroup string
	// ProcessName is untrusted, because processes set their names themselves. It is ASCII.
	ProcessName string
	PID         int
}

// A Log reads the records that the kernel has logged since the last read. A nil Log contains no
// records. Only one goroutine may use a Log.
type Log struct {
	fd   int
	boot time.Time // the time at which the kernel's clock started
}

// Open opens a log such as Path at its end. It returns nil if the log cannot be read.
func Open(path string) *Log {
	l, err := open(path)
	if err != nil {
		return nil
	}
	_, _ = syscall.Seek(l.fd, 0, 2)
	return l
}

func open(path string) (*Log, error) {
	var uptime unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &uptime); err != nil {
		return nil, os.NewSyscallError("clock_gettime", err)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Log{fd, time.Now().Add(-time.Duration(uptime.Nano()))}, nil
}

// Close closes the log.
func (l *Log) Close() {
	if l != nil {
		_ = syscall.Close(l.fd)
	}
}

// maxNewRecords and maxRecords limit the number of records that NewOOMKills and AllOOMKills read,
// because the kernel may write faster than podd reads.
const maxNewRecords, maxRecords = 4096, 1 << 18

// NewOOMKills returns the OOM kills since the last call.
func (l *Log) NewOOMKills() []OOMKill {
	if l == nil {
		return nil
	}
	return l.read(maxNewRecords)
}

// AllOOMKills returns the OOM kills in the kernel log at path, the oldest first. path is Path, except in
// tests. The kernel overwrites old records. The log also contains records from before the start of podd.
func AllOOMKills(path string) ([]OOMKill, error) {
	l, err := open(path)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.read(maxRecords), nil
}

func (l *Log) read(maxRecords int) (kills []OOMKill) {
	buffer := make([]byte, 8<<10) // size of the longest record
	for range maxRecords {
		n, err := syscall.Read(l.fd, buffer)
		switch {
		case err == syscall.EPIPE: // records were overwritten before they were read
			continue
		case err != nil || n <= 0:
			return kills
		}
		if k, ok := l.parse(string(buffer[:n])); ok {
			kills = append(kills, k)
		}
	}
	return kills
}

// oomRecord matches a record such as "4,1234,5678,-;oom-kill:constraint=CONSTRAINT_NONE,
// nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/,task=x,pid=9,uid=0". Instead of
// "global_oom", the record of a cgroup at its limit contains "oom_memcg=/path". Only records of the
// kernel have a priority of one digit. The kernel replaces control characters in names.
var oomRecord = lazyregexp.New(`^[0-7],\d+,(\d+),[^;]*;oom-kill:constraint=(\w+),.*,(?:global_oom|oom_memcg=(.*?)),task_memcg=(.*?),task=(.*),pid=(\d+),uid=\d+`)

// parse returns the OOM kill that a record reports. ok is false if the record reports none.
func (l *Log) parse(record string) (k OOMKill, ok bool) {
	if !strings.Contains(record, "oom-kill:") {
		return k, false
	}
	m := oomRecord().FindStringSubmatch(strings.ReplaceAll(record, `\x5c`, `\`)) // the kernel escapes the backslashes in names of cgroups
	if m == nil {
		return k, false
	}
	microseconds, err := strconv.ParseInt(m[1], 10, 64)
	pid, pidErr := strconv.Atoi(m[6])
	if err != nil || pidErr != nil {
		return k, false
	}
	killedAt := l.boot.Add(time.Duration(microseconds) * time.Microsecond)
	return OOMKill{Time: killedAt, Constraint: m[2], LimitedCgroup: m[3], VictimCgroup: m[4], ProcessName: m[5], PID: pid}, true
}
