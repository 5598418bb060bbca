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

// NFS configures how network file systems are mounted. Every system call on one may hang if
// its server does not respond, including stat and open. So podd reads their state from the
// mount table, and runs programs, which it can kill, to mount and unmount them.
type NFS struct {
	// Mount is the path of mount.nfs; "" means the path of distributions.
	Mount string
	// Unmount is the path of umount; "" means the path of distributions.
	Unmount string
	// Patience is the timeout of these programs; 0 means one minute.
	Patience time.Duration
}

// programDirs are the directories in which mount programs are searched.
var programDirs = []string{"/sbin", "/usr/sbin", "/bin", "/usr/bin"}

func (n NFS) timeout() time.Duration { return cmp.Or(n.Patience, time.Minute) }

func program(path, name, advice string) (string, error) {
	if path != "" {
		return path, nil
	}
	for _, dir := range programDirs {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("this machine has no %s; %s", name, advice)
}

// mounter returns the path of mount.nfs. It is called directly because mount(8) has options
// that change the mount point.
func (n NFS) mounter() (string, error) {
	return program(n.Mount, "mount.nfs", "install the package nfs-common (Debian, Ubuntu) or nfs-utils")
}

// nfs is an NFS volume.
type nfs struct{}

func (nfs) source() string { return "nfs" }

func (nfs) serves(v *v1.Volume) bool { return v.NFS != nil }

func (nfs) check(p *place, v *v1.Volume) (string, error) { return nfsExport(v.NFS).check(p) }

func (nfs) prepare(ctx context.Context, p *place, v *v1.Volume) (string, error) {
	return nfsExport(v.NFS).mount(ctx, p, v.Name)
}

// An export is an export of a server with the mount options.
type export struct {
	server, path string
	options      []string
}

func nfsExport(s *v1.NFSVolumeSource) export {
	e := export{server: s.Server, path: s.Path}
	if s.ReadOnly {
		e.options = []string{"ro"}
	}
	return e
}

// pvExport returns the export of a PersistentVolume. readOnly reports whether the pod may
// only read.
func pvExport(pv *v1.PersistentVolume, readOnly bool) export {
	e := nfsExport(pv.Spec.NFS)
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

func (e export) check(p *place) (string, error) {
	_, err := p.all.NFS.mounter()
	return e.String(), err
}

// mount mounts an export in the pod's directory unless it is mounted. It does not access
// the mounted file system.
func (e export) mount(ctx context.Context, p *place, name string) (string, error) {
	path := filepath.Join(p.path, volumesDir, nfsPlugin, name)
	if is, err := p.isRemote(name); is || err != nil {
		return path, err
	}
	mounter, err := p.all.NFS.mounter()
	if err != nil {
		return e.String(), err
	}
	dir, err := p.openPlugin(nfsPlugin, dirMode)
	if err != nil {
		return path, err
	}
	defer dir.Close()
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // visible only without the mount
		return path, err
	}
	limit := p.all.NFS.timeout()
	output, err := runProgram(ctx, limit, nil, mounter, e.String(), path, "-o", strings.Join(e.args(), ","))
	switch {
	case errors.Is(err, errSilent):
		return e.String(), fmt.Errorf("the server did not answer within %s; see that it runs and can be reached from here (rpcinfo, showmount -e)", limit)
	case err != nil:
		return e.String(), fault(mounter, output, err)
	}
	is, err := p.isRemote(name)
	if err == nil && !is {
		err = fmt.Errorf("%s reported success, but the mount table has no mount at %s", mounter, path)
	}
	if err != nil {
		return e.String(), err
	}
	return path, nil
}

// args returns the options for mount.nfs. Unless the user sets retry, mount.nfs tries only
// once, because podd retries with its own back-off.
func (e export) args() []string {
	own := func(option string) bool {
		return strings.HasPrefix(option, "retry=") || strings.Contains(option, ",retry=")
	}
	if slices.ContainsFunc(e.options, own) {
		return e.options
	}
	return append(slices.Clone(e.options), "retry=0")
}

// isRemote reports whether an NFS volume is mounted, according to the mount table.
func (p *place) isRemote(name string) (bool, error) {
	at := filepath.Join(string(p.pod.UID), volumesDir, nfsPlugin, name)
	mounts, err := p.all.mountsBelow(at)
	if err != nil {
		return false, fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range mounts {
		if m.Rel != at {
			continue
		}
		if !m.IsNFS() { // the first is on top
			return false, fmt.Errorf("%s is mounted where a volume of nfs belongs; umount %s", m.Text, m.Path)
		}
		return true, nil
	}
	return false, nil
}

// fault returns the error for a failed mount.nfs from its output.
func fault(mounter, output string, err error) error {
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return fmt.Errorf("running %s: %w", mounter, err)
	}
	output = cmp.Or(oneLine(output), err.Error())
	kernel, err := os.ReadFile("/proc/filesystems")
	if err == nil && !bytes.Contains(kernel, []byte("\tnfs")) && (strings.Contains(output, "No such device") || strings.Contains(output, "not supported")) {
		output += "; this machine's kernel has no NFS: load its module nfs (modprobe nfs), or boot a kernel that has it"
	}
	return errors.New(output)
}

// maxOutput is the maximum length of a program's output in messages, in bytes.
const maxOutput = 300

// oneLine returns the output of a program as one line without its name.
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
