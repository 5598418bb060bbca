//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/server"
)

// withStorageLimit limits the ephemeral storage of a container.
func withStorageLimit(c v1.Container, limit string) v1.Container {
	c.Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
	return c
}

// evictedFor returns a check that a pod was evicted with a message that begins with the text want.
func evictedFor(want string) func(*server.PodView) error {
	return func(p *server.PodView) error {
		s := p.Pod.Status
		if s.Phase != v1.PodFailed || s.Reason != "Evicted" || !strings.HasPrefix(s.Message, want) {
			return fmt.Errorf("got phase %s, reason %q and message %q, want Failed, Evicted and a message that begins with %q", s.Phase, s.Reason, s.Message, want)
		}
		return nil
	}
}

// checkDiskUsage returns an error unless the files below a directory use less disk space than
// limit.
func checkDiskUsage(dir string, limit int64) error {
	used := int64(0)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		used += st.Blocks * 512
		return err
	})
	if err == nil && used >= limit {
		err = fmt.Errorf("%s: got %d used bytes, want less than %d", dir, used, limit)
	}
	return err
}

// TestEphemeralStorage_MountedFiles checks the files that podd mounts into containers: /etc/hosts
// and the termination message. They must count towards the storage limits, and must be truncated
// when the pod is evicted.
func TestEphemeralStorage_MountedFiles(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	const grow = "head -c 8388608 /dev/zero >>"
	unprivileged := withStorageLimit(shell("main", grow+"/dev/termination-log; sleep 3600"), "4Mi")
	unprivileged.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(65534))}
	message := d.pod("message", unprivileged)
	one := d.pod("one",
		withStorageLimit(shell("main", grow+"/dev/termination-log; "+serve("one")), "4Mi"),
		withStorageLimit(shell("other", serve("other")), "1Gi"))
	hosts := d.pod("hosts", withStorageLimit(shell("main", grow+"/etc/hosts; "+serve("hosts")), "4Mi"))
	// In this pod, a restart of container other rewrites the hosts file, which container main has
	// mounted. After that, container main writes to the file.
	rewritten := d.pod("rewritten",
		withStorageLimit(shell("main", "echo '# edited' >>/etc/hosts; touch /trace/edited; until [ -e /trace/restarted ]; do sleep 0.1; done; "+
			grow+"/etc/hosts; "+serve("rewritten")), "4Mi"),
		shell("other", "until [ -e /trace/edited ]; do sleep 0.1; done; "+
			"if [ -e /trace/once ]; then touch /trace/restarted; sleep 3600; fi; touch /trace/once; exit 1"))
	small := d.pod("small", withStorageLimit(shell("main", "head -c 65536 /dev/zero >/dev/termination-log; "+serve("small")), "4Mi"))
	d.apply(message, one, hosts, rewritten, small)
	pod := "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. "
	for name, want := range map[string]string{
		"message": pod, "hosts": pod, "rewritten": pod,
		"one": `Container main exceeded its local ephemeral storage limit "4Mi". `,
	} {
		uid := d.untilPod("is evicted", name, evictedFor(want)).Pod.UID
		d.eventually("the files of pod "+name+" are truncated", func() error { return checkDiskUsage(filepath.Join(d.root(), "pods", string(uid)), 1<<20) })
	}
	if small := d.untilApplied("small"); small.Pod.Status.Phase != v1.PodRunning {
		t.Errorf("pod small, which is within its limit: got phase %s (message %q), want Running", small.Pod.Status.Phase, small.Pod.Status.Message)
	}
}

// TestEphemeralStorage_Deleted checks that podd enforces the storage limit of a pod that is
// being deleted. The pod must be stopped before the end of its grace period of an hour.
func TestEphemeralStorage_Deleted(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("ending", withStorageLimit(shell("main", "trap 'head -c 8388608 /dev/zero >>/dev/termination-log; sleep 3600' TERM; "+
		note("ending runs")+"sleep 3600 & wait"), "4Mi"))
	p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	d.apply(p)
	d.untilNoted("ending runs")
	d.remove("ending")
	d.untilGone("ending")
}

// TestEphemeralStorage_Unmeasurable checks that podd evicts a pod whose volume has directories that are
// nested deeper than 4096 levels. podd measures no deeper directories, so data in them would not be
// limited. The message must contain the number 4096.
func TestEphemeralStorage_Unmeasurable(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	const nest = "p=d; for i in $(seq 1000); do p=$p/d; done; cd /disk; for i in 1 2 3 4 5; do mkdir -p $p; cd -P $p; done; "
	deep := d.pod("deep", shell("main", nest+"head -c 8388608 /dev/zero >x; "+serve("deep")))
	withVolume(deep, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<30, resource.BinarySI)}})
	nested := d.pod("nested", withStorageLimit(shell("main", nest+serve("nested")), "1Gi"))
	withVolume(nested, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	d.apply(deep, nested)
	const has = " has directories that are nested more than 4096 levels deep. "
	d.untilPod("is evicted", "deep", evictedFor(
		`Usage of EmptyDir volume "disk" cannot be measured and counts as above the limit "1Gi": the volume`+has))
	d.untilPod("is evicted", "nested", evictedFor(
		`Pod ephemeral local storage usage cannot be measured and counts as above the total limit of containers 1Gi: EmptyDir volume "disk"`+has))
}
