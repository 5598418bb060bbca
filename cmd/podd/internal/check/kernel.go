package check

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

func checkKernel(f *Facts, r *Result) {
	k := f.Kernel
	r.Detail = "Linux " + k.Release
	if k.SwapEnabled {
		r.Detail += ", with swap"
	}
	if len(k.MissingSyscalls) > 0 {
		r.fail("use Linux 5.6 or later; in a container, allow these calls in its seccomp profile", "podd cannot use the system calls %s", strings.Join(k.MissingSyscalls, ", "))
	}
	if len(k.MissingNamespaces) > 0 {
		r.fail("use a kernel with CONFIG_NAMESPACES and the options of these namespaces", "the kernel does not support these types of namespaces: %s", strings.Join(k.MissingNamespaces, ", "))
	}
	if !k.HasOverlay {
		r.warn("run \"modprobe overlay\", or let the runtime use another snapshotter", "the kernel has not loaded overlayfs, which containerd and CRI-O use for images by default")
	}
}

// podd warns about lower limits. The defaults of common distributions are higher.
const (
	minOpenFiles        = 4096
	minInotifyInstances = 128
	minInotifyWatches   = 8192
	minFreePids         = 1024
)

// maxOpenFiles returns the number of files that podd can open if it starts with the hard limit of
// this process. podd sets the limit to the field maxOpenFiles of its configuration if the kernel
// permits this.
func maxOpenFiles(f *Facts) uint64 {
	hard := f.Limits.MaxOpenFiles
	if f.Config == nil {
		return hard
	}
	if f.Privileges.has(unix.CAP_SYS_RESOURCE) && f.Limits.NrOpen > 0 {
		hard = max(hard, f.Limits.NrOpen)
	}
	return min(hard, uint64(f.Config.MaxOpenFiles))
}

func checkLimits(f *Facts, r *Result) {
	l := f.Limits
	files := maxOpenFiles(f)
	r.Detail = fmt.Sprintf("%d open files, %d inotify instances, %d watches", files, l.MaxInotifyInstances, l.MaxInotifyWatches)
	switch {
	case files < minOpenFiles:
		r.warn("raise the limit with LimitNOFILE=1048576 in the systemd unit, or with \"ulimit -Hn\"", "podd can open only %d files, which may be too few for many pods (recommended: %d)", files, minOpenFiles)
	case f.Config != nil && files < uint64(f.Config.MaxOpenFiles):
		r.warn(fmt.Sprintf("set LimitNOFILE=%d in the systemd unit, or a lower maxOpenFiles", f.Config.MaxOpenFiles),
			"podd can open only %d files, fewer than maxOpenFiles (%d), because it can raise its hard limit only with CAP_SYS_RESOURCE and up to fs.nr_open", files, f.Config.MaxOpenFiles)
	}
	const remedy = "raise fs.inotify.max_user_instances and fs.inotify.max_user_watches with sysctl"
	switch {
	case l.InotifyErr != nil:
		r.warn(remedy, "podd cannot watch files with inotify (%v), so it polls manifests", l.InotifyErr)
	case l.MaxInotifyInstances < minInotifyInstances:
		r.warn(remedy, "root can create only %d inotify instances, which containers share with podd (recommended: %d)", l.MaxInotifyInstances, minInotifyInstances)
	case l.MaxInotifyWatches < minInotifyWatches:
		r.warn(remedy, "root can create only %d inotify watches, which containers share with podd (recommended: %d)", l.MaxInotifyWatches, minInotifyWatches)
	}
	if freePids := l.MaxPids - l.Pids; l.MaxPids > 0 && freePids < minFreePids {
		r.warn("raise kernel.pid_max and kernel.threads-max with sysctl, or stop processes", "%d of %d possible processes and threads exist", l.Pids, l.MaxPids)
	}
}
