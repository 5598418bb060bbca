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

	"podd/reconcile/cgroup"
	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// awaitGo is a script that waits until the test creates the file /trace/go.
const awaitGo = "until [ -e /trace/go ]; do sleep 0.1; done; "

// TestEviction_RuntimeHangs suspends the runtime's process with SIGSTOP while five pods that use few
// resources and a pod that exhausts a resource run. podd must kill the processes of the last pod and
// remove its volume, so that the pressure ends although the runtime does not respond. No other pod may
// be evicted or restarted. When the runtime continues, podd must clean up the evicted pod. If the
// resource is memory, the pressure begins after podd has noticed that the runtime does not respond.
func TestEviction_RuntimeHangs(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		d := newDaemon(t, stack.ForTest(t, stack.Options{}))
		d.args = append(d.args, "--eviction-hard", "memory.available<64Mi", "--system-reserved", "memory="+strconv.FormatInt(hostMemory(t)-256<<20, 10))
		hog := d.pod("hog", shell("main", awaitGo+"head -c 209715200 /dev/zero >/memory/x; sleep 3600"))
		withVolume(hog, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}})
		d.evictWhileRuntimeHangs(hog, "MemoryPressure", true)
	})
	t.Run("disk", func(t *testing.T) {
		t.Parallel()
		d, k := onSmallDisk(t, stack.ForTest(t, stack.Options{}))
		d.args = append(d.args, "--eviction-hard", "nodefs.available<6Mi")
		d.evictWhileRuntimeHangs(d.diskFillingPod("hog", awaitGo+useBlocks, ""), "DiskPressure", false)
		k.untilFree()
	})
}

// evictWhileRuntimeHangs runs TestEviction_RuntimeHangs with one resource. condition is the node condition
// that hog causes. If isNoticed is true, the pressure begins after podd has noticed that the runtime does
// not respond.
func (d *daemon) evictWhileRuntimeHangs(hog *v1.Pod, condition string, isNoticed bool) {
	d.t.Helper()
	d.args = append(d.args, "--eviction-pressure-transition-period", "1s")
	hog.Spec.RestartPolicy = v1.RestartPolicyNever
	d.start()
	pods := []*v1.Pod{hog}
	for i := range 5 {
		name := fmt.Sprint("small", i)
		pods = append(pods, d.pod(name, shell("main", serve(name))))
	}
	d.apply(pods...)
	before := map[string]string{}
	for _, p := range pods {
		before[p.Name] = d.untilApplied(p.Name).Pod.Status.ContainerStatuses[0].ContainerID
	}
	if n := d.countProcesses("hog"); n < 2 {
		d.t.Fatalf("processes in the cgroup of the running pod: got %d, want at least 2", n)
	}
	if err := d.on.Pause(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = d.on.Resume() }) // the test may have failed before it resumes the runtime
	if isNoticed {
		d.until("podd reports that the runtime does not respond", func(v *server.View) error {
			return wantProblem(v, "no response from the container runtime", true)
		})
	}
	if err := os.WriteFile(filepath.Join(d.traceDir(), "go"), nil, 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.untilPod("is evicted", "hog", func(p *server.PodView) error { // the phase stays Running, because the runtime reports no exit
		if s := p.Pod.Status; s.Reason != "Evicted" || !strings.HasPrefix(s.Message, "The node was low on resource: ") {
			return fmt.Errorf("got reason %q and message %q, want Evicted and a message with the resource", s.Reason, s.Message)
		}
		return nil
	})
	d.eventually("the processes of the evicted pod are killed", func() error {
		if n := d.countProcesses("hog"); n > 0 {
			return fmt.Errorf("got %d processes, want none", n)
		}
		return nil
	})
	d.eventually("podd why shows the kill", func() error {
		const want = "the runtime did not stop the pod in time; no process remains in its cgroup"
		if why, _ := d.verb("why", "hog"); !strings.Contains(why, want) {
			return fmt.Errorf("got %q, want %q in it", why, want)
		}
		return nil
	})
	v := d.until("the pressure ends", func(v *server.View) error { return wantProblem(v, condition, false) })
	if err := wantProblem(v, "no response from the container runtime", true); err != nil {
		d.t.Errorf("problems while the runtime does not respond: %v", err)
	}
	if err := d.on.Resume(); err != nil {
		d.t.Fatal(err)
	}
	d.untilPod("has stopped", "hog", hasFailed("Evicted"))
	d.eventually("the cgroup of the evicted pod is removed", func() error {
		if dirs := d.cgroupDirs("hog"); len(dirs) > 0 {
			return fmt.Errorf("got %q, want none", dirs)
		}
		return nil
	})
	d.until("all other pods are ready", func(v *server.View) error { return allReady(v, 5) })
	for _, p := range pods[1:] {
		if got := d.untilApplied(p.Name).Pod.Status.ContainerStatuses[0]; got.ContainerID != before[p.Name] || got.RestartCount > 0 {
			d.t.Errorf("pod %s: got container %s with %d restarts, want container %s with 0 restarts", p.Name, got.ContainerID, got.RestartCount, before[p.Name])
		}
	}
	for _, e := range d.events("") {
		if e.Reason == "Evicted" && e.InvolvedObject.Name != d.podName("hog") {
			d.t.Errorf("got event %s of pod %s, want it only of the pod hog", e.Reason, e.InvolvedObject.Name)
		}
	}
}

// wantProblem returns an error unless a problem of the node contains text. If isWanted is false, it
// returns an error if a problem does.
func wantProblem(v *server.View, text string, isWanted bool) error {
	var all []string
	found := false
	for _, p := range v.Problems {
		all = append(all, p.Message)
		found = found || strings.Contains(p.Message, text)
	}
	if found != isWanted {
		return fmt.Errorf("got problems %q, want one with %q: %t", all, text, isWanted)
	}
	return nil
}

// cgroupDirs returns the directories of a pod's cgroup in all hierarchies.
func (d *daemon) cgroupDirs(name string) (dirs []string) {
	d.t.Helper()
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		d.t.Fatal(err)
	}
	v, err := d.state()
	if err != nil {
		d.t.Fatal(err)
	}
	uid := d.find(v, name).Pod.UID
	for _, h := range hierarchies {
		for _, at := range cgroup.PodPaths(d.parentCgroup(), uid) {
			if _, err := os.Stat(filepath.Join(h.Path, at)); err == nil {
				dirs = append(dirs, filepath.Join(h.Path, at))
			}
		}
	}
	return dirs
}

// countProcesses returns the number of entries for processes in a pod's cgroup in all hierarchies.
func (d *daemon) countProcesses(name string) (n int) {
	d.t.Helper()
	for _, dir := range d.cgroupDirs(name) {
		lists, err := filepath.Glob(filepath.Join(dir, "*/cgroup.procs"))
		if err != nil {
			d.t.Fatal(err)
		}
		for _, list := range lists {
			text, _ := os.ReadFile(list) // fails if the cgroup was removed
			n += len(strings.Fields(string(text)))
		}
	}
	return n
}
