package reconcile_test

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/golden"
)

// takeEvents returns the events since its last call, one per line, sorted by their objects. An
// event that occurred n times is one line with the suffix "(xn)".
func (m *machine) takeEvents() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	count := map[string]int{}
	// The order of events of two objects at the same time is not specified.
	slices.SortStableFunc(m.events, func(a, b event.Event) int {
		return cmp.Or(strings.Compare(a.Pod.Name, b.Pod.Name), strings.Compare(a.FieldPath, b.FieldPath))
	})
	for _, e := range m.events {
		who := e.FieldPath
		if e.Pod.Name == "" {
			who = "node"
		}
		line := strings.TrimSpace(fmt.Sprintf("%-7s %s %s: %s", e.Type, e.Reason, who, e.Message))
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	m.events = nil
	for i, line := range lines {
		if n := count[line]; n > 1 {
			lines[i] = fmt.Sprintf("%s (x%d)", line, n)
		}
	}
	return strings.Join(append(lines, ""), "\n")
}

// eventScenarios are the scenarios whose events are in testdata/event. After each step, a scenario
// calls the function then with a description of the step, which records the events since the last call.
var eventScenarios = map[string]func(t *testing.T, m *machine, then func(string)){
	"life": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		then("the pod starts")
		m.kill()
		m.start()
		m.settle()
		then("podd restarts")
		m.setPods()
		m.settle()
		then("the pod is removed")
	},
	"pull": func(t *testing.T, m *machine, then func(string)) {
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "far:1"}, PullDuration: time.Second})
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "away:1"}, Err: errors.New("no such host")})
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "far:1"}]`))
		m.settle()
		then("the image is pulled")
		m.setPods(pod(t, "web", `containers: [{name: app, image: "away:1"}]`))
		m.settle()
		then("the pull of the new image of an edit fails")
		m.setPods(pod(t, "never", `containers: [{name: app, image: "missing:1", imagePullPolicy: Never}]`))
		m.settle()
		then("the missing image of the pod \"never\" must not be pulled; the pod \"web\" is removed")
	},
	"crash": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", command: [exit, "3"]}]`))
		m.advance(3 * time.Minute)
		then("the container crashes")
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", command: [/no/such]}]`))
		m.advance(20 * time.Second)
		then("the container cannot be started")
	},
	"probes": func(t *testing.T, m *machine, then func(string)) {
		c := newCommands(m)
		c.setResult("started", bad)
		m.start()
		m.setPods(pod(t, "web", probed))
		m.advance(2500 * time.Millisecond)
		then("the startup probe fails")
		c.succeed("started")
		m.advance(6 * time.Second)
		then("the startup probe passes")
		c.setResult("alive", bad)
		m.advance(17 * time.Second)
		then("the liveness probe fails")
		c.setResult("ready", runtimetest.Program{ExitsByItself: true, ExitCode: 1, Output: strings.Repeat("word ", 5000)})
		c.succeed("alive")
		m.advance(25 * time.Second)
		then("the readiness probe fails")
	},
	"hooks": func(t *testing.T, m *machine, then func(string)) {
		c := newCommands(m)
		c.setResult("warm", bad)
		c.setResult("drain", bad)
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", lifecycle: {postStart: {exec: {command: [warm]}}, preStop: {exec: {command: [drain]}}}}]`))
		m.advance(5 * time.Second)
		then("both hooks fail")
		c.succeed("warm")
		m.advance(time.Minute)
		then("the postStart hook succeeds")
		m.setPods()
		m.settle()
		then("the pod is removed")
	},
	"objects": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		m.setPods(pod(t, "web", readsConf))
		m.settle()
		then("the ConfigMap and the Secret are missing")
		m.setObjects("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: b}\n", pod(t, "web", readsConf))
		m.settle()
		then("the Secret is missing")
		m.setObjects(confAndKey("a", "b"), pod(t, "web", readsConf))
		m.settle()
		then("the ConfigMap and the Secret exist")
		m.setObjects(confAndKey("a", "b"), pod(t, "web", `volumes: [{name: disk, hostPath: {path: /no/such/path, type: Directory}}]
containers: [{name: app, image: "web:1"}]`))
		m.settle()
		then("an edit mounts a path that does not exist")
	},
	"sandbox": func(t *testing.T, m *machine, then func(string)) {
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, Err: errors.New("no addresses left")})
		m.start()
		web := pod(t, "web", "containers: [{name: app, image: \"web:1\"}]")
		m.setPods(web)
		m.settle()
		then("the first sandbox cannot be created")
		m.killSandbox("web")
		m.settle()
		then("the sandbox stops by itself")
		if err := m.current().router.Evict(t.Context(), key("web"), plan.Eviction{UID: web.UID, Hash: web.Hash, Message: "too big"}); err != nil {
			t.Fatal(err)
		}
		m.settle()
		then("the pod is evicted")
		m.setPods(pod(t, "long", `hostname: `+strings.Repeat("a", 60)+`
subdomain: s
setHostnameAsFQDN: true
containers: [{name: app, image: "web:1"}]`))
		m.settle()
		then("another pod has a hostname that is too long")
	},
	"sandbox-status": func(t *testing.T, m *machine, then func(string)) {
		remove := m.Inject(runtimetest.Fault{Method: "PodSandboxStatus", Err: errors.New("context deadline exceeded")})
		m.start()
		m.setPods(pod(t, "web", "containers: [{name: app, image: \"web:1\"}]"))
		m.advance(time.Second)
		then("the status of the new sandbox cannot be queried")
		remove()
		m.advance(time.Minute)
		then("the runtime responds")
	},
	"eviction": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		web := pod(t, "web", "containers: [{name: app, image: \"web:1\"}]")
		m.setPods(web)
		m.settle()
		m.takeEvents()
		remove := m.Inject(runtimetest.Fault{Method: "StopContainer", Err: errors.New("shim does not respond")})
		if err := m.current().router.Evict(t.Context(), key("web"), plan.Eviction{UID: web.UID, Hash: web.Hash, Message: "too big"}); err != nil {
			t.Fatal(err)
		}
		m.advance(9 * time.Second)
		then("the runtime does not kill the evicted pod")
		m.advance(2 * time.Second)
		then("the pod still runs after 10 seconds")
		remove()
		m.advance(time.Minute)
		then("the runtime kills the pod")
	},
	"resize": func(t *testing.T, m *machine, then func(string)) {
		m.options = func(o *reconcile.Options) {
			o.Limits = admission.Limits{Allocatable: admission.Amounts{v1.ResourceMemory: 256 << 20}}
		}
		m.start()
		other := sizedPod(t, "other", "128Mi", "")
		m.setPods(other, sizedPod(t, "web", "64Mi", ""))
		m.settle()
		m.takeEvents()
		m.setPods(other, sizedPod(t, "web", "96Mi", ""))
		m.settle()
		then("the pod is resized")
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", Err: errors.New("device or resource busy")})
		m.setPods(other, sizedPod(t, "web", "48Mi", ""))
		m.advance(20 * time.Second)
		then("a resize fails")
		m.setPods(other, sizedPod(t, "web", "32Mi", ""))
		m.settle()
		then("a resize to another size fails")
		remove()
		m.advance(time.Minute)
		then("the runtime accepts the size, so that the retry succeeds")
		m.setPods(other, sizedPod(t, "web", "192Mi", ""))
		m.settle()
		then("the new size does not fit while the other pod runs")
		m.setPods(other, sizedPod(t, "web", "1Gi", ""))
		m.settle()
		then("the new size exceeds the node")
		m.setPods(other, sizedPod(t, "web", "32Mi", ""))
		m.settle()
		then("the desired size is the actual size again")
		m.setPods(other, sizedPod(t, "web", "192Mi", ""))
		m.settle()
		m.takeEvents()
		m.setPods(sizedPod(t, "web", "192Mi", ""))
		m.settle()
		then("the other pod is removed, so that the new size fits")
	},
	"refused": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		web := pod(t, "web", "containers: [{name: app, image: \"web:1\"}]")
		m.setPods(web)
		m.settle()
		then("the pod starts")
		bad := manifest.Problem{Severity: manifest.Error, Path: web.Origin.Path, Position: manifest.Position{Line: 3, Column: 2}, FieldPath: "spec.containers[0].image", Message: "required"}
		other := bad
		other.Path = source + "/b.yaml"
		warning := bad
		warning.Severity = manifest.Warning
		for range 2 {
			set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{web.Key: web}, CompleteSources: map[string]bool{source: true}, Problems: []manifest.Problem{bad, other, warning}}
			send(m.podd.ctx, m.podd.sets, set)
			m.settle()
		}
		then("an edit of the pod's file and another file are invalid")
		foreign := pod(t, "theirs", "containers: [{name: app, image: \"web:1\"}]")
		m.makeForeign("theirs")
		m.setPods(web, foreign)
		m.settle()
		then("a pod has the name of a pod that podd did not create")
	},
}

// TestEvents checks which events a pod has, with their messages and counts.
func TestEvents(t *testing.T) {
	for name, scenario := range eventScenarios {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				var b strings.Builder
				scenario(t, m, func(what string) { b.WriteString("# " + what + "\n" + m.takeEvents()) })
				text := strings.ReplaceAll(b.String(), string(pod(t, "web", readsConf).UID), "UID")
				golden.Compare(t, filepath.Join("../testdata/event", name+".txt"), text)
			})
		})
	}
}

// TestNodeEvents checks that the node has one event when it becomes ready, and one when it
// stops being ready.
func TestNodeEvents(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.settle()
		m.Disconnect()
		m.advance(time.Minute)
		m.Reconnect()
		m.advance(time.Minute)
		var words []string
		for _, e := range m.events {
			words = append(words, e.Reason)
		}
		if want := []string{"NodeReady", "NodeNotReady", "NodeReady"}; !slices.Equal(words, want) {
			t.Errorf("events of the node: got %q, want %q", words, want)
		}
	})
}
