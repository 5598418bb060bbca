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

// NFS says how file systems of the network are mounted. Every call on one whose
// server is silent may hang, a stat as well as an open: podd asks the mount table
// about them, and leaves the rest to programs that it can give up.
type NFS struct {
	// Mount is mount.nfs; "" looks where distributions have it.
	Mount string
	// Unmount is umount; "" likewise.
	Unmount string
	// Patience is how long one of them may take; zero: a minute.
	Patience time.Duration
}

// sbin are the directories of programs that mount.
var sbin = []string{"/sbin", "/usr/sbin", "/bin", "/usr/bin"}

func (n NFS) patience() time.Duration { return cmp.Or(n.Patience, time.Minute) }

func program(path, name, advice string) (string, error) {
	if path != "" {
		return path, nil
	}
	for _, dir := range sbin {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("this machine has no %s; %s", name, advice)
}

// mounter is the program that mounts. It is called without mount, which knows
// options that lead elsewhere.
func (n NFS) mounter() (string, error) {
	return program(n.Mount, "mount.nfs", "install the package nfs-common (Debian, Ubuntu) or nfs-utils")
}

// nfs is a directory of a server.
type nfs struct{}

func (nfs) source() string { return "nfs" }

func (nfs) serves(v *v1.Volume) bool { return v.NFS != nil }

func (nfs) check(p *place, v *v1.Volume) (string, error) { return exportOf(v.NFS).check(p) }

func (nfs) prepare(ctx context.Context, p *place, v *v1.Volume) (string, error) {
	return exportOf(v.NFS).mount(ctx, p, v.Name)
}

// export is what of a server is mounted, and how.
type export struct {
	server, path string
	options      []string
}

func exportOf(s *v1.NFSVolumeSource) export {
	e := export{server: s.Server, path: s.Path}
	if s.ReadOnly {
		e.options = []string{"ro"}
	}
	return e
}

// exportOfVolume is that of a PersistentVolume, for a volume of a pod that may
// only read.
func exportOfVolume(pv *v1.PersistentVolume, readOnly bool) export {
	e := exportOf(pv.Spec.NFS)
	if readOnly {
		e.options = []string{"ro"}
	}
	e.options = append(slices.Clone(pv.Spec.MountOptions), e.options...)
	return e
}

// String is the export as mount(8) has it.
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

// mount mounts an export at a name of its own in the pod's directory, unless
// that was done. It never looks at what is mounted.
func (e export) mount(ctx context.Context, p *place, name string) (string, error) {
	path := filepath.Join(p.path, volumesDir, nfsPlugin, name)
	if is, err := p.isRemote(name); is || err != nil {
		return path, err
	}
	mounter, err := p.all.NFS.mounter()
	if err != nil {
		return e.String(), err
	}
	dir, err := p.under(nfsPlugin, dirMode)
	if err != nil {
		return path, err
	}
	defer dir.Close()
	if _, err := dir.Mkdir(name, dirMode, -1); err != nil { // seen only without the mount
		return path, err
	}
	limit := p.all.NFS.patience()
	said, err := runProgram(ctx, limit, nil, mounter, e.String(), path, "-o", strings.Join(e.args(), ","))
	switch {
	case errors.Is(err, errSilent):
		return e.String(), fmt.Errorf("the server did not answer within %s; see that it runs and can be reached from here (rpcinfo, showmount -e)", limit)
	case err != nil:
		return e.String(), fault(mounter, said, err)
	}
	is, err := p.isRemote(name)
	if err == nil && !is {
		err = fmt.Errorf("%s says that it mounted it, and the mount table has nothing at %s", mounter, path)
	}
	if err != nil {
		return e.String(), err
	}
	return path, nil
}

// args are the options for mount.nfs: that it tries once, since podd has a time
// of its own for the next try, unless the user has told it otherwise.
func (e export) args() []string {
	own := func(option string) bool {
		return strings.HasPrefix(option, "retry=") || strings.Contains(option, ",retry=")
	}
	if slices.ContainsFunc(e.options, own) {
		return e.options
	}
	return append(slices.Clone(e.options), "retry=0")
}

// isRemote asks the mount table whether a volume is mounted.
func (p *place) isRemote(name string) (bool, error) {
	at := filepath.Join(string(p.pod.UID), volumesDir, nfsPlugin, name)
	mounts, err := p.all.mountsBelow(at)
	if err != nil {
		return false, fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range mounts {
		if m.rel != at {
			continue
		}
		if !m.nfs() { // the first is on top
			return false, fmt.Errorf("%s is mounted where a volume of nfs belongs; umount %s", m.what, m.path)
		}
		return true, nil
	}
	return false, nil
}

// fault is why mount.nfs failed, in its own words.
func fault(mounter, said string, err error) error {
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return fmt.Errorf("running %s: %w", mounter, err)
	}
	said = cmp.Or(plain(said), err.Error())
	kernel, err := os.ReadFile("/proc/filesystems")
	if err == nil && !bytes.Contains(kernel, []byte("\tnfs")) && (strings.Contains(said, "No such device") || strings.Contains(said, "not supported")) {
		said += "; this machine's kernel has no NFS: load its module nfs (modprobe nfs), or boot a kernel that has it"
	}
	return errors.New(said)
}

// mostSaid bounds what is shown of a program's words.
const mostSaid = 300

// plain is what a program said in one line, without its name.
func plain(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
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
	return text[:min(len(text), mostSaid)]
}
