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
	"podd/runtime/runtimetest"
)

// readsConf is a pod that mounts a ConfigMap and has a variable of a Secret.
const readsConf = `volumes: [{name: conf, configMap: {name: conf}}]
containers: [{name: app, image: "web:1", imagePullPolicy: IfNotPresent, env: [{name: P, valueFrom: {secretKeyRef: {name: key, key: p}}}]}]`

// give makes exactly these pods wanted, beside the objects of a text.
func (m *machine) give(objects string, pods ...*manifest.Pod) {
	file := manifest.Decode([]byte(objects), manifest.Options{Source: source, Path: source + "/o.yaml"})
	if len(file.Problems) > 0 {
		m.t.Fatal(file.Problems)
	}
	m.mu.Lock()
	m.objects = map[string]manifest.Objects{source: file.Objects}
	m.mu.Unlock()
	m.want(pods...)
}

func confAndKey(conf, key string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: %q}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {p: %q}\n", conf, key)
}

// file is what the pod's volume conf holds as a.
func (m *machine) file(p *manifest.Pod) string {
	data, err := os.ReadFile(filepath.Join(m.root, "pods", string(p.UID), "volumes/kubernetes.io~configmap/conf/a"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// why is what is shown of a pod, "" unless it is a problem.
func (m *machine) why(name string) string {
	if d := m.report(name).Decision; d.Problem {
		return d.Why
	}
	return ""
}

// TestObjectsServePods: a pod waits for its objects, has them, and its files
// follow them; an edit of others wakes nobody.
func TestObjectsServePods(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "web", readsConf)
		m.start()
		m.want(p)
		m.settle()
		m.is()
		if why := m.why("web"); !strings.Contains(why, `ConfigMap "conf" (a.yaml:5) is not in /manifests (likewise Secret "key" at a.yaml:6); the pod starts when it is there`) {
			t.Errorf("why: %q", why)
		}
		m.give(confAndKey("one", "hunter2"), p)
		m.pass(100 * time.Millisecond)
		m.is("web 0 ready", "web/app 0 running")
		if got := m.file(p); got != "one" {
			t.Errorf("the file is %q", got)
		}
		m.Forget()
		m.give(confAndKey("two", "hunter3"), p)
		m.pass(time.Millisecond)
		if got := m.file(p); got != "two" {
			t.Errorf("the file is %q", got)
		}
		m.settle()
		before := m.report("web")
		m.give(confAndKey("two", "hunter3")+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n", p)
		m.settle()
		m.did()
		if m.report("web") != before {
			t.Error("an edit of another object woke the pod")
		}
		// They go: the pod runs on with what it has.
		m.want(p)
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if why := m.why("web"); !strings.Contains(why, "the pod runs on") || m.file(p) != "two" {
			t.Errorf("why: %q, the file is %q", why, m.file(p))
		}
		m.give(confAndKey("three", ""), p)
		m.settle()
		if why := m.why("web"); why != "" || m.file(p) != "three" {
			t.Errorf("why: %q, the file is %q", why, m.file(p))
		}
		m.did()
		m.want()
		m.settle()
		m.is()
		if dirs := m.dirs(); len(dirs) > 0 {
			t.Errorf("left: %v", dirs)
		}
	})
}

// TestObjectsOverARestartOfPodd: what changed meanwhile is followed, and nothing
// restarts, nor does what asks to be restarted unless something changed.
func TestObjectsOverARestartOfPodd(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		asks := podOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: asks, annotations: {podd/restart-on-change: \"true\"}}\nspec:\n  "+strings.ReplaceAll(readsConf, "\n", "\n  "))
		p := pod(t, "web", readsConf)
		m.start()
		m.give(confAndKey("one", "hunter2"), p, asks)
		m.settle()
		m.is("web 0 ready", "web/app 0 running", "asks 0 ready", "asks/app 0 running")
		m.Forget()
		m.restart()
		m.did()
		m.kill()
		m.give(confAndKey("two", "hunter2"), p)
		m.start()
		m.settle()
		if got := m.file(p); got != "two" {
			t.Errorf("the file is %q", got)
		}
		m.is("web 0 ready", "web/app 0 running")
	})
}

// TestRestartOnChange: a pod that asks for it is replaced as by an edit, once
// its objects are there.
func TestRestartOnChange(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		asks := podOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {podd/restart-on-change: \"true\"}}\nspec:\n  "+strings.ReplaceAll(readsConf, "\n", "\n  "))
		m.start()
		m.give(confAndKey("one", "hunter2"), asks)
		m.settle()
		m.Forget()
		for _, objects := range []string{confAndKey("two", "hunter2"), confAndKey("two", "hunter3")} {
			m.give(objects, asks)
			m.settle()
			m.is("web 0 ready", "web/app 0 running")
			m.didBeside("RemovePodSandbox web", "StopContainer web/app", "StopPodSandbox web", "RunPodSandbox web", "CreateContainer web/app", "StartContainer web/app")
			m.Forget()
		}
		m.give("", asks)
		m.settle()
		if why := m.why("web"); !strings.Contains(why, "the edit waits: ConfigMap") {
			t.Errorf("why: %q", why)
		}
		m.restart()
		m.give(confAndKey("two", "hunter3"), asks)
		m.settle()
		m.did()
		if len(m.dirs()) != 1 {
			t.Errorf("directories %v", m.dirs())
		}
	})
}

