//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestEviction_Disk runs three pods. One pod fills the file system of the root directory, one pod uses
// little of this file system, and a critical pod writes 4 MiB. podd must evict only the pod that fills
// the file system, although podd cannot write its journal to the full disk. podd why must show the
// signal and the threshold.
func TestEviction_Disk(t *testing.T) {
	for name, test := range map[string]struct{ script, threshold, signal, resource string }{
		"blocks": {useBlocks, "nodefs.available<6Mi", "nodefs.available", "ephemeral-storage"},
		"inodes": {useInodes, "nodefs.inodesFree<100", "nodefs.inodesFree", "inodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, k := onSmallDisk(t, shared)
			d.args = append(d.args, "--eviction-hard", test.threshold)
			d.start()
			critical := d.diskFillingPod("critical", "head -c 4194304 /dev/zero >/disk/x; ", "")
			critical.Spec.PriorityClassName = "system-node-critical"
			d.apply(critical, d.pod("web", shell("main", serve("web"))))
			before := map[string]string{}
			for _, name := range []string{"critical", "web"} {
				before[name] = d.untilApplied(name).Pod.Status.ContainerStatuses[0].ContainerID
			}
			hog := d.diskFillingPod("hog", test.script, "")
			hog.Spec.RestartPolicy = v1.RestartPolicyNever
			d.apply(hog)
			p := d.untilPod("is evicted", "hog", evictedFor("The node was low on resource: "+test.resource+". Threshold quantity: "))
			if !hasCondition(p.Pod, v1.DisruptionTarget, v1.PodReasonTerminationByKubelet) {
				t.Errorf("conditions of the evicted pod: got %+v, want a true DisruptionTarget with the reason %s", p.Pod.Status.Conditions, v1.PodReasonTerminationByKubelet)
			}
			d.untilJournaled(d.untilPod("has stopped", "hog", hasFailed("Evicted")), "Evicted")
			k.untilFree()
			if why, _ := d.verb("why", "hog"); !strings.Contains(why, "evicted because of "+test.signal+": ") || !strings.Contains(why, ", threshold ") {
				t.Errorf("podd why: got\n%s\nwant the signal %s and its threshold in it", why, test.signal)
			}
			words := strings.Join(eventWords(d.events("")), "\n")
			for _, want := range []string{"EvictionThresholdMet: Attempting to reclaim " + test.resource, "NodeHasDiskPressure: ", "Evicted: The node was low on resource: " + test.resource} {
				if !strings.Contains(words, want) {
					t.Errorf("events: got\n%s\nwant %q in them", words, want)
				}
			}
			for name, id := range before {
				d.untilPod("still runs in the same container", name, func(p *server.PodView) error {
					if got := p.Pod.Status.ContainerStatuses[0]; got.ContainerID != id || got.State.Running == nil {
						return fmt.Errorf("got container status %+v, want container %s running", got, id)
					}
					return nil
				})
			}
		})
	}
}

// hasCondition reports whether a pod has a true condition with this reason.
func hasCondition(p *v1.Pod, kind v1.PodConditionType, reason string) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind && c.Status == v1.ConditionTrue && c.Reason == reason {
			return true
		}
	}
	return false
}

// TestEviction_Restart checks that an evicted pod with restartPolicy Always starts again with an empty
// volume when the node no longer has the condition DiskPressure. A pod that is added in the meantime
// must wait.
func TestEviction_Restart(t *testing.T) {
	t.Parallel()
	d, _ := onSmallDisk(t, shared)
	d.args = append(d.args, "--eviction-hard", "nodefs.available<6Mi", "--eviction-pressure-transition-period", "20s")
	d.start()
	hog := d.diskFillingPod("hog", "if [ ! -e /trace/filled ]; then touch /trace/filled; "+useBlocks+"else ls /disk | wc -l >/trace/files; fi; ", "")
	d.apply(hog)
	d.untilPod("is evicted", "hog", hasFailed("Evicted"))
	d.apply(hog, d.pod("late", shell("main", serve("late"))))
	d.untilPod("waits", "late", func(p *server.PodView) error {
		if s := p.Pod.Status; s.Phase != v1.PodPending || s.Reason != "NodePressure" {
			return fmt.Errorf("got phase %s, reason %s, want Pending with reason NodePressure", s.Phase, s.Reason)
		}
		return nil
	})
	p := d.untilPod("runs again", "hog", inPhase(v1.PodRunning))
	if s := p.Pod.Status; s.Reason != "" || s.Message != "" {
		t.Errorf("status of the restarted pod: got reason %q, message %q, want none", s.Reason, s.Message)
	}
	d.eventually("the volume is empty", func() error {
		text, err := os.ReadFile(filepath.Join(d.traceDir(), "files"))
		if err == nil && strings.TrimSpace(string(text)) != "0" {
			err = fmt.Errorf("number of files in the volume: got %q, want 0", text)
		}
		return err
	})
	d.untilPod("runs", "late", inPhase(v1.PodRunning))
}

// TestEviction_Start checks that podd starts no pod on a node whose image file system is short of space,
// not even before it has observed this file system.
func TestEviction_Start(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared, "--eviction-hard", "imagefs.available<99.9%", "--image-gc-high-threshold=100")
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.start()
	for range 5 {
		d.untilPod("waits", "web", func(p *server.PodView) error {
			if s := p.Pod.Status; s.Phase != v1.PodPending || !strings.Contains(p.Why, "DiskPressure") {
				return fmt.Errorf("got phase %s, reason %q; want Pending because of DiskPressure", s.Phase, p.Why)
			}
			return nil
		})
		if all := d.containers("web", "main"); len(all) > 0 {
			t.Errorf("under DiskPressure: got running containers %+v, want none", all)
		}
		d.crash()
	}
}

// TestEviction_Memory runs five pods that use little memory, and a pod that uses most of the memory
// that is allocatable to pods. podd must evict only the last pod.
func TestEviction_Memory(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared, "--eviction-hard", "memory.available<64Mi", "--system-reserved", "memory="+strconv.FormatInt(hostMemory(t)-256<<20, 10))
	d.start()
	var small []*v1.Pod
	for i := range 5 {
		name := fmt.Sprint("small", i)
		small = append(small, d.pod(name, shell("main", serve(name))))
	}
	d.apply(small...)
	before := map[string]string{}
	for _, p := range small {
		before[p.Name] = d.untilApplied(p.Name).Pod.Status.ContainerStatuses[0].ContainerID
	}
	hog := d.pod("hog", shell("main", "head -c 209715200 /dev/zero >/memory/x; sleep 3600"))
	withVolume(hog, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
	hog.Spec.RestartPolicy = v1.RestartPolicyNever
	d.apply(append(small, hog)...)
	p := d.untilPod("is evicted", "hog", evictedFor("The node was low on resource: memory. Threshold quantity: 64Mi, available: "))
	if p.EvictionSignal != "allocatableMemory.available" || !strings.Contains(p.Pod.Status.Message, "Container main was using ") {
		t.Errorf("got signal %s, message %q; want signal allocatableMemory.available and a message with the usage of the container", p.EvictionSignal, p.Pod.Status.Message)
	}
	for name, id := range before {
		if got := d.untilApplied(name).Pod.Status.ContainerStatuses[0]; got.ContainerID != id || got.RestartCount > 0 {
			t.Errorf("pod %s: got container %s with %d restarts, want container %s with 0 restarts", name, got.ContainerID, got.RestartCount, id)
		}
	}
}
