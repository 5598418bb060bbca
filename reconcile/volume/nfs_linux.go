package volume

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"
)

const nfsPlugin = "kubernetes.io~nfs"

// NFSOptions configures how NFS volumes are mounted. Every system call on an NFS volume may hang if
// the server does not respond, even stat and open. So podd reads from the mount table whether a
// volume is mounted. To mount and unmount volumes, podd runs programs, because it can kill a
// program, but cannot interrupt a system call.
type NFSOptions struct {
	// MountPath is the path of mount.nfs; "" means that podd searches programDirs.
	MountPath string
	// UnmountPath is the path of umount; "" means that podd searches programDirs.
	UnmountPath string
	// Timeout is the timeout of these programs; 0 means one minute.
	Timeout time.Duration
}

// programDirs are the directories in which podd searches for mount programs.
var programDirs = []string{"/sbin", "/usr/sbin", "/bin", "/usr/bin"}

func (n NFSOptions) timeout() time.Duration { return cmp.Or(n.Timeout, time.Minute) }

// findProgram returns path if it is not "". Otherwise it returns the path of the program with this
// name in programDirs. If the program does not exist, the error contains remedy.
func findProgram(path, name, remedy string) (string, error) {
	if path != "" {
		return path, nil
	}
	for _, dir := range programDirs {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("the host has no program %s; %s", name, remedy)
}

// mountProgram returns the path of mount.nfs. podd runs mount.nfs instead of mount(8), because
// mount(8) has options that change the mount point.
func (n NFSOptions) mountProgram() (string, error) {
	return findProgram(n.MountPath, "mount.nfs", "install the package nfs-common (Debian, Ubuntu) or nfs-utils")
}

// nfsType implements volumeType for volumes of type nfs.
type nfsType struct{}

func (nfsType) matches(v *v1.Volume) bool { return v.NFS != nil }

func (nfsType) check(p *podDir, v *v1.Volume) (string, error) { return newExport(v.NFS).check(p) }

func (nfsType) prepare(ctx context.Context, p *podDir, v *v1.Volume) (string, error) {
	return newExport(v.NFS).mount(ctx, p, v.Name)
}

// An export is a directory that an NFS server exports, with mount options.
type export struct {
	server, path string
	options      []string
}

func newExport(s *v1.NFSVolumeSource) export {
	e := export{server: s.Server, path: s.Path}
	if s.ReadOnly {
		e.options = []string{"ro"}
	}
	return e
}

// newExportOfPV returns the export of an NFS PersistentVolume. If readOnly is true, the export is
// mounted read-only.
func newExportOfPV(pv *v1.PersistentVolume, readOnly bool) export {
	e := newExport(pv.Spec.NFS)
	if readOnly {
		e.options = []string{"ro"}
	}
	e.options = append(slices.Clone(pv.Spec.MountOptions), e.options...)
	return e
}

// String returns the export in the format of mount(8).
func (e export) String() string {
	server := e.server
	if a, err := netip.ParseAddr(server); err == nil && a.Is6() {
		server = "[" + server + "]"
	}
	return server + ":" + e.path
}

func (e export) check(p *podDir) (string, error) {
	_, err := p.root.NFS.mountProgram()
	return e.String(), err
}

// mount mounts an export for the volume with this name, unless it is already mounted, and returns
// the path of the mount. mount does not access the mounted file system.
func (e export) mount(ctx context.Context, p *podDir, name string) (string, error) {
	path := filepath.Join(p.path, volumesDir, nfsPlugin, name)
	if isMounted, err := p.isNFSMounted(name); isMounted || err != nil {
		return path, err
	}
	mounter, err := p.root.NFS.mountProgram()
	if err != nil {
		return e.String(), err
	}
	dir, err := p.openPluginDir(nfsPlugin, dirMode)
	if err != nil {
		return path, err
	}
	defer dir.Close()
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // the mount hides the mount point and its mode
		return path, err
	}
	limit := p.root.NFS.timeout()
	output, err := runProgram(ctx, limit, nil, mounter, e.String(), path, "-o", strings.Join(e.mountOptions(), ","))
	switch {
	case errors.Is(err, errTimeout):
		return e.String(), fmt.Errorf("the server did not respond within %s; check that it runs and that this node can reach it (rpcinfo, showmount -e)", limit)
	case err != nil:
		return e.String(), mountError(mounter, output, err)
	}
	isMounted, err := p.isNFSMounted(name)
	if err == nil && !isMounted {
		err = fmt.Errorf("%s reported success, but the mount table has no mount at %s", mounter, path)
	}
	if err != nil {
		return e.String(), err
	}
	return path, nil
}

// mountOptions returns the mount options for mount.nfs. If the user does not set the option retry,
// mountOptions adds retry=0, because podd retries with its own back-off.
func (e export) mountOptions() []string {
	isRetry := func(option string) bool {
		return strings.HasPrefix(option, "retry=") || strings.Contains(option, ",retry=")
	}
	if slices.ContainsFunc(e.options, isRetry) {
		return e.options
	}
	return append(slices.Clone(e.options), "retry=0")
}

// isNFSMounted reports whether an NFS file system is mounted at the volume with this name,
// according to the mount table. It returns an error if another file system is mounted there.
func (p *podDir) isNFSMounted(name string) (bool, error) {
	rel := filepath.Join(string(p.pod.UID), volumesDir, nfsPlugin, name)
	mounts, err := p.root.mountsBelow(rel)
	if err != nil {
		return false, fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range mounts {
		if m.Rel != rel {
			continue
		}
		if !m.IsNFS() { // the first entry is the topmost mount
			return false, fmt.Errorf("%s is mounted at the directory of this NFS volume; unmount %s", m.Description, m.Path)
		}
		return true, nil
	}
	return false, nil
}

// mountError converts err, the error of running mount.nfs, to an error with the program's output.
// mounter is the path of mount.nfs.
func mountError(mounter, output string, err error) error {
	if _, isExitError := errors.AsType[*exec.ExitError](err); !isExitError {
		return fmt.Errorf("running %s: %w", mounter, err)
	}
	output = cmp.Or(oneLine(output), err.Error())
	kernel, err := os.ReadFile("/proc/filesystems")
	if err == nil && !bytes.Contains(kernel, []byte("\tnfs")) && (strings.Contains(output, "No such device") || strings.Contains(output, "not supported")) {
		output += "; the kernel of the host does not support NFS: load the module nfs (modprobe nfs), or boot a kernel with NFS"
	}
	return errors.New(output)
}

// maxOutput is the maximum length of a program's output in messages, in bytes.
const maxOutput = 300

// oneLine returns the output of a program as one line, without the prefix "mount.nfs: ".
func oneLine(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, line)
		line = strings.TrimPrefix(strings.TrimSpace(line), "mount.nfs: ")
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "; ")
	return text[:min(len(text), maxOutput)]
}
