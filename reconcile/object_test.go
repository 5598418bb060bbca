package reconcile_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/runtime/runtimetest"
)

// readsConf is a pod that mounts a ConfigMap and has a variable from a Secret.
const readsConf = `volumes: [{name: conf, configMap: {name: conf}}]
containers: [{name: app, image: "web:1", imagePullPolicy: IfNotPresent, env: [{name: P, valueFrom: {secretKeyRef: {name: key, key: p}}}]}]`

// setObjects sets the desired pods and the objects in a text.
func (m *machine) setObjects(objects string, pods ...*manifest.Pod) {
	file := decode.File([]byte(objects), decode.Options{Source: source, Path: source + "/o.yaml"})
	if len(file.Problems) > 0 {
		m.t.Fatal(file.Problems)
	}
	m.mu.Lock()
	m.objects = map[string]manifest.Objects{source: file.Objects}
	m.mu.Unlock()
	m.setPods(pods...)
}

func confAndKey(conf, key string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: %q}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {p: %q}\n", conf, key)
}

// file returns the content of the file named a in the pod's volume conf.
func (m *machine) file(p *manifest.Pod) string {
	data, err := os.ReadFile(filepath.Join(m.root, "pods", string(p.UID), "volumes/kubernetes.io~configmap/conf/a"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// why returns the published problem of a pod; "" if there is none.
func (m *machine) why(name string) string {
	if d := m.report(name).Decision; d.NeedsUser {
		return d.Why
	}
	return ""
}

// TestObjectsServePods checks that a pod waits for its objects and gets them, and that its files
// are updated when the objects change. A change of other objects wakes no worker.
func TestObjectsServePods(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "web", readsConf)
		m.start()
		m.setPods(p)
		m.settle()
		m.wantState()
		if why := m.why("web"); !strings.Contains(why, `ConfigMap "conf" (a.yaml:5) is not defined in /manifests (also missing: Secret "key" at a.yaml:6); the pod starts when the object exists`) {
			t.Errorf("reason why the pod waits: got %q, want the missing ConfigMap and Secret with their lines", why)
		}
		m.setObjects(confAndKey("one", "hunter2"), p)
		m.advance(100 * time.Millisecond)
		m.wantState("web 0 ready", "web/app 0 running")
		if got := m.file(p); got != "one" {
			t.Errorf("content of the file: got %q, want one", got)
		}
		m.ForgetCalls()
		m.setObjects(confAndKey("two", "hunter3"), p)
		m.advance(time.Millisecond)
		if got := m.file(p); got != "two" {
			t.Errorf("content of the file: got %q, want two", got)
		}
		m.settle()
		before := m.report("web")
		m.setObjects(confAndKey("two", "hunter3")+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n", p)
		m.settle()
		m.wantCalls()
		if m.report("web") != before {
			t.Error("report after an edit of another object: got a new one, want none")
		}
		// After the objects are deleted, the pod keeps running with its files.
		m.setPods(p)
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		if why := m.why("web"); !strings.Contains(why, "the pod keeps running") || m.file(p) != "two" {
			t.Errorf("got reason %q and file content %q, want a reason with \"the pod keeps running\" and content two", why, m.file(p))
		}
		m.setObjects(confAndKey("three", ""), p)
		m.settle()
		if why := m.why("web"); why != "" || m.file(p) != "three" {
			t.Errorf("got reason %q and file content %q, want no reason and content three", why, m.file(p))
		}
		m.wantCalls()
		m.setPods()
		m.settle()
		m.wantState()
		if dirs := m.dirs(); len(dirs) > 0 {
			t.Errorf("pod directories after the removal: got %v, want none", dirs)
		}
	})
}

// TestObjectsOverARestartOfPodd checks that files are updated after changes that were made while
// podd did not run. No pod restarts, except pods that request a restart if their objects changed.
func TestObjectsOverARestartOfPodd(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		asks := podOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: asks, annotations: {podd/restart-on-change: \"true\"}}\nspec:\n  "+strings.ReplaceAll(readsConf, "\n", "\n  "))
		p := pod(t, "web", readsConf)
		m.start()
		m.setObjects(confAndKey("one", "hunter2"), p, asks)
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running", "asks 0 ready", "asks/app 0 running")
		m.ForgetCalls()
		m.restart()
		m.wantCalls()
		m.kill()
		m.setObjects(confAndKey("two", "hunter2"), p)
		m.start()
		m.settle()
		if got := m.file(p); got != "two" {
			t.Errorf("content of the file: got %q, want two", got)
		}
		m.wantState("web 0 ready", "web/app 0 running")
	})
}

// TestRestartOnChange changes the objects of a pod that requests a restart on such changes. The pod is
// replaced as after an edit, as soon as all its objects exist.
func TestRestartOnChange(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		asks := podOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {podd/restart-on-change: \"true\"}}\nspec:\n  "+strings.ReplaceAll(readsConf, "\n", "\n  "))
		m.start()
		m.setObjects(confAndKey("one", "hunter2"), asks)
		m.settle()
		m.ForgetCalls()
		for _, objects := range []string{confAndKey("two", "hunter2"), confAndKey("two", "hunter3")} {
			m.setObjects(objects, asks)
			m.settle()
			m.wantState("web 0 ready", "web/app 0 running")
			m.wantCallsWith("RemovePodSandbox web", "StopContainer web/app", "StopPodSandbox web", "RunPodSandbox web", "CreateContainer web/app", "StartContainer web/app")
			m.ForgetCalls()
		}
		m.setObjects("", asks)
		m.settle()
		if why := m.why("web"); !strings.Contains(why, "the new version of the pod cannot start yet: ConfigMap") {
			t.Errorf("reason why the new version of the pod cannot start yet: got %q, want a missing ConfigMap", why)
		}
		m.restart()
		m.setObjects(confAndKey("two", "hunter3"), asks)
		m.settle()
		m.wantCalls()
		if len(m.dirs()) != 1 {
			t.Errorf("pod directories: got %v, want one", m.dirs())
		}
	})
}