// TestEditWaitsForItsObjects: and the files of the version that runs go on
// following theirs.
func TestEditWaitsForItsObjects(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		one := pod(t, "web", readsConf)
		two := pod(t, "web", strings.Replace(readsConf, "{name: conf}}]", "{name: conf}}, {name: more, secret: {secretName: more}}]", 1))
		m.start()
		m.give(confAndKey("one", "hunter2"), one)
		m.settle()
		m.Forget()
		m.give(confAndKey("one", "hunter2"), two)
		m.settle()
		if why := m.why("web"); !strings.Contains(why, `the edit waits: Secret "more" (a.yaml:5) is not in /manifests; the earlier version runs on`) {
			t.Errorf("why: %q", why)
		}
		m.give(confAndKey("two", "hunter2"), two)
		m.settle()
		m.did()
		if got := m.file(one); got != "two" {
			t.Errorf("the file of the version that runs is %q", got)
		}
		m.give(strings.Replace(confAndKey("two", "hunter2"), "---", "---\napiVersion: v1\nkind: Secret\nmetadata: {name: more}\n---", 1), two)
		m.pass(3 * time.Second)
		m.is("web 0 ready", "web/app 0 running")
		if len(m.Calls("StopContainer")) != 1 {
			t.Error("the edit did not take over")
		}
		m.want()
		m.settle()
	})
}

// TestStartWaitsNoLonger: what failed for an object is tried as soon as it is
// mended, not when its time comes.
func TestStartWaitsNoLonger(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		p := pod(t, "web", readsConf)
		m.start()
		m.give(confAndKey("one", "nul\x00"), p)
		m.pass(5 * time.Minute)
		m.is("web 0 ready")
		r := m.report("web")
		if why := r.Decision.Steps[0].Why; !strings.Contains(why, "NUL") || strings.Contains(why, "nul\x00") || r.Decision.Steps[0].Reason != "CreateContainerConfigError" {
			t.Errorf("%+v", r.Decision.Steps[0])
		}
		m.give(confAndKey("one", "good"), p)
		m.pass(100 * time.Millisecond)
		m.is("web 0 ready", "web/app 0 running")
	})
}

// TestPullSecrets: an image that one pod's Secret opens, and that is tried again
// as soon as the Secret is right.
func TestPullSecrets(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddRemote(runtimetest.Remote{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: "b", Password: "hunter2", Takes: time.Second})
		creds := func(password string) string {
			return `{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths": {"registry.example": {"username": "b", "password": "` + password + `"}}}'}}`
		}
		p := pod(t, "web", "imagePullSecrets: [{name: pull}]\ncontainers: [{name: app, image: \"registry.example/web:1\"}]")
		m.start()
		m.want(p)
		m.pass(5 * time.Minute)
		if story := m.story(); !strings.Contains(story, `the Secret "pull" of its imagePullSecrets is not in /manifests`) {
			t.Errorf("%s", story)
		}
		m.give(creds("wrong"), p)
		m.pass(5 * time.Minute)
		if story := m.story(); !strings.Contains(story, "401") || strings.Contains(story, "wrong") {
			t.Errorf("%s", story)
		}
		// Also when it is mended while a pull with the wrong one is under way.
		m.give(creds("wrong as well"), p)
		m.pass(500 * time.Millisecond)
		m.give(creds("hunter2"), p)
		m.pass(3 * time.Second)
		m.is("web 0 ready", "web/app 0 running")
	})
}

// withObjects is a set's copy with the objects given last.
func (m *machine) withObjects(s *manifest.Set) *manifest.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Objects = maps.Clone(m.objects)
	m.objects = nil
	return s
}

// TestRestartOnChangeWithFixedUID: the directory is the same then, and goes
// between the two.
func TestRestartOnChangeWithFixedUID(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		asks := podOf(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: fixed, annotations: {podd/restart-on-change: \"true\"}}\nspec:\n  "+strings.ReplaceAll(readsConf, "\n", "\n  "))
		m.start()
		m.give(confAndKey("one", "hunter2"), asks)
		m.settle()
		m.restart()
		m.Forget()
		m.give(confAndKey("two", "hunter2"), asks)
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if got := m.file(asks); got != "two" || len(m.Calls("StopContainer")) != 1 {
			t.Errorf("the file is %q after %d stops", got, len(m.Calls("StopContainer")))
		}
		m.Forget()
		m.restart()
		m.did()
	})
}
