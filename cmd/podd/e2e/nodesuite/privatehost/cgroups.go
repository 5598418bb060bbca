package privatehost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// cgroupMounts returns the mounts of the cgroup hierarchies.
func cgroupMounts() ([]*mountinfo.Info, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err == nil && len(mounts) == 0 {
		err = errors.New("no cgroup hierarchy is mounted")
	}
	return mounts, err
}

// enterCgroups creates the cgroup with the given name in each hierarchy and moves this process to it.
// The returned function moves the process back.
func enterCgroups(name string) (leave func() error, err error) {
	mounts, err := cgroupMounts()
	if err != nil {
		return nil, err
	}
	previous, err := currentCgroups(mounts)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		dir := filepath.Join(m.Mountpoint, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		if err := copyCpuset(m.Mountpoint, dir); err != nil {
			return nil, err
		}
		if err := moveTo(dir); err != nil {
			return nil, err
		}
	}
	return func() (err error) {
		for _, dir := range previous {
			err = errors.Join(err, moveTo(dir))
		}
		return err
	}, nil
}

// copyCpuset copies the CPUs and memory nodes of a cgroup to a child, because in cgroup v1 a process
// cannot be moved to a cgroup without CPUs and memory nodes.
func copyCpuset(parent, child string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) { // another controller, or cgroup v2
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(child, name), value, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func moveTo(cgroup string) error {
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("moving this process to the cgroup %s: %w", cgroup, err)
	}
	return nil
}

// currentCgroups returns the directories of the cgroups of this process.
func currentCgroups(mounts []*mountinfo.Info) ([]string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			return nil, fmt.Errorf("reading /proc/self/cgroup: unexpected line %q", line)
		}
		for _, m := range mounts {
			if isHierarchy(m, fields[1]) {
				dirs = append(dirs, filepath.Join(m.Mountpoint, fields[2]))
			}
		}
	}
	return dirs, nil
}

// isHierarchy reports whether a mount shows the hierarchy with the given controllers, which are
// separated by commas. For the hierarchy of cgroup v2, controllers is empty.
func isHierarchy(m *mountinfo.Info, controllers string) bool {
	if controllers == "" {
		return m.FSType == "cgroup2"
	}
	return m.FSType == "cgroup" && strings.HasSuffix(","+m.VFSOptions, ","+controllers)
}

// leaveRootCgroup moves this process, the only one in the namespaces, to the cgroup init, and enables
// all controllers for other children of the root. Cgroup v2 permits these children only if the root
// contains no processes. If cgroup v2 is not mounted at /sys/fs/cgroup, leaveRootCgroup does nothing.
func leaveRootCgroup() error {
	const root = "/sys/fs/cgroup"
	text, err := os.ReadFile(root + "/cgroup.controllers")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(root+"/init", 0o755); err != nil {
		return err
	}
	if err := moveTo(root + "/init"); err != nil {
		return err
	}
	enable := []byte("+" + strings.Join(strings.Fields(string(text)), " +"))
	for startTime := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := os.WriteFile(root+"/cgroup.subtree_control", enable, 0)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Since(startTime) > busyTimeout { // busy until the process that called Run has moved back
			return fmt.Errorf("enabling cgroup controllers: %w", err)
		}
	}
}

// busyTimeout is the maximum time until all processes have left a cgroup.
const busyTimeout = time.Minute

// removeCgroups removes the cgroup with the given name in each hierarchy and all cgroups below it. They
// must contain no processes.
func removeCgroups(name string) error {
	mounts, err := cgroupMounts()
	for _, m := range mounts {
		for startTime := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			removeErr := removeCgroup(filepath.Join(m.Mountpoint, name))
			if removeErr == nil {
				break
			}
			if time.Since(startTime) > busyTimeout {
				err = errors.Join(err, removeErr)
				break
			}
		}
	}
	return err
}

// removeCgroup removes a cgroup and its descendants.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, e.Name())))
		}
	}
	if rmdirErr := unix.Rmdir(dir); rmdirErr != nil && !errors.Is(rmdirErr, fs.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("removing cgroup %s: %w", dir, rmdirErr))
	}
	return err
}
