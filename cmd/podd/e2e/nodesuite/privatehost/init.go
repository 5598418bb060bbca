package privatehost

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/loopdisk"
)

// dirEnv is the environment variable with the directory of Run.
const dirEnv = "PODD_PRIVATE_HOST_DIR"

// Main runs init if this process is process 1 of the namespaces. In that case Main does not return.
// TestMain must call it first.
func Main() {
	if os.Getenv(stageEnv) != initStage {
		return
	}
	code, err := 1, setUp(os.Getenv(dirEnv))
	if err == nil {
		code, err = runAndReap()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "private host:", err)
	}
	os.Exit(code)
}

// runAndReap runs the program and returns its exit code. Until the program exits, it also reaps the
// orphans in the namespace.
func runAndReap() (int, error) {
	if err := os.Setenv(stageEnv, programStage); err != nil {
		return 1, err
	}
	program, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 1, err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("waiting for the program: %w", err)
		case pid == program.Pid && status.Signaled():
			return 1, fmt.Errorf("the program was killed by signal %v", status.Signal())
		case pid == program.Pid:
			return status.ExitStatus(), nil
		}
	}
}

// setUp sets up the namespaces. dir becomes Root.
func setUp(dir string) error {
	cgroups, err := cgroupMounts()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := errors.Join(mountKernel(cgroups), mountFiles(dir)); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil { // for volumes with mount propagation
		return fmt.Errorf("making mounts shared: %w", err)
	}
	if err := leaveRootCgroup(); err != nil {
		return err
	}
	return errors.Join(unix.Sethostname([]byte("node")), Connect())
}

// mountKernel mounts the file systems of the kernel, which show the namespaces of the process that
// mounts them.
func mountKernel(cgroups []*mountinfo.Info) error {
	if err := mount("proc", "/proc", "proc", ""); err != nil {
		return err
	}
	if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting /sys: %w", err)
	}
	if err := mount("sysfs", "/sys", "sysfs", ""); err != nil {
		return err
	}
	const parent = "/sys/fs/cgroup"
	if cgroups[0].Mountpoint != parent { // hierarchies of version 1
		if err := mount("tmpfs", parent, "tmpfs", "mode=0755"); err != nil {
			return err
		}
	}
	for _, m := range cgroups {
		if err := os.MkdirAll(m.Mountpoint, 0o755); err != nil {
			return err
		}
		if err := mount(m.FSType, m.Mountpoint, m.FSType, cgroupOptions(m)); err != nil {
			return err
		}
	}
	return nil
}

// cgroupOptions returns the options with which the hierarchy of m can be mounted again.
func cgroupOptions(m *mountinfo.Info) string {
	var options []string
	if m.FSType == "cgroup2" {
		return ""
	}
	for option := range strings.SplitSeq(m.VFSOptions, ",") {
		if strings.HasPrefix(option, "name=") {
			options = append(options, "none", option)
		} else if option != "rw" && option != "ro" {
			options = append(options, option)
		}
	}
	return strings.Join(options, ",")
}

// mountFiles mounts dir at Root, and covers the directories that the programs in the namespaces
// change.
func mountFiles(dir string) error {
	if err := bind(dir, Root); err != nil {
		return err
	}
	changes := filepath.Join(Root, "changes")
	if err := os.Mkdir(changes, 0o755); err != nil {
		return err
	}
	if err := errors.Join(mount("tmpfs", "/run", "tmpfs", "mode=0755"), mount("tmpfs", changes, "tmpfs", "mode=0755")); err != nil {
		return err
	}
	for _, covered := range []string{"/etc", "/usr", "/var"} {
		if err := mountOverlay(covered, filepath.Join(changes, covered)); err != nil {
			return err
		}
	}
	if err := mountDisk(); err != nil {
		return err
	}
	for _, path := range []string{"/var/lib/kubelet", "/var/log/pods", "/tmp"} {
		emptyDir := filepath.Join(Disk, path)
		if err := errors.Join(os.MkdirAll(emptyDir, 0o755), os.MkdirAll(path, 0o755)); err != nil {
			return err
		}
		if err := bind(emptyDir, path); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod("/tmp", 0o777|os.ModeSticky), os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n"+address+" node\n"), 0o644))
}

// diskSize is the size of the disk. Blocks use space on the real host only after they have been
// written.
const diskSize = 20 << 30

// mountDisk creates the disk, as a file, and mounts it at Disk.
func mountDisk() error {
	image := filepath.Join(Root, "disk.img")
	if err := os.Mkdir(Disk, 0o755); err != nil {
		return err
	}
	// The file system has no journal and no initialized tables, because the disk need not survive a crash.
	if err := loopdisk.Create(image, diskSize, "-m", "0", "-O", "^has_journal"); err != nil {
		return err
	}
	return loopdisk.Mount(image, Disk, "noinit_itable")
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", from, to, err)
	}
	return nil
}

func mount(source, target, fstype, options string) error {
	if err := unix.Mount(source, target, fstype, 0, options); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", fstype, target, err)
	}
	return nil
}

// mountOverlay mounts an overlay file system on the directory lower. Its upper and work directories are
// in changes.
func mountOverlay(lower, changes string) error {
	upper, work := filepath.Join(changes, "upper"), filepath.Join(changes, "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	return mount("overlay", lower, "overlay", "lowerdir="+lower+",upperdir="+upper+",workdir="+work)
}

// address is the address of the private host, in a network for tests (RFC 2544).
const address = "198.18.0.1"

// Connect adds a network device with an address and a default route.
func Connect() error {
	for _, words := range []string{
		"link set lo up", "link add uplink type veth peer name wire", "link set uplink up", "link set wire up",
		"addr add " + address + "/24 dev uplink", "route add default dev uplink",
	} {
		if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", words, err, out)
		}
	}
	return nil
}
