//go:build e2e

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const podsPath = "/api/v1/namespaces/default/pods"

// sleepingContainer returns a container that runs until TERM and then exits at once.
func sleepingContainer(name string) v1.Container {
	return v1.Container{Name: name, Image: "podd.test/busybox:1", Command: []string{"sh", "-c", "trap 'exit 3' TERM; sleep 1000000 & wait"}}
}

// createBoundPod creates a pod that is already bound to a node.
func createBoundPod(t *testing.T, node, name string, change func(*v1.Pod), containers ...v1.Container) *v1.Pod {
	t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec = v1.PodSpec{NodeName: node, HostNetwork: true, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(20)), Containers: containers}
	if change != nil {
		change(p)
	}
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := plane.do(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", account, nil); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		t.Fatal(err)
	}
	made := &v1.Pod{}
	if err := plane.do(http.MethodPost, podsPath, p, made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the grace period is zero, because podd may be stopped already
		_ = plane.do(http.MethodDelete, podsPath+"/"+name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, nil)
	})
	return made
}

// getPod returns a pod as podd get prints it, which may be newer than the pod at the API server.
func (a *agent) getPod(name string) (*v1.Pod, error) {
	out, err := a.verb("get", "pods", name, "-o", "json")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	p := &v1.Pod{}
	return p, json.Unmarshal([]byte(out), p)
}

// untilPod waits until the function isDone returns true for a pod as podd get prints it, and returns the
// pod. The parameter what completes the sentence "NAME …" in the failure message.
func (a *agent) untilPod(name, what string, isDone func(*v1.Pod) bool) (p *v1.Pod) {
	a.t.Helper()
	a.eventually(name+" "+what, func() (err error) {
		if p, err = a.getPod(name); err == nil && !isDone(p) {
			text, _ := json.Marshal(p.Status)
			err = errors.New(string(text))
		}
		return err
	})
	return p
}

func isPodReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
}

// containerIDs returns the container IDs in a pod's status, by container name.
func containerIDs(p *v1.Pod) map[string]string {
	ids := map[string]string{}
	for _, s := range p.Status.ContainerStatuses {
		ids[s.Name] = s.ContainerID
	}
	return ids
}

// untilRemoved waits until podd no longer shows a pod.
func (a *agent) untilRemoved(name string) {
	a.t.Helper()
	a.eventually(name+" is removed", func() error {
		out, _ := a.verb("get", "pods", name)
		if !strings.Contains(out, "no pod \"") {
			return errors.New(out)
		}
		return nil
	})
}

func patchPod(t *testing.T, name string, patch map[string]any) {
	t.Helper()
	if err := plane.do(http.MethodPatch, podsPath+"/"+name, patch, nil); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, name string, grace int64) {
	t.Helper()
	if err := plane.do(http.MethodDelete, podsPath+"/"+name, &metav1.DeleteOptions{GracePeriodSeconds: &grace}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestPods checks a pod that is bound to the node. An edit of its labels must not restart it, a
// new image must restart only its container, and a deletion must use the requested grace period.
func TestPods(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "p1").start()
	a.untilReady()
	began := time.Now()
	made := createBoundPod(t, a.node, "p1-web", func(p *v1.Pod) { p.Spec.HostNetwork = false }, v1.Container{Name: "main", Image: "podd.test/web:1"}, sleepingContainer("side"))
	before := a.untilPod(made.Name, "is ready", isPodReady)
	t.Logf("the pod is ready %s after it was bound", time.Since(began).Round(time.Millisecond))
	if s := before.Status; before.UID != made.UID || s.ObservedGeneration != made.Generation || s.Phase != v1.PodRunning || s.HostIP == "" || s.PodIP == "" || s.QOSClass != v1.PodQOSBestEffort || s.StartTime == nil {
		t.Errorf("got status %+v, want a running BestEffort pod of generation %d with addresses and a start time", s, made.Generation)
	}
	patchPod(t, made.Name, map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "edge"}}})
	labelled := a.untilPod(made.Name, "has the label", func(p *v1.Pod) bool { return p.Labels["tier"] == "edge" })
	if got, want := containerIDs(labelled), containerIDs(before); got["main"] != want["main"] || got["side"] != want["side"] {
		t.Errorf("after an edit of the labels: got containers %v, want %v", got, want)
	}
	patchPod(t, made.Name, map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "podd.test/pause:1"}}}})
	edited := a.untilPod(made.Name, "has the image", func(p *v1.Pod) bool {
		return isPodReady(p) && containerIDs(p)["main"] != containerIDs(before)["main"]
	})
	if containerIDs(edited)["side"] != containerIDs(before)["side"] || edited.Status.ContainerStatuses[0].RestartCount != 1 || edited.Status.ObservedGeneration <= made.Generation {
		t.Errorf("after an edit of an image: got %+v, want one restart, of the edited container only", edited.Status)
	}
	deletePod(t, made.Name, 10)
	a.untilRemoved(made.Name)
}

// TestPods_Rejected checks that a pod that the node cannot accept fails permanently with the
// kubelet's message.
func TestPods_Rejected(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "p2", "--node-labels=tier=edge").start()
	a.untilReady()
	elsewhere := createBoundPod(t, a.node, "p2-elsewhere", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "core"} }, sleepingContainer("main"))
	here := createBoundPod(t, a.node, "p2-here", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "edge"} }, sleepingContainer("main"))
	p := a.untilPod(elsewhere.Name, "has failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	if s := p.Status; s.Reason != "NodeAffinity" || s.Message != "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector" || len(s.ContainerStatuses) > 0 {
		t.Errorf("rejected pod: got status %+v, want the reason NodeAffinity and no containers", s)
	}
	a.untilPod(here.Name, "is ready", isPodReady)
	// Labels that the administrator adds to the Node apply to pods that are bound later.
	if err := plane.do(http.MethodPatch, "/api/v1/nodes/"+a.node, map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "core"}}}, nil); err != nil {
		t.Fatal(err)
	}
	later := createBoundPod(t, a.node, "p2-later", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "core"} }, sleepingContainer("main"))
	a.untilPod(later.Name, "is ready", isPodReady)
	if p, err := a.getPod(elsewhere.Name); err != nil || p.Status.Phase != v1.PodFailed {
		t.Errorf("after a change of the Node's labels: got the rejected pod %v, error %v; want it to stay Failed", p, err)
	}
	a.untilPod(here.Name, "is ready", isPodReady)
}