// TestEditWaitsForItsObjects checks that an edit waits for its objects, while the files of the
// running version are updated from the objects of that version.
func TestEditWaitsForItsObjects(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		one := pod(t, "web", readsConf)
		two := pod(t, "web", strings.Replace(readsConf, "{name: conf}}]", "{name: conf}}, {name: more, secret: {secretName: more}}]", 1))
		m.start()
		m.setObjects(confAndKey("one", "hunter2"), one)
		m.settle()
		m.ForgetCalls()
		m.setObjects(confAndKey("one", "hunter2"), two)
		m.settle()
		if why := m.why("web"); !strings.Contains(why, `the new version of the pod cannot start yet: Secret "more" (a.yaml:5) is not defined in /manifests; the earlier version keeps running`) {
			t.Errorf("reason why the new version of the pod cannot start yet: got %q, want the missing Secret with its line", why)
		}
		m.setObjects(confAndKey("two", "hunter2"), two)
		m.settle()
		m.wantCalls()
		if got := m.file(one); got != "two" {
			t.Errorf("content of the file of the running version: got %q, want two", got)
		}
		m.setObjects(strings.Replace(confAndKey("two", "hunter2"), "---", "---\napiVersion: v1\nkind: Secret\nmetadata: {name: more}\n---", 1), two)
		m.advance(3 * time.Second)
		m.wantState("web 0 ready", "web/app 0 running")
		if len(m.Calls("StopContainer")) != 1 {
			t.Errorf("stops of the earlier version: got %d, want 1", len(m.Calls("StopContainer")))
		}
		m.setPods()
		m.settle()
	})
}

// TestStart_ObjectCorrected checks that a start that failed because of an object is retried as
// soon as the object is corrected, before its back-off ends.
func TestStart_ObjectCorrected(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "web", readsConf)
		m.start()
		m.setObjects(confAndKey("one", "nul\x00"), p)
		m.advance(5 * time.Minute)
		m.wantState("web 0 ready")
		r := m.report("web")
		if why := r.Decision.Steps[0].Why; !strings.Contains(why, "NUL") || strings.Contains(why, "nul\x00") || r.Decision.Steps[0].Reason != "CreateContainerConfigError" {
			t.Errorf("step: got %+v, want reason CreateContainerConfigError and a message about NUL without the value", r.Decision.Steps[0])
		}
		m.setObjects(confAndKey("one", "good"), p)
		m.advance(100 * time.Millisecond)
		m.wantState("web 0 ready", "web/app 0 running")
	})
}

// TestPullSecrets checks that a pod's pull Secret is used, and that a pull is retried as
// soon as the Secret is corrected.
func TestPullSecrets(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: "b", Password: "hunter2", PullDuration: time.Second})
		creds := func(password string) string {
			return `{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths": {"registry.example": {"username": "b", "password": "` + password + `"}}}'}}`
		}
		p := pod(t, "web", "imagePullSecrets: [{name: pull}]\ncontainers: [{name: app, image: \"registry.example/web:1\"}]")
		m.start()
		m.setPods(p)
		m.advance(5 * time.Minute)
		if story := m.state(); !strings.Contains(story, `the Secret "pull" in the pod's imagePullSecrets is not defined in /manifests`) {
			t.Errorf("state: got %s, want the name of the missing pull Secret", story)
		}
		m.setObjects(creds("wrong"), p)
		m.advance(5 * time.Minute)
		if story := m.state(); !strings.Contains(story, "401") || strings.Contains(story, "wrong") {
			t.Errorf("state: got %s, want error 401 without the credentials", story)
		}
		// The same applies if the Secret is corrected during a pull with the wrong Secret.
		m.setObjects(creds("wrong as well"), p)
		m.advance(500 * time.Millisecond)
		m.setObjects(creds("hunter2"), p)
		m.advance(3 * time.Second)
		m.wantState("web 0 ready", "web/app 0 running")
	})
}

// withObjects returns a copy of a set with the objects that were set last.
func (m *machine) withObjects(s *manifest.Set) *manifest.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.ObjectsBySource = maps.Clone(m.objects)
	m.objects = nil
	return s
}

// TestRestartOnChangeWithFixedUID checks a restart on changes of a pod with a fixed UID. The versions
// before and after the change have the same directory, which is removed in between.
func TestRestartOnChangeWithFixedUID(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		asks := podOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: fixed, annotations: {podd/restart-on-change: \"true\"}}\nspec:\n  "+strings.ReplaceAll(readsConf, "\n", "\n  "))
		m.start()
		m.setObjects(confAndKey("one", "hunter2"), asks)
		m.settle()
		m.restart()
		m.ForgetCalls()
		m.setObjects(confAndKey("two", "hunter2"), asks)
		m.settle()
		m.wantState("web 1 ready", "web/app 0 running")
		if got := m.file(asks); got != "two" || len(m.Calls("StopContainer")) != 1 {
			t.Errorf("got file content %q and %d stops of containers, want content two and 1 stop", got, len(m.Calls("StopContainer")))
		}
		m.ForgetCalls()
		m.restart()
		m.wantCalls()
	})
}
