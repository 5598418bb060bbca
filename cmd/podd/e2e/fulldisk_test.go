//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/server"
)

// Scripts that leave no free block or no free inode in /disk.
const (
	useBlocks = "cat /dev/zero >/disk/x; s=$(printf %0511d 0); while echo $s >>/disk/y; do :; done; "
	useInodes = "touch /disk/x; i=0; while true >/disk/$i; do i=$((i+1)); done; head -c 8388608 /dev/zero >/disk/x; "
)

// diskFillingPod returns a pod with a script that fills an emptyDir. If limit is "", the volume
// has no limit.
func (d *daemon) diskFillingPod(name, script, limit string) *v1.Pod {
	p := d.pod(name, shell("main", "trap 'exit 0' TERM; "+script+note(name+" is full")+"sleep 3600 & wait"))
	p.Spec.TerminationGracePeriodSeconds = new(int64(5))
	source := &v1.EmptyDirVolumeSource{}
	if limit != "" {
		source.SizeLimit = new(resource.MustParse(limit))
	}
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: source})
	return p
}

// hasFailed returns a check that a pod has failed with the reason and that its container has
// terminated.
func hasFailed(reason string) func(*server.PodView) error {
	return func(p *server.PodView) error {
		s := p.Pod.Status
		if s.Phase != v1.PodFailed || s.Reason != reason {
			return fmt.Errorf("got phase %s, reason %q, message %q; want phase Failed, reason %q", s.Phase, s.Reason, s.Message, reason)
		}
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("got container statuses %+v, want one terminated container", s.ContainerStatuses)
		}
		return nil
	}
}

// untilJournaled waits until podd's journal of a pod records that the pod has finished with the given
// reason.
func (d *daemon) untilJournaled(p *server.PodView, reason string) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("the journal contains the reason %q", reason), func() error {
		var j struct{ Finished *struct{ Reason string } }
		text, err := os.ReadFile(filepath.Join(d.root(), "pods", string(p.Pod.UID), "journal.json"))
		if err == nil {
			err = json.Unmarshal(text, &j)
		}
		if err == nil && (j.Finished == nil || j.Finished.Reason != reason) {
			err = fmt.Errorf("recorded end of the pod: got %+v, want the reason %q", j.Finished, reason)
		}
		return err
	})
}

// wantFailedWrite fails the test unless podd logged that writing a journal failed for the
// cause.
func (d *daemon) wantFailedWrite(cause string) {
	d.t.Helper()
	log, err := os.ReadFile(d.logFile())
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "writing the journal failed; retrying") && strings.Contains(line, cause) {
			return
		}
	}
	d.t.Errorf("podd's log: got no message about a failed write of a journal, want one with the cause %q", cause)
}

// TestFullDisk runs a pod that uses all blocks or all inodes of the file system of podd's root
// directory. podd must stop the pod when it exceeds its limit or deadline, when the node shuts down
// and when its manifest is removed. podd must release the volumes of the pod when the pod exits.
// This frees the disk, so that podd can write its journal.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"blocks": useBlocks, "inodes": useInodes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("storage limit", func(t *testing.T) { testFullDiskLimit(t, script) })
			t.Run("deadline", func(t *testing.T) { testFullDiskDeadline(t, script) })
			t.Run("node shutdown", func(t *testing.T) { testFullDiskShutdown(t, script) })
			t.Run("exit", func(t *testing.T) { testFullDiskExit(t, script) })
			t.Run("manifest removed", func(t *testing.T) { testFullDiskRemoval(t, script) })
		})
	}
}

