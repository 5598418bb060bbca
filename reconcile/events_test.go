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

// takeEvents returns the events since its last call, sorted by their objects. Repeated events
// are counted.
func (m *machine) takeEvents() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	count := map[string]int{}
	// Events of two objects at the same time come in any order.
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

// eventScenarios are the scenarios whose events are in testdata/event.
var eventScenarios = map[string]func(t *testing.T, m *machine, then func(string)){
	"life": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		then("starts")
		m.kill()
		m.start()
		m.settle()
		then("podd starts anew")
		m.setPods()
		m.settle()
		then("is removed")
	},
	"pull": func(t *testing.T, m *machine, then func(string)) {
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "far:1"}, PullDuration: time.Second})
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "away:1"}, Err: errors.New("no such host")})
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "far:1"}]`))
		m.settle()
		then("comes from afar")
		m.setPods(pod(t, "web", `containers: [{name: app, image: "away:1"}]`))
		m.settle()
		then("the image of an edit does not come")
		m.setPods(pod(t, "never", `containers: [{name: app, image: "missing:1", imagePullPolicy: Never}]`))
		m.settle()
		then("it is not to be fetched; the other pod is removed")
	},
	"crash": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", command: [exit, "3"]}]`))
		m.advance(3 * time.Minute)
		then("crashes")
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", command: [/no/such]}]`))
		m.advance(20 * time.Second)
		then("cannot be started")
	},
	"probes": func(t *testing.T, m *machine, then func(string)) {
		c := newCommands(m)
		c.setResult("started", bad)
		m.start()
		m.setPods(pod(t, "web", probed))
		m.advance(2500 * time.Millisecond)
		then("is starting")
		c.succeed("started")
		m.advance(6 * time.Second)
		then("has started")
		c.setResult("alive", bad)
		m.advance(17 * time.Second)
		then("is not alive")
		c.setResult("ready", runtimetest.Program{ExitsByItself: true, ExitCode: 1, Output: strings.Repeat("word ", 5000)})
		c.succeed("alive")
		m.advance(25 * time.Second)
		then("is not ready")
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
		then("heals")
		m.setPods()
		m.settle()
		then("is removed")
	},
	"objects": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		m.setPods(pod(t, "web", readsConf))
		m.settle()
		then("nothing is there")
		m.setObjects("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {a: b}\n", pod(t, "web", readsConf))
		m.settle()
		then("the Secret is not")
		m.setObjects(confAndKey("a", "b"), pod(t, "web", readsConf))
		m.settle()
		then("all is there")
		m.setObjects(confAndKey("a", "b"), pod(t, "web", `volumes: [{name: disk, hostPath: {path: /no/such/path, type: Directory}}]
containers: [{name: app, image: "web:1"}]`))
		m.settle()
		then("an edit wants a path")
	},
	"sandbox": func(t *testing.T, m *machine, then func(string)) {
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, Err: errors.New("no addresses left")})
		m.start()
		web := pod(t, "web", "containers: [{name: app, image: \"web:1\"}]")
		m.setPods(web)
		m.settle()
		then("the network fails once")
		m.killSandbox("web")
		m.settle()
		then("the sandbox dies")
		if err := m.current().router.Evict(t.Context(), key("web"), plan.Eviction{UID: web.UID, Hash: web.Hash, Message: "too big"}); err != nil {
			t.Fatal(err)
		}
		m.settle()
		then("is evicted")
		m.setPods(pod(t, "long", `hostname: `+strings.Repeat("a", 60)+`
subdomain: s
setHostnameAsFQDN: true
containers: [{name: app, image: "web:1"}]`))
		m.settle()
		then("another pod has a hostname that is too long")
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
		then("is resized")
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", Err: errors.New("device or resource busy")})
		m.setPods(other, sizedPod(t, "web", "48Mi", ""))
		m.advance(20 * time.Second)
		then("cannot be resized")
		m.setPods(other, sizedPod(t, "web", "32Mi", ""))
		m.settle()
		then("cannot be resized to another size")
		remove()
		m.advance(time.Minute)
		then("is resized when the runtime permits it")
		m.setPods(other, sizedPod(t, "web", "192Mi", ""))
		m.settle()
		then("does not fit now")
		m.setPods(other, sizedPod(t, "web", "1Gi", ""))
		m.settle()
		then("never fits")
		m.setPods(other, sizedPod(t, "web", "32Mi", ""))
		m.settle()
		then("keeps its size")
		m.setPods(other, sizedPod(t, "web", "192Mi", ""))
		m.settle()
		m.takeEvents()
		m.setPods(sizedPod(t, "web", "192Mi", ""))
		m.settle()
		then("the other pod is removed")
	},
	"refused": func(t *testing.T, m *machine, then func(string)) {
		m.start()
		web := pod(t, "web", "containers: [{name: app, image: \"web:1\"}]")
		m.setPods(web)
		m.settle()
		then("starts")
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
		then("an edit of it is bad, and another file")
		foreign := pod(t, "theirs", "containers: [{name: app, image: \"web:1\"}]")
		m.makeForeign("theirs")
		m.setPods(web, foreign)
		m.settle()
		then("a name is taken")
	},
}

// TestEvents checks which events a pod has, with their messages and counts.
func TestEvents(t *testing.T) {
	for name, tale := range eventScenarios {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				var b strings.Builder
				tale(t, m, func(what string) { b.WriteString("# " + what + "\n" + m.takeEvents()) })
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
