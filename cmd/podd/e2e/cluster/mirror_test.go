//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	configHash   = "kubernetes.io/config.hash"
	configMirror = "kubernetes.io/config.mirror"
	localRefs    = "podd/local-refs"
)

// webPod has a container that answers to its readiness probe, and args to tell
// versions of it apart.
func webPod(name, version string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s},
spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "podd.test/busybox:1", command: [sleep, "%s"],
  readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}}]}}`, name, version)
}

func (p *controlPlane) pod(namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	return pod, p.ask(http.MethodGet, "/api/v1/namespaces/"+namespace+"/pods/"+name, nil, pod)
}

// mirrored waits until the mirror of a pod is as wanted.
func (a *agent) mirrored(name, what string, is func(*v1.Pod) bool) (m *v1.Pod) {
	a.t.Helper()
	a.eventually("the mirror of "+name+" is "+what, func() (err error) {
		if m, err = plane.pod("default", name+"-"+a.node); err == nil && !is(m) {
			err = fmt.Errorf("got %+v of %s, %+v", m.Annotations, m.UID, m.Status)
		}
		return err
	})
	return m
}

func isReady(m *v1.Pod) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue && m.Status.Phase == v1.PodRunning
		}
	}
	return false
}

// containerOf is the id of the mirror's only container.
func containerOf(m *v1.Pod) string {
	if len(m.Status.ContainerStatuses) == 0 {
		return ""
	}
	return m.Status.ContainerStatuses[0].ContainerID
}

// A static pod is known to the cluster by its mirror, whatever is done to that, and
// runs on.
func TestMirror(t *testing.T) {
	a := newAgent(t, "w1").start()
	node := a.ready()
	a.write("web", webPod("web", "1000001"))
	m := a.mirrored("web", "ready", isReady)
	if o := m.OwnerReferences; len(o) != 1 || o[0].UID != node.UID || m.Annotations[configMirror] == "" || m.Annotations[configMirror] != m.Annotations[configHash] {
		t.Errorf("mirror: %+v", m.ObjectMeta)
	}
	if out, err := kubectl(t, "get", "pods", m.Name); err != nil || !strings.Contains(out, "1/1") || !strings.Contains(out, "Running") {
		t.Errorf("kubectl get pods: %s", out)
	}

	// Its deletion is undone, also where somebody waits for its end.
	if err := plane.ask(http.MethodDelete, "/api/v1/namespaces/default/pods/"+m.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	again := a.mirrored("web", "made again", func(now *v1.Pod) bool { return now.UID != m.UID && isReady(now) })
	if containerOf(again) != containerOf(m) || again.Annotations[configMirror] != m.Annotations[configMirror] {
		t.Errorf("the pod was touched: %s, before %s", containerOf(again), containerOf(m))
	}

	// A restart is told.
	if out, err := a.verb("restart", m.Name); err != nil {
		t.Fatalf("podd restart: %v: %s", err, out)
	}
	a.mirrored("web", "restarted", func(now *v1.Pod) bool { return isReady(now) && now.Status.ContainerStatuses[0].RestartCount == 1 })

	a.write("web", webPod("web", "1000002"))
	a.mirrored("web", "of the new version", func(now *v1.Pod) bool {
		return now.Annotations[configMirror] != m.Annotations[configMirror] && now.Spec.Containers[0].Command[1] == "1000002" && isReady(now)
	})

	// A podd that starts anew repeats nothing, and finds what is no longer wanted.
	a.write("other", webPod("other", "1000001"))
	before := a.mirrored("other", "ready", isReady)
	a.kill()
	if err := os.Remove(filepath.Join(a.manifests(), "web.yaml")); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.unmirrored("web")
	if now := a.mirrored("other", "ready", isReady); now.UID != before.UID || containerOf(now) != containerOf(before) {
		t.Errorf("after a start: got %s, before %s", now.UID, before.UID)
	}
	if err := os.Remove(filepath.Join(a.manifests(), "other.yaml")); err != nil {
		t.Fatal(err)
	}
	a.unmirrored("other")
}

func (a *agent) unmirrored(name string) {
	a.t.Helper()
	a.eventually("there is no mirror of "+name, func() error {
		if _, err := plane.pod("default", name+"-"+a.node); !errors.Is(err, errNone) {
			return fmt.Errorf("there is one: %v", err)
		}
		return nil
	})
}

// What no API server takes in a mirror is named there; a namespace that is missing
// is told of, and the mirror made once it is there.
func TestMirrorRefs(t *testing.T) {
	a := newAgent(t, "w2").start()
	a.ready()
	a.write("web", `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {k: v}}
---
{apiVersion: v1, kind: Secret, metadata: {name: cred}, stringData: {k: hunter2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, serviceAccountName: robot, priority: 5,
  containers: [{name: main, image: "podd.test/busybox:1", command: [sleep, "1000000"], env: [{name: A, valueFrom: {secretKeyRef: {name: cred, key: k}}}],
    volumeMounts: [{name: conf, mountPath: /conf}]}],
  volumes: [{name: conf, configMap: {name: conf}}]}}
