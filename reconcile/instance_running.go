package reconcile

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// writeLockFile writes the IDs of i to its lock file, so that RunningInstances of another podd
// can read the IDs. A failed write is ignored, because podd must start even if the disk is full.
func (i *Instance) writeLockFile() {
	text := []byte(strings.Join(i.IDs(), "\n") + "\n")
	oldText := make([]byte, len(text)+1)
	if n, _ := i.lock.ReadAt(oldText, 0); string(oldText[:n]) == string(text) {
		return
	}
	if _, err := i.lock.WriteAt(text, 0); err == nil {
		_ = i.lock.Truncate(int64(len(text)))
	}
}

// RunningInstances returns the ID of each instance that another process runs or has adopted, with the
// PID of the process. Such a process has locked the lock file of its root directory. RunningInstances
// finds the process by this open file, even if the root directory was moved, removed or mounted
// elsewhere.
//
// RunningInstances reads the open files of every process. It does not read /proc/locks, because
// a read of that file can omit a lock. The kernel returns the file in pages, and skips a lock if a
// process releases a different lock between two pages.
func RunningInstances() (pids map[string]int, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids = map[string]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, id := range instancesOf(filepath.Join("/proc", name)) {
			pids[id] = pid
		}
	}
	return pids, nil
}

// FindInstanceProcess returns the PID of another process that runs the instance with the ID id, or
// runs an instance that has adopted id. It returns 0 if there is none.
func FindInstanceProcess(id string) (pid int, err error) {
	pids, err := RunningInstances()
	return pids[id], err
}

// instancesOf returns the IDs of the instances that a process of the same user runs or has adopted:
// the IDs in the lock files that the process has locked. proc is the directory of the process in
// /proc. If the files of the process cannot be read, the process has exited, and there are no IDs.
//
// If a lock file contains no IDs, instancesOf reads the ID file in the same root directory. A lock
// file has no IDs if an older version of podd or a failed write has left it empty. Lock files that
// the process has opened but not locked are ignored, because the process may itself be checking
// which instances run.
func instancesOf(proc string) []string {
	info, err := os.Stat(proc)
	if err != nil {
		return nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil
	}
	dir, err := os.Open(filepath.Join(proc, "fd"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	fds, _ := dir.Readdirnames(-1)
	target := make([]byte, unix.PathMax)
	var all []string
	for _, fd := range fds {
		n, err := unix.Readlinkat(int(dir.Fd()), fd, target)
		if err != nil {
			continue
		}
		path := strings.TrimSuffix(string(target[:n]), " (deleted)")
		if !strings.HasSuffix(path, "/"+lockFileName) || !holdsLock(proc, fd) {
			continue
		}
		var ids []string
		link := filepath.Join(proc, "fd", fd)
		// An empty file is not opened, because it may be the lock file of a kubelet or podd that
		// exits when another process opens the file (--exit-on-lock-contention).
		if info, err := os.Stat(link); err == nil && info.Size() > 0 {
			ids = readIDs(link)
		}
		if len(ids) == 0 {
			ids = readIDs(filepath.Join(proc, "root", filepath.Dir(path), idFileName))
		}
		all = append(all, ids...)
	}
	return all
}

// holdsLock reports whether a process holds a lock (flock) through the file descriptor fd.
func holdsLock(proc, fd string) bool {
	text, err := os.ReadFile(filepath.Join(proc, "fdinfo", fd))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		// Example: lock:	1: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "lock:" && fields[2] == "FLOCK" {
			return true
		}
	}
	return false
}

// readIDs returns the IDs in a lock file or in a file named idFileName. It returns nil if the file
// cannot be read.
func readIDs(path string) []string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxIDFileBytes))
	return strings.Fields(string(text))
}