// onFullDisk starts a podd with a pod whose script has filled the disk. It marks the test as
// parallel.
func onFullDisk(t *testing.T, script, limit string, deadline *int64) (*daemon, *loopDisk) {
	t.Helper()
	t.Parallel()
	d, k := onSmallDisk(t, shared)
	if limit != "" {
		// The disk has only 1 MiB more than the limit free. Therefore the pod fills the disk before podd
		// measures that the pod exceeds the limit, even on a busy host.
		size := resource.MustParse(limit)
		k.leaveFree(size.Value() + 1<<20)
	}
	d.start()
	p := d.diskFillingPod("web", script, limit)
	p.Spec.ActiveDeadlineSeconds = deadline
	if limit != "" {
		p.Spec.RestartPolicy = v1.RestartPolicyNever // otherwise the evicted pod starts again and fills the disk
	}
	d.apply(p)
	d.untilNote("web is full")
	return d, k
}

// untilStopped waits until the pod on the full disk is stopped with the reason. Then it waits until
// the journal contains the reason. podd may not have been able to write the journal at first.
func (d *daemon) untilStopped(reason string) {
	d.t.Helper()
	p := d.untilPod("is stopped", "web", hasFailed(reason))
	d.untilJournaled(p, reason)
}

func testFullDiskLimit(t *testing.T, script string) {
	d, k := onFullDisk(t, script, "4Mi", nil)
	d.untilStopped("Evicted")
	k.untilFree()
	d.crash()
	d.untilPod("stays evicted", "web", hasFailed("Evicted"))
}

func testFullDiskDeadline(t *testing.T, script string) {
	// The deadline must not pass before the disk is full, not even on a busy host.
	d, _ := onFullDisk(t, script, "", new(int64(90)))
	d.untilStopped("DeadlineExceeded")
}

func testFullDiskShutdown(t *testing.T, script string) {
	d, _ := onFullDisk(t, script, "", nil)
	d.verb("shutdown", "--grace=10s")
	d.untilStopped("Terminated")
	d.verb("shutdown", "--cancel")
	d.untilPod("runs again", "web", inPhase(v1.PodRunning))
}

func testFullDiskExit(t *testing.T, script string) {
	t.Parallel()
	d, k := onSmallDisk(t, shared)
	d.start()
	p := d.pod("web", shell("main", script+"exit 3"))
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	d.apply(p)
	d.untilStopped("")
	k.untilFree()
	d.crash()
	d.untilPod("is still failed", "web", hasFailed(""))
}

func testFullDiskRemoval(t *testing.T, script string) {
	d, k := onFullDisk(t, script, "", nil)
	d.remove("web")
	d.untilGone("web")
	k.untilFree()
}

// TestReadOnlyDisk checks that podd stops pods although its root directory has become read-only, so that
// it cannot record the reason. When the disk is writable again and podd has restarted, podd must report
// the same phases and reasons.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	d, k := onSmallDisk(t, shared)
	d.start()
	late := d.diskFillingPod("late", "", "")
	late.Spec.Containers[0].Command[2] = serve("late")
	late.Spec.ActiveDeadlineSeconds = new(int64(90)) // more than the four pods need to start
	big := d.pod("big", shell("main", "trap 'exit 0' TERM; head -c 4194304 /dev/zero >/disk/x; "+note("big runs")+"sleep 3600 & wait"))
	withVolume(big, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Mi"))}})
	d.apply(late, big, d.pod("web", shell("main", serve("web"))), d.pod("gone", shell("main", serve("gone"))))
	for _, name := range []string{"late", "big", "web", "gone"} {
		d.untilNote(name + " runs")
	}
	k.fail()
	d.untilPod("is evicted", "big", hasFailed("Evicted"))
	d.untilPod("has failed", "late", hasFailed("DeadlineExceeded"))
	d.remove("gone")
	d.untilNote("gone TERM")
	d.verb("shutdown", "--grace=10s")
	d.untilPod("is terminated", "web", hasFailed("Terminated"))
	d.wantFailedWrite("read-only file system")
	d.kill()
	k.repair()
	d.start()
	d.untilPod("is still failed", "late", hasFailed("DeadlineExceeded"))
	d.untilPod("is still terminated", "web", hasFailed("Terminated"))
	d.untilGone("gone")
	d.verb("shutdown", "--cancel")
	d.untilPod("runs again", "web", inPhase(v1.PodRunning))
}
