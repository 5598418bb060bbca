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

// webPod returns a manifest of a pod with a readiness probe. version is the argument of the pod's
// command sleep, so that manifests with different versions differ in their spec. The argument must be a
// number of seconds that exceeds the duration of the test.
func webPod(name, version string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s},
spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "podd.test/busybox:1", command: [sleep, "%s"],
  readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1, timeoutSeconds: 30}}]}}`, name, version)
}

func (p *controlPlane) pod(namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	return pod, p.do(http.MethodGet, "/api/v1/namespaces/"+namespace+"/pods/"+name, nil, pod)
}

// untilMirror waits until the function isDone returns true for the mirror pod of a static pod, and
// returns the mirror pod.
func (a *agent) untilMirror(name, what string, isDone func(*v1.Pod) bool) (m *v1.Pod) {
	a.t.Helper()
	a.eventually("the mirror pod of "+name+" is "+what, func() (err error) {
		if m, err = plane.pod("default", name+"-"+a.node); err == nil && !isDone(m) {
			err = fmt.Errorf("got annotations %+v, UID %s, status %+v", m.Annotations, m.UID, m.Status)
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

// containerID returns the ID of the pod's only container.
func containerID(m *v1.Pod) string {
	if len(m.Status.ContainerStatuses) == 0 {
		return ""
	}
	return m.Status.ContainerStatuses[0].ContainerID
}

// TestMirror checks that podd creates, updates and deletes the mirror pod of a static pod, even if
// a client has deleted the mirror pod or podd was restarted. The static pod must keep running.
func TestMirror(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "w1").start()
	node := a.untilReady()
	a.write("web", webPod("web", "1000001"))
	m := a.untilMirror("web", "ready", isReady)
	if o := m.OwnerReferences; len(o) != 1 || o[0].UID != node.UID || m.Annotations[configMirror] == "" || m.Annotations[configMirror] != m.Annotations[configHash] {
		t.Errorf("mirror pod: got %+v, want the node as owner, and equal annotations %s and %s", m.ObjectMeta, configMirror, configHash)
	}
	if out, err := kubectl(t, "get", "pods", m.Name); err != nil || !strings.Contains(out, "1/1") || !strings.Contains(out, "Running") {
		t.Errorf("kubectl get pods: got %s; want output with %q and with %q", out, "1/1", "Running")
	}

	// If a client deletes the mirror pod, podd creates it again.
	if err := plane.do(http.MethodDelete, "/api/v1/namespaces/default/pods/"+m.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	again := a.untilMirror("web", "created again", func(now *v1.Pod) bool { return now.UID != m.UID && isReady(now) })
	if containerID(again) != containerID(m) || again.Annotations[configMirror] != m.Annotations[configMirror] {
		t.Errorf("after the deletion of the mirror pod: got container %s and hash %s, want container %s and hash %s", containerID(again), again.Annotations[configMirror], containerID(m), m.Annotations[configMirror])
	}

	// The mirror pod reports a restart of the static pod.
	if out, err := a.verb("restart", m.Name); err != nil {
		t.Fatalf("podd restart: %v: %s", err, out)
	}
	a.untilMirror("web", "restarted", func(now *v1.Pod) bool { return isReady(now) && now.Status.ContainerStatuses[0].RestartCount == 1 })

	a.write("web", webPod("web", "1000002"))
	a.untilMirror("web", "of the new version", func(now *v1.Pod) bool {
		return now.Annotations[configMirror] != m.Annotations[configMirror] && now.Spec.Containers[0].Command[1] == "1000002" && isReady(now)
	})

	// After a restart, podd keeps the mirror pods of its static pods, and deletes the mirror pod of a
	// static pod that was removed in the meantime.
	a.write("other", webPod("other", "1000001"))
	before := a.untilMirror("other", "ready", isReady)
	a.kill()
	if err := os.Remove(filepath.Join(a.manifestDir(), "web.yaml")); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.untilNoMirror("web")
	if now := a.untilMirror("other", "ready", isReady); now.UID != before.UID || containerID(now) != containerID(before) {
		t.Errorf("after a restart: got mirror pod %s with container %s, want mirror pod %s with container %s", now.UID, containerID(now), before.UID, containerID(before))
	}
	if err := os.Remove(filepath.Join(a.manifestDir(), "other.yaml")); err != nil {
		t.Fatal(err)
	}
	a.untilNoMirror("other")
}

func (a *agent) untilNoMirror(name string) {
	a.t.Helper()
	a.eventually("there is no mirror pod of "+name, func() error {
		if _, err := plane.pod("default", name+"-"+a.node); !errors.Is(err, errNotFound) {
			return fmt.Errorf("got error %v, want not found", err)
		}
		return nil
	})
}

// TestMirror_References checks that a mirror pod lists the pod's references to objects in an
// annotation, because an API server rejects mirror pods with such references. If the namespace does
// not exist, podd must report this, and must create the mirror pod when the namespace exists.
func TestMirror_References(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "w2").start()
	a.untilReady()
	a.write("web", `{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {k: v}}
---
{apiVersion: v1, kind: Secret, metadata: {name: cred}, stringData: {k: hunter2}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, serviceAccountName: robot, priority: 5,
  containers: [{name: main, image: "podd.test/busybox:1", command: [sleep, "1000000"], env: [{name: A, valueFrom: {secretKeyRef: {name: cred, key: k}}}],
    volumeMounts: [{name: conf, mountPath: /conf}]}],
  volumes: [{name: conf, configMap: {name: conf}}]}}
