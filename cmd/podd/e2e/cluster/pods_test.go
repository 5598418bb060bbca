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

// sleeper is a container that runs until it is ended, which it is at once.
func sleeper(name string) v1.Container {
	return v1.Container{Name: name, Image: "podd.test/busybox:1", Command: []string{"sh", "-c", "trap 'exit 3' TERM; sleep 1000000 & wait"}}
}

// bind makes a pod on a node, as a scheduler would have it there.
func bind(t *testing.T, node, name string, change func(*v1.Pod), containers ...v1.Container) *v1.Pod {
	t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec = v1.PodSpec{NodeName: node, HostNetwork: true, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(20)), Containers: containers}
	if change != nil {
		change(p)
	}
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := plane.ask(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", account, nil); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		t.Fatal(err)
	}
	made := &v1.Pod{}
	if err := plane.ask(http.MethodPost, podsPath, p, made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // nobody else may
		_ = plane.ask(http.MethodDelete, podsPath+"/"+name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, nil)
	})
	return made
}

// shown is a pod as podd itself shows it.
func (a *agent) shown(name string) (*v1.Pod, error) {
	out, err := a.verb("get", "pods", name, "-o", "json")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	p := &v1.Pod{}
	return p, json.Unmarshal([]byte(out), p)
}

// until waits for a pod that podd shows to be so.
func (a *agent) until(name, what string, is func(*v1.Pod) bool) (p *v1.Pod) {
	a.t.Helper()
	a.eventually(name+" "+what, func() (err error) {
		if p, err = a.shown(name); err == nil && !is(p) {
			text, _ := json.Marshal(p.Status)
			err = errors.New(string(text))
		}
		return err
	})
	return p
}

func podReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
}

// containerIDs are those of a pod that are in its status, by name.
func containerIDs(p *v1.Pod) map[string]string {
	ids := map[string]string{}
	for _, s := range p.Status.ContainerStatuses {
		ids[s.Name] = s.ContainerID
	}
	return ids
}

// none waits until podd has nothing of a pod.
func (a *agent) none(name string) {
	a.t.Helper()
	a.eventually(name+" is gone", func() error {
		out, _ := a.verb("get", "pods", name)
		if !strings.Contains(out, "no pod \"") {
			return errors.New(out)
		}
		return nil
	})
}

func patchPod(t *testing.T, name string, patch map[string]any) {
	t.Helper()
	if err := plane.ask(http.MethodPatch, podsPath+"/"+name, patch, nil); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, name string, grace int64) {
	t.Helper()
	if err := plane.ask(http.MethodDelete, podsPath+"/"+name, &metav1.DeleteOptions{GracePeriodSeconds: &grace}, nil); err != nil {
		t.Fatal(err)
	}
}

// A pod bound to the node runs; what can be changed of it is adopted by what runs, and
// another image starts its container anew; it ends with the grace that was asked for.
func TestPods(t *testing.T) {
	a := newAgent(t, "p1").start()
	a.ready()
	began := time.Now()
	made := bind(t, a.node, "p1-web", func(p *v1.Pod) { p.Spec.HostNetwork = false }, v1.Container{Name: "main", Image: "podd.test/web:1"}, sleeper("side"))
	before := a.until(made.Name, "is ready", podReady)
	t.Logf("ready %s after it was bound", time.Since(began).Round(time.Millisecond))
	if s := before.Status; before.UID != made.UID || s.ObservedGeneration != made.Generation || s.Phase != v1.PodRunning || s.HostIP == "" || s.PodIP == "" || s.QOSClass != v1.PodQOSBestEffort || s.StartTime == nil {
		t.Errorf("got %+v", s)
	}
	patchPod(t, made.Name, map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "edge"}}})
	labelled := a.until(made.Name, "has the label", func(p *v1.Pod) bool { return p.Labels["tier"] == "edge" })
	if got, want := containerIDs(labelled), containerIDs(before); got["main"] != want["main"] || got["side"] != want["side"] {
		t.Errorf("a label started containers anew: %v, before %v", got, want)
	}
	patchPod(t, made.Name, map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "podd.test/pause:1"}}}})
	edited := a.until(made.Name, "has the image", func(p *v1.Pod) bool {
		return podReady(p) && containerIDs(p)["main"] != containerIDs(before)["main"]
	})
	if containerIDs(edited)["side"] != containerIDs(before)["side"] || edited.Status.ContainerStatuses[0].RestartCount != 1 || edited.Status.ObservedGeneration <= made.Generation {
		t.Errorf("another image of main: %+v", edited.Status)
	}
	deletePod(t, made.Name, 10)
	a.none(made.Name)
}