// TestPreemption checks a node that runs as many pods as --max-pods permits. A new static pod and a
// new critical pod of the cluster must each preempt one of these pods, which must fail with the
// kubelet's message.
func TestPreemption(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "p5", "--max-pods=2").start()
	a.untilReady()
	others := []string{"p5-one", "p5-two"}
	for _, name := range others {
		createBoundPod(t, a.node, name, nil, sleepingContainer("main"))
		a.untilPod(name, "is ready", isPodReady)
	}
	untilPreempted := func(want int) {
		t.Helper()
		a.eventually(fmt.Sprintf("%d pods are preempted in the cluster", want), func() error {
			var n int
			var states []string
			for _, name := range others {
				p, err := plane.pod("default", name)
				if err != nil {
					return err
				}
				s := p.Status
				if s.Phase == v1.PodFailed && s.Reason == "Preempting" && s.Message == "Preempted in order to admit critical pod" {
					n++
				}
				states = append(states, fmt.Sprintf("%s %s %s %q", name, s.Phase, s.Reason, s.Message))
			}
			if n != want {
				return fmt.Errorf("got pods %s; want %d preempted pods", strings.Join(states, ", "), want)
			}
			return nil
		})
	}
	a.write("p5-static", webPod("p5-static", "1000000"))
	before := a.untilMirror("p5-static", "ready", isReady)
	untilPreempted(1)
	createBoundPod(t, a.node, "p5-critical", func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }, sleepingContainer("main"))
	a.untilPod("p5-critical", "is ready", isPodReady)
	untilPreempted(2)
	if after := a.untilMirror("p5-static", "ready", isReady); containerID(after) != containerID(before) {
		t.Errorf("static pod after the second preemption: got container %s, want %s", containerID(after), containerID(before))
	}
}

// TestPods_Finished checks that a finished pod does not run again, even if podd has lost its
// journal.
func TestPods_Finished(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "p3").start()
	a.untilReady()
	job := createBoundPod(t, a.node, "p3-job", func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever },
		v1.Container{Name: "main", Image: "podd.test/busybox:1", Command: []string{"true"}})
	a.untilPod(job.Name, "has succeeded", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded })
	late := createBoundPod(t, a.node, "p3-late", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }, sleepingContainer("main"))
	a.untilPod(late.Name, "has exceeded its deadline", func(p *v1.Pod) bool { return p.Status.Reason == "DeadlineExceeded" })
	a.kill()
	if err := plane.do(http.MethodPatch, podsPath+"/"+job.Name+"/status", map[string]any{"status": map[string]any{"phase": "Succeeded"}}, nil); err != nil {
		t.Fatal(err)
	}
	journal := a.dir + "/root/pods/" + string(job.UID) + "/journal.json"
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	a.start()
	p := a.untilPod(job.Name, "has succeeded", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded })
	if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("finished pod after the loss of its journal: got status %+v, want no restart", p.Status)
	}
}

// outageLength returns how long the API server is down in a test: $PODD_E2E_OUTAGE, by default 2
// seconds.
func outageLength(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("PODD_E2E_OUTAGE"))
	if err != nil {
		return 2 * time.Second
	}
	return d
}

// TestPods_Outage checks that an outage of the API server affects no container, also if podd is
// restarted during the outage. When podd was stopped and starts again, it must start the pods that
// were bound in the meantime, and must stop the pods that were deleted.
func TestPods_Outage(t *testing.T) {
	a := newAgent(t, "p4").start()
	a.untilReady()
	kept := createBoundPod(t, a.node, "p4-kept", nil, sleepingContainer("main"))
	before := a.untilPod(kept.Name, "is ready", isPodReady)
	ended := createBoundPod(t, a.node, "p4-ended", nil, sleepingContainer("main"))
	a.untilPod(ended.Name, "is ready", isPodReady)
	restart := plane.killAPIServer(t)
	time.Sleep(outageLength(t)) // during this time, podd must change nothing
	checkKept := func(when string) {
		t.Helper()
		if p := a.untilPod(kept.Name, "is ready "+when, isPodReady); containerIDs(p)["main"] != containerIDs(before)["main"] {
			t.Errorf("%s: got containers %v, want %v", when, containerIDs(p), containerIDs(before))
		}
	}
	checkKept("during the outage")
	a.kill()
	a.start()
	a.pod("static")
	a.untilRunning("static")
	if p, err := a.getPod(kept.Name); err == nil && p.DeletionTimestamp != nil {
		t.Errorf("pod %s after a restart of podd during the outage: got deletion timestamp %v, want none", p.Name, p.DeletionTimestamp)
	}
	restart()
	since := time.Now()
	checkKept("after the outage")
	t.Logf("the pod is ready %s after the restart of the API server", time.Since(since).Round(time.Millisecond))
	a.kill()
	deletePod(t, ended.Name, 5)
	made := createBoundPod(t, a.node, "p4-made", nil, sleepingContainer("main"))
	a.start()
	a.untilPod(made.Name, "is ready", isPodReady)
	a.untilRemoved(ended.Name)
	checkKept("after the restarts")
}
