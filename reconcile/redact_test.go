package reconcile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

// markedPod returns the manifest of a pod with a marker in every private field that podd serves
// without a cluster, and the markers. Each version has its own markers.
func markedPod(t *testing.T, version int) (*manifest.Pod, []string) {
	t.Helper()
	var markers []string
	mark := func() string {
		markers = append(markers, fmt.Sprintf("marker%d%08dx", version, len(markers)))
		return markers[len(markers)-1]
	}
	word := func() string { // as short as a bad password
		markers = append(markers, fmt.Sprintf("zq%c%c%c", 'a'+version, 'a'+len(markers)/26, 'a'+len(markers)%26))
		return markers[len(markers)-1]
	}
	get := func() string {
		return fmt.Sprintf(`httpGet: {host: 127.0.0.1, port: 1, path: "/ok?token=%s", httpHeaders: [{name: Authorization, value: "Bearer %s"}]}`, mark(), mark())
	}
	container := func(name string) string {
		return fmt.Sprintf(`
- name: %s
  image: "web:1"
  workingDir: /v%d
  env: [{name: A, value: %s}, {name: B, value: "x $(A) %s"}, {name: C, value: %s}]
  livenessProbe: {periodSeconds: 1, failureThreshold: 3, %s}
  readinessProbe: {periodSeconds: 1, %s}
  lifecycle: {postStart: {%s}, preStop: {%s}}
  terminationMessagePolicy: FallbackToLogsOnError`, name, version, mark(), mark(), word(), get(), get(), get(), get())
	}
	spec := "initContainers:" + strings.ReplaceAll(container("side"), "livenessProbe", "startupProbe") + "\n  restartPolicy: Always\ncontainers:" + container("app")
	return podOf(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {example.com/token: %s, %s: '{\"env\": \"%s\"}'}}\nspec:\n%s\n",
		mark(), v1.LastAppliedConfigAnnotation, mark(), indent(spec))), markers
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// quotingError is an error of the runtime that quotes private values of the version that a
// request is about.
type quotingError struct {
	m        *machine
	versions map[string][]string // markers, by hash
	newest   string              // hash

	mu   sync.Mutex // guards hash
	hash string     // the hash in the last request
}

// setVersion records the version that a request is about. A sandbox or container that podd
// has not reported yet is of the newest version.
func (q *quotingError) setVersion(request any) bool {
	text := fmt.Sprint(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hash = q.newest
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	for _, r := range q.m.reports {
		for _, inc := range r.Observed {
			is := strings.Contains(text, inc.ID)
			for _, c := range inc.Containers {
				is = is || strings.Contains(text, c.ID)
			}
			if is {
				q.hash = inc.Annotations[runtime.AnnotationPodHash]
			}
		}
	}
	return true
}

func (q *quotingError) Error() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	markers := slices.Clone(q.versions[q.hash])
	last := len(markers) - 1 // an annotation is quoted as a whole
	markers[last] = `{"env": "` + markers[last] + `"}`
	return fmt.Sprintf("invalid config %q, env=%s", markers, strings.Join(markers, ",NAME="))
}

// TestLogsAndEventsShowNothingPrivate starts, edits and removes a pod, while calls of the runtime fail
// with an error that quotes every private value of the pod. The log at debug level and the events must
// contain none of these values. They must not contain the termination message of a container either.
func TestLogsAndEventsShowNothingPrivate(t *testing.T) {
	for _, method := range []string{
		"RunPodSandbox", "PodSandboxStatus", "CreateContainer", "StartContainer", "ContainerStatus", "StopContainer",
		"RemoveContainer", "StopPodSandbox", "RemovePodSandbox", "ImageStatus", "PullImage",
	} {
		t.Run(method, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) { failsQuoting(t, m, method) })
		})
	}
}

func failsQuoting(t *testing.T, m *machine, method string) {
	var log bytes.Buffer
	m.log = slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	const last = "hunter2hunter2"
	m.AddImage(runtimetest.Image{Name: "web:1", Program: runtimetest.Program{Output: last + "\n", ExitsByItself: true, RunDuration: 20 * time.Second, ExitCode: 1}})
	q := &quotingError{m: m, versions: map[string][]string{}}
	m.start()
	for version := range 3 {
		var pods []*manifest.Pod
		if version < 2 {
			p, markers := markedPod(t, version)
			q.versions[p.Hash], q.newest = markers, p.Hash
			pods = append(pods, p)
		}
		for nth := range 3 {
			m.Inject(runtimetest.Fault{Method: method, Nth: nth + 1, Match: q.setVersion, Err: q})
		}
		m.setPods(pods...)
		m.advance(time.Minute)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	output := log.String()
	for _, e := range m.events {
		output += fmt.Sprintf("%+v\n", e)
	}
	shown := []string{last}
	for _, markers := range q.versions {
		shown = append(shown, markers...)
	}
	for _, marker := range shown {
		if at := strings.Index(output, marker); at >= 0 {
			t.Fatalf("got the private value %s in the output, want it redacted: %.600s", marker, output[max(0, at-300):])
		}
	}
	if !strings.Contains(output, "invalid config") && method != "PullImage" {
		t.Errorf("messages: got none with the error of the runtime, want one:\n%s", output)
	}
}
