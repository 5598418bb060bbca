package stats

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Processes returns the processes in a cgroup, but not those in its children, sorted by PID. For the
// root cgroup "/", it returns all processes of the host, with the path of their cgroup. name must be the
// name of a cgroup in a Sample. Processes that exit at the same time may be omitted.
//
// The fields have the format of ps. The status is the first letter of the status in ps. Cmd is the name
// of the process; arguments are omitted, because they may contain secrets. A process sets its name
// itself.
func (s *Sampler) Processes(ctx context.Context, name string) ([]model.ProcessInfo, error) {
	m, err := s.MachineInfo(ctx)
	if err != nil {
		return nil, err
	}
	pids, err := listPIDs(m, name)
	if err != nil {
		return nil, fmt.Errorf("listing the processes of cgroup %s: %w", name, err)
	}
	r, err := newProcessReader(m.MemoryCapacity)
	if err != nil {
		return nil, err
	}
	processes := []model.ProcessInfo{}
	for _, pid := range pids {
		if ctx.Err() != nil {
			return nil, ctx.Err() // because there may be thousands of processes
		}
		p, err := r.read(pid)
		if err != nil {
			continue // the process has exited
		}
		if name == "/" {
			p.CgroupPath = toValidUTF8(readCgroupPath(strconv.Itoa(pid)))
		}
		processes = append(processes, p)
	}
	return processes, nil
}

// listPIDs returns the PIDs of the processes in a cgroup, or of all processes for the root cgroup.
func listPIDs(m *model.MachineInfo, name string) (pids []int, err error) {
	if name == "/" {
		processes, err := procfs.AllProcs()
		for _, p := range processes {
			pids = append(pids, p.PID)
		}
		slices.Sort(pids)
		return pids, err
	}
	h, err := newHierarchy(machineInfo{m}, basicMetrics)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(h.childrenDir(name), "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 { // 0 is a process in a PID namespace that is not visible
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil // the kernel may list a process twice
}

// A processReader reads the processes for one call of Processes.
type processReader struct {
	now            time.Time
	uptime         time.Duration // time since the host was booted, with the time during which it was suspended
	memoryCapacity uint64        // in bytes
	users          map[uint32]string
}

func newProcessReader(memoryCapacity uint64) (*processReader, error) {
	var uptime unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &uptime); err != nil {
		return nil, os.NewSyscallError("clock_gettime", err)
	}
	return &processReader{time.Now(), time.Duration(uptime.Nano()), memoryCapacity, map[uint32]string{}}, nil
}

// clockTick is the unit of times in /proc/PID/stat on all platforms of Go.
const clockTick = time.Second / 100

// read returns the process with this PID. It returns an error if the process has exited.
func (r *processReader) read(pid int) (zero model.ProcessInfo, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return zero, err
	}
	s, err := p.Stat()
	if err != nil {
		return zero, err
	}
	owner, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return zero, err
	}
	files, err := p.FileDescriptorsLen()
	if err != nil {
		return zero, err
	}
	cpuTime := time.Duration(s.UTime+s.STime) * clockTick
	age := r.uptime - time.Duration(s.Starttime)*clockTick
	return model.ProcessInfo{
		User: r.userName(owner.Sys().(*syscall.Stat_t).Uid), Pid: pid, Ppid: s.PPID,
		StartTime: startTime(r.now.Add(-age), r.now), RunningTime: runningTime(cpuTime), Status: s.State,
		PercentCpu: percent(float64(cpuTime), float64(age)), PercentMemory: percent(float64(s.ResidentMemory()), float64(r.memoryCapacity)),
		RSS: uint64(s.ResidentMemory()), VirtualSize: uint64(s.VirtualMemory()),
		Cmd: toValidUTF8(s.Comm), FdCount: files, Psr: int(s.Processor),
	}, nil
}

// userName returns the name of a user of the host, or the UID if the host has no such user.
func (r *processReader) userName(uid uint32) string {
	name, ok := r.users[uid]
	if !ok {
		name = strconv.FormatUint(uint64(uid), 10)
		if u, err := user.LookupId(name); err == nil {
			name = toValidUTF8(u.Username)
		}
		r.users[uid] = name
	}
	return name
}

// percent returns part as a percentage of total, rounded to one decimal.
func percent(part, total float64) float32 {
	if total <= 0 {
		return 0
	}
	return float32(math.Round(part/total*1000) / 10)
}

// startTime formats a time as in the column STIME of ps: as the time of day for today, as the date
// for this year, and otherwise as the year.
func startTime(at, now time.Time) string {
	switch {
	case at.Year() != now.Year():
		return at.Format("2006")
	case at.YearDay() != now.YearDay():
		return at.Format("Jan02")
	}
	return at.Format("15:04")
}

// runningTime formats a CPU time as [days-]hours:minutes:seconds, as in the column TIME of ps.
func runningTime(cpuTime time.Duration) string {
	seconds := int64(cpuTime / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", seconds/3600%24, seconds/60%60, seconds%60)
	if days := seconds / 86400; days > 0 {
		text = fmt.Sprintf("%02d-%s", days, text)
	}
	return text
}