`)
	m := a.mirrored("web", "ready", isReady)
	if got := m.Annotations[localRefs]; got != "ConfigMap/conf,Secret/cred,ServiceAccount/robot" || len(m.Spec.Volumes) > 0 || m.Annotations[configMirror] != m.Annotations[configHash] {
		t.Errorf("mirror: %+v, %+v", m.Annotations, m.Spec.Volumes)
	}
	a.write("lab", strings.Replace(webPod("lab", "1000000"), "{name: lab}", "{name: lab, namespace: lab}", 1))
	a.tells(`creating the mirror pod failed: namespaces "lab" not found`, true)
	namespace := &v1.Namespace{}
	namespace.Name = "lab"
	if err := plane.ask(http.MethodPost, "/api/v1/namespaces", namespace, nil); err != nil {
		t.Fatal(err)
	}
	a.eventually("lab has its mirror", func() error {
		m, err := plane.pod("lab", "lab-w2")
		if err == nil && !isReady(m) {
			err = fmt.Errorf("got %+v", m.Status)
		}
		return err
	})
	a.tells("creating the mirror pod failed", false)
	if n := a.said("creating the mirror pod failed"); n != 1 {
		t.Errorf("told %d times in the log", n)
	}
}

// What changed while the API server was away, for as long as PODD_E2E_OUTAGE says, is
// right within 5 s of its return, and nothing else has changed.
func TestMirrorOutage(t *testing.T) {
	a := newAgent(t, "w3").start()
	a.ready()
	a.write("kept", webPod("kept", "1000000"))
	a.write("removed", webPod("removed", "1000000"))
	kept := a.mirrored("kept", "ready", isReady)
	a.mirrored("removed", "ready", isReady)
	bound := []string{bind(t, a.node, "w3-kept", nil, sleeper("main")).Name, bind(t, a.node, "w3-ends", nil, sleeper("main")).Name}
	before := a.told(bound[0], "is ready", isReady)
	a.told(bound[1], "is ready", isReady)
	back := plane.away(t)
	if err := os.Remove(filepath.Join(a.manifests(), "removed.yaml")); err != nil {
		t.Fatal(err)
	}
	a.write("new", webPod("new", "1000000"))
	a.runs("new")
	if out, err := a.verb("restart", kept.Name); err != nil {
		t.Fatalf("podd restart: %v: %s", err, out)
	}
	a.eventually("kept was restarted, removed is gone", func() error {
		out, err := a.verb("ps")
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[1], "removed") || len(f) > 4 && strings.HasPrefix(f[1], "kept") && (f[2] != "1/1" || f[4] == "0") {
				return errors.New(out)
			}
		}
		return err
	})
	if out, err := a.verb("restart", bound[1]); err != nil {
		t.Fatalf("podd restart: %v: %s", err, out)
	}
	restarted := func(p *v1.Pod) bool { return isReady(p) && p.Status.ContainerStatuses[0].RestartCount == 1 }
	a.until(bound[1], "was restarted", restarted)
	time.Sleep(outage(t)) // nothing happens, and that is to be seen
	back()
	since := time.Now()
	a.told(bound[1], "was restarted", restarted)
	a.mirrored("kept", "restarted", func(now *v1.Pod) bool {
		return now.UID == kept.UID && isReady(now) && now.Status.ContainerStatuses[0].RestartCount == 1
	})
	a.mirrored("new", "ready", isReady)
	a.unmirrored("removed")
	took := time.Since(since)
	t.Logf("right %s after the return", took.Round(time.Millisecond))
	if took > 5*time.Second && os.Getenv("PODD_E2E_OUTAGE") != "" { // whoever asked for it has a machine for it
		t.Error("that took longer than 5 s")
	}
	if now := a.told(bound[0], "is ready", isReady); containerIDs(now)["main"] != containerIDs(before)["main"] || now.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("got %+v, before %+v", now.Status, before.Status)
	}
}

// Events are the pod's as kubectl describe looks for them; a node on which nothing
// happens asks for nothing.
func TestMirrorEvents(t *testing.T) {
	a := newAgent(t, "w4").start()
	a.ready()
	a.write("web", webPod("web", "1000000"))
	m := a.mirrored("web", "ready", isReady)
	query := "/api/v1/namespaces/default/events?fieldSelector=" + url.QueryEscape("involvedObject.uid="+m.Annotations[configMirror])
	a.eventually("its events are there", func() error {
		var l v1.EventList
		if err := plane.ask(http.MethodGet, query, nil, &l); err != nil {
			return err
		}
		for _, reason := range []string{"Created", "Started"} {
			found := false
			for _, e := range l.Items {
				found = found || e.Reason == reason && e.Source.Component == "kubelet" && e.Source.Host == "w4" && e.InvolvedObject.FieldPath == "spec.containers{main}"
			}
			if !found {
				return fmt.Errorf("no %s among %+v", reason, l.Items)
			}
		}
		return nil
	})
	if out, err := kubectl(t, "describe", "pod", m.Name); err != nil || !strings.Contains(out, "Started container main") {
		t.Errorf("kubectl describe: %s", out)
	}
	a.eventually("nothing is asked about pods for 20s", func() error {
		since := time.Now()
		time.Sleep(20 * time.Second)
		n := plane.asked(t, "w4", since)
		if n["patch pods/status"]+n["create pods"]+n["delete pods"]+n["get pods"]+n["create events"]+n["patch events"] > 0 {
			return fmt.Errorf("asked %v", n)
		}
		return nil
	})
}