// A pod that the node cannot take has failed, for good and in a kubelet's words.
func TestPodsRejected(t *testing.T) {
	a := newAgent(t, "p2", "--node-labels=tier=edge").start()
	a.ready()
	elsewhere := bind(t, a.node, "p2-elsewhere", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "core"} }, sleeper("main"))
	here := bind(t, a.node, "p2-here", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "edge"} }, sleeper("main"))
	p := a.until(elsewhere.Name, "has failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	if s := p.Status; s.Reason != "NodeAffinity" || s.Message != "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector" || len(s.ContainerStatuses) > 0 {
		t.Errorf("got %+v", s)
	}
	a.until(here.Name, "is ready", podReady)
	// What the administrator says of the node counts for those who come later.
	if err := plane.ask(http.MethodPatch, "/api/v1/nodes/"+a.node, map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "core"}}}, nil); err != nil {
		t.Fatal(err)
	}
	later := bind(t, a.node, "p2-later", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "core"} }, sleeper("main"))
	a.until(later.Name, "is ready", podReady)
	if p, err := a.shown(elsewhere.Name); err != nil || p.Status.Phase != v1.PodFailed {
		t.Errorf("it is to stay failed: %v, %v", p, err)
	}
	a.until(here.Name, "is ready", podReady)
}

// On a full node a pod of a file starts, and so does a critical one of the cluster;
// one of the others gives way to each, and fails in a kubelet's words.
func TestPreemption(t *testing.T) {
	a := newAgent(t, "p5", "--max-pods=2").start()
	a.ready()
	others := []string{"p5-one", "p5-two"}
	for _, name := range others {
		bind(t, a.node, name, nil, sleeper("main"))
		a.until(name, "is ready", podReady)
	}
	gaveWay := func(want int) {
		t.Helper()
		a.eventually(fmt.Sprintf("the cluster knows that %d gave way", want), func() error {
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
				return fmt.Errorf("got %s", strings.Join(states, ", "))
			}
			return nil
		})
	}
	a.write("p5-static", webPod("p5-static", "1000000"))
	before := a.mirrored("p5-static", "ready", isReady)
	gaveWay(1)
	bind(t, a.node, "p5-critical", func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }, sleeper("main"))
	a.until("p5-critical", "is ready", podReady)
	gaveWay(2)
	if after := a.mirrored("p5-static", "ready", isReady); containerOf(after) != containerOf(before) {
		t.Errorf("the pod of the file has container %s, before %s", containerOf(after), containerOf(before))
	}
}

// A pod that ran to its end is never run again, though podd forgot it.
func TestPodsFinish(t *testing.T) {
	a := newAgent(t, "p3").start()
	a.ready()
	job := bind(t, a.node, "p3-job", func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever },
		v1.Container{Name: "main", Image: "podd.test/busybox:1", Command: []string{"true"}})
	a.until(job.Name, "has succeeded", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded })
	late := bind(t, a.node, "p3-late", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }, sleeper("main"))
	a.until(late.Name, "is late", func(p *v1.Pod) bool { return p.Status.Reason == "DeadlineExceeded" })
	a.kill()
	if err := plane.ask(http.MethodPatch, podsPath+"/"+job.Name+"/status", map[string]any{"status": map[string]any{"phase": "Succeeded"}}, nil); err != nil {
		t.Fatal(err)
	}
	journal := a.dir + "/root/pods/" + string(job.UID) + "/journal.json"
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	a.start()
	p := a.until(job.Name, "has succeeded", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded })
	if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("got %+v", p.Status)
	}
}

// outage is how long the API server is away: PODD_E2E_OUTAGE, else a moment.
func outage(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("PODD_E2E_OUTAGE"))
	if err != nil {
		return 2 * time.Second
	}
	return d
}

// An API server that is away has no container touched, whether podd is started
// meanwhile or not; what was bound and deleted while podd was away runs and ends when
// it is back.
func TestPodsOutage(t *testing.T) {
	a := newAgent(t, "p4").start()
	a.ready()
	kept := bind(t, a.node, "p4-kept", nil, sleeper("main"))
	before := a.until(kept.Name, "is ready", podReady)
	ended := bind(t, a.node, "p4-ended", nil, sleeper("main"))
	a.until(ended.Name, "is ready", podReady)
	back := plane.away(t)
	time.Sleep(outage(t)) // nothing happens, and that is to be seen
	untouched := func(when string) {
		t.Helper()
		if p := a.until(kept.Name, "is ready "+when, podReady); containerIDs(p)["main"] != containerIDs(before)["main"] {
			t.Errorf("%s: %v, before %v", when, containerIDs(p), containerIDs(before))
		}
	}
	untouched("in the outage")
	a.kill()
	a.start()
	a.pod("static")
	a.runs("static")
	if p, err := a.shown(kept.Name); err == nil && p.DeletionTimestamp != nil {
		t.Errorf("it is being ended: %+v", p)
	}
	back()
	since := time.Now()
	untouched("after the outage")
	t.Logf("well %s after the return", time.Since(since).Round(time.Millisecond))
	a.kill()
	deletePod(t, ended.Name, 5)
	made := bind(t, a.node, "p4-made", nil, sleeper("main"))
	a.start()
	a.until(made.Name, "is ready", podReady)
	a.none(ended.Name)
	untouched("after all")
}
