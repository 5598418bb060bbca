//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/cmd/podd/e2e/harness"
)

// leftovers returns a line for each sandbox, container, directory and mount of the daemon's pods, and
// one line for all cgroups of the pods.
func (d *daemon) leftovers(ctx context.Context) ([]string, error) {
	now, err := d.inventory(ctx)
	errs := []error{err}
	var all []string
	for _, s := range now.sandboxes {
		all = append(all, "sandbox of "+s.GetMetadata().GetName())
	}
	for _, c := range now.containers {
		all = append(all, "container "+c.GetMetadata().GetName())
	}
	add := func(paths []string, err error) {
		all, errs = append(all, paths...), append(errs, err)
	}
	add(pathsIn(filepath.Join(d.root(), "pods")))
	add(pathsIn(d.logDir()))
	add(pathsIn(filepath.Join(d.dir, "containers"))) // the symlinks for log agents
	add(d.mounts())
	cgroups, err := d.podCgroups()
	if len(cgroups) > 0 {
		all = append(all, fmt.Sprintf("%d cgroups, one is %s", len(cgroups), cgroups[0]))
	}
	errs = append(errs, err)
	return all, errors.Join(errs...)
}

// pathsIn returns the paths of the entries of a directory. A directory that does not exist has
// no entries.
func pathsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, err
}

// mounts returns the mount points below the daemon's directory.
func (d *daemon) mounts() ([]string, error) {
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(d.dir))
	var paths []string
	for _, m := range infos {
		paths = append(paths, "mount "+m.Mountpoint)
	}
	return paths, err
}

// podCgroups returns the cgroups of pods in every hierarchy. It does not return the cgroups of the QoS
// classes, such as kubepods/burstable, because podd does not remove these.
func (d *daemon) podCgroups() ([]string, error) {
	infos, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, m := range infos {
		err := filepath.WalkDir(filepath.Join(m.Mountpoint, d.parentCgroup()), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && strings.HasPrefix(e.Name(), "pod") && e.IsDir() {
				paths = append(paths, path)
				return fs.SkipDir
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// removeClasses removes the cgroups of the QoS classes at and below parent, because podd does not
// remove these cgroups. It retries, because the kernel and containerd may still be removing the
// last pods. The error is that of the last attempt.
func removeClasses(parent string) error {
	return harness.Poll(patience/2, func() error { return tryRemoveClasses(parent) })
}

// tryRemoveClasses tries once to remove the cgroups of the QoS classes at and below parent.
func tryRemoveClasses(parent string) error {
	infos, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	errs := []error{err}
	for _, m := range infos {
		var dirs []string
		err := filepath.WalkDir(filepath.Join(m.Mountpoint, parent), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		errs = append(errs, err)
		for _, dir := range slices.Backward(dirs) {
			if err := unix.Rmdir(dir); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// end removes the manifests, waits until podd has removed the daemon's pods, and kills podd. If
// the test has failed, end does not wait, and removes the pods from the runtime itself.
func (d *daemon) end() {
	defer func() {
		for _, c := range d.closers {
			c()
		}
	}()
	if d.proc == nil {
		return
	}
	if !d.t.Failed() && d.sources && d.proc.running() {
		d.removeAllPods()
	}
	if d.proc.running() {
		d.kill()
	}
	if d.t.Failed() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if log, err := os.ReadFile(d.logFile()); err == nil {
			d.t.Logf("log of podd on %s:\n%s", d.node, log)
		}
		d.removeSandboxes(ctx)
	}
}

// removeAllPods removes all manifests and waits until podd has removed all pods.
func (d *daemon) removeAllPods() {
	files, err := pathsIn(d.manifestDir())
	for _, f := range files {
		err = errors.Join(err, os.RemoveAll(f))
	}
	if err != nil {
		d.t.Error(err)
		return
	}
	if err := d.untilNothing(context.Background(), patience); err != nil {
		d.t.Error(err)
	}
}

// wantNothingLeft waits until nothing of the daemon's pods is left on the host.
func (d *daemon) wantNothingLeft() {
	d.t.Helper()
	if err := d.untilNothing(d.t.Context(), patience); err != nil {
		d.t.Error(err)
	}
}

// untilNothing waits until nothing of the daemon's pods is left on the host, at most for limit. After that,
// the error lists the leftovers.
//
// While a pod has a directory, untilNothing checks nothing else. podd removes the directory of a pod after
// its sandboxes, and the other checks are expensive: they call the runtime and read all mounts and cgroups.
func (d *daemon) untilNothing(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := harness.Poll(limit, func() error {
		left, err := pathsIn(filepath.Join(d.root(), "pods"))
		if err == nil && len(left) == 0 {
			left, err = d.leftovers(ctx)
		}
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("got %d leftovers, want none", len(left))
		}
		return err
	})
	if err != nil {
		return d.describeLeftovers(context.WithoutCancel(ctx))
	}
	return nil
}

// describeLeftovers returns an error that lists the leftovers of the daemon's pods.
func (d *daemon) describeLeftovers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left, err := d.leftovers(ctx)
	return fmt.Errorf("leftovers of the daemon's pods after the time limit: got (error %v)\n%s\nwant none", err, strings.Join(left, "\n"))
}

// removeSandboxes removes the daemon's sandboxes from the runtime. It logs errors.
func (d *daemon) removeSandboxes(ctx context.Context) {
	now, err := d.inventory(ctx)
	if err != nil {
		d.t.Log(err)
		return
	}
	conn, err := connect(d.on)
	if err != nil {
		d.t.Log(err)
		return
	}
	defer conn.Close()
	client := cri.NewRuntimeServiceClient(conn)
	for _, s := range now.sandboxes {
		_, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: s.GetId()})
		if err == nil {
			_, err = client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
		}
		if err != nil {
			d.t.Log(fmt.Errorf("removing sandbox %s: %w", s.GetId(), err))
		}
	}
}