`)
	m := a.untilMirror("web", "ready", isReady)
	if got := m.Annotations[localRefs]; got != "ConfigMap/conf,Secret/cred,ServiceAccount/robot" || len(m.Spec.Volumes) > 0 || m.Annotations[configMirror] != m.Annotations[configHash] {
		t.Errorf("mirror pod: got annotations %+v, volumes %+v, want the references \"ConfigMap/conf,Secret/cred,ServiceAccount/robot\" and no volumes", m.Annotations, m.Spec.Volumes)
	}
	a.write("lab", strings.Replace(webPod("lab", "1000000"), "{name: lab}", "{name: lab, namespace: lab}", 1))
	a.untilPs(`creating the mirror pod failed: namespaces "lab" not found`, true)
	namespace := &v1.Namespace{}
	namespace.Name = "lab"
	if err := plane.do(http.MethodPost, "/api/v1/namespaces", namespace, nil); err != nil {
		t.Fatal(err)
	}
	a.eventually("lab has its mirror pod", func() error {
		m, err := plane.pod("lab", "lab-w2")
		if err == nil && !isReady(m) {
			err = fmt.Errorf("got %+v", m.Status)
		}
		return err
	})
	a.untilPs("creating the mirror pod failed", false)
	if n := a.countInLog("creating the mirror pod failed"); n != 1 {
		t.Errorf("log: got \"creating the mirror pod failed\" %d times, want it once", n)
	}
}

// TestMirror_Outage checks that changes during an outage of the API server reach the cluster
// within 5 s after the outage, and that nothing else changes. $PODD_E2E_OUTAGE is the length of
// the outage. Without this variable the update may take longer, because the host may be slow.
func TestMirror_Outage(t *testing.T) {
	a := newAgent(t, "w3").start()
	a.untilReady()
	a.write("kept", webPod("kept", "1000000"))
	a.write("removed", webPod("removed", "1000000"))
	kept := a.untilMirror("kept", "ready", isReady)
	a.untilMirror("removed", "ready", isReady)
	bound := []string{createBoundPod(t, a.node, "w3-kept", nil, sleepingContainer("main")).Name, createBoundPod(t, a.node, "w3-ends", nil, sleepingContainer("main")).Name}
	before := a.untilStatus(bound[0], "is ready", isReady)
	a.untilStatus(bound[1], "is ready", isReady)
	restart := plane.killAPIServer(t)
	if err := os.Remove(filepath.Join(a.manifestDir(), "removed.yaml")); err != nil {
		t.Fatal(err)
	}
	a.write("new", webPod("new", "1000000"))
	a.untilRunning("new")
	if out, err := a.verb("restart", kept.Name); err != nil {
		t.Fatalf("podd restart: %v: %s", err, out)
	}
	a.eventually("podd ps shows that pod kept was restarted and that pod removed was deleted", func() error {
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
	a.untilPod(bound[1], "was restarted", restarted)
	time.Sleep(outageLength(t)) // during this time, podd must change nothing
	restart()
	since := time.Now()
	a.untilStatus(bound[1], "was restarted", restarted)
	a.untilMirror("kept", "restarted", func(now *v1.Pod) bool {
		return now.UID == kept.UID && isReady(now) && now.Status.ContainerStatuses[0].RestartCount == 1
	})
	a.untilMirror("new", "ready", isReady)
	a.untilNoMirror("removed")
	took := time.Since(since)
	t.Logf("the API server has the status of all pods %s after the restart of the API server", took.Round(time.Millisecond))
	// $PODD_E2E_OUTAGE is only set on hosts that are fast enough for this limit.
	if took > 5*time.Second && os.Getenv("PODD_E2E_OUTAGE") != "" {
		t.Errorf("updating the cluster after the outage: got %s, want 5 s or less", took)
	}
	if now := a.untilStatus(bound[0], "is ready", isReady); containerIDs(now)["main"] != containerIDs(before)["main"] || now.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("pod %s: got status %+v, want the container of %+v without a restart", bound[0], now.Status, before.Status)
	}
}

// TestMirror_Events checks that events refer to the mirror pod as kubectl describe requires, and
// that an idle node sends no requests about pods.
func TestMirror_Events(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "w4").start()
	a.untilReady()
	a.write("web", webPod("web", "1000000"))
	m := a.untilMirror("web", "ready", isReady)
	query := "/api/v1/namespaces/default/events?fieldSelector=" + url.QueryEscape("involvedObject.uid="+m.Annotations[configMirror])
	a.eventually("the mirror pod has events", func() error {
		var l v1.EventList
		if err := plane.do(http.MethodGet, query, nil, &l); err != nil {
			return err
		}
		for _, reason := range []string{"Created", "Started"} {
			found := false
			for _, e := range l.Items {
				found = found || e.Reason == reason && e.Source.Component == "kubelet" && e.Source.Host == "w4" && e.InvolvedObject.FieldPath == "spec.containers{main}"
			}
			if !found {
				return fmt.Errorf("got events %+v, want one with the reason %s for the container main", l.Items, reason)
			}
		}
		return nil
	})
	if out, err := kubectl(t, "describe", "pod", m.Name); err != nil || !strings.Contains(out, "Started container main") {
		t.Errorf("kubectl describe: got %s, want %q in it", out, "Started container main")
	}
	a.eventually("podd sends no request about pods for 20s", func() error {
		since := time.Now()
		time.Sleep(20 * time.Second)
		n := plane.requestCounts(t, "w4", since)
		if n["patch pods/status"]+n["create pods"]+n["delete pods"]+n["get pods"]+n["create events"]+n["patch events"] > 0 {
			return fmt.Errorf("got the requests %v, want none for pods and events", n)
		}
		return nil
	})
}
