package reconcile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"podd/runtime/runtimetest"
)

// hidden is a part of every value in a Secret, and of every probe or hook header of a pod.
const hidden = "hunter2hunter2"

const secretObjects = `apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {p: hunter2hunter2, TOKEN: hunter2hunter2 as well}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths": {"registry.example": {"username": "hunter2hunter2", "password": "hunter2hunter2"}}}'}}
`

// secretFields are the fields of a container that contain or refer to a secret value.
var secretFields = []string{
	"env: [{name: P, valueFrom: {secretKeyRef: {name: key, key: p}}}]",
	"env: [{name: P, value: hunter2hunter2}, {name: Q, value: \"x $(P)\"}]",
	"envFrom: [{secretRef: {name: key}}]",
	"volumeMounts: [{name: key, mountPath: /key}]",
	"volumeMounts: [{name: key, mountPath: /key, subPath: p}]",
	"livenessProbe: {periodSeconds: 1, failureThreshold: 1, httpGet: {port: 1, httpHeaders: [{name: Authorization, value: hunter2hunter2}]}}",
	"readinessProbe: {httpGet: {port: none, httpHeaders: [{name: Authorization, value: hunter2hunter2}]}}",
	"startupProbe: {periodSeconds: 1, failureThreshold: 2, httpGet: {port: 1, httpHeaders: [{name: Authorization, value: hunter2hunter2}]}}",
	"lifecycle: {postStart: {httpGet: {port: 1, httpHeaders: [{name: Authorization, value: hunter2hunter2}]}}, preStop: {httpGet: {port: 1, httpHeaders: [{name: Authorization, value: hunter2hunter2}]}}}",
}

// TestNoSecretIsShown checks that no secret is in a decision with its actions, a status, an exit, a
// journal or a line of the log. This must hold for failures of all calls of the runtime.
func TestNoSecretIsShown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		image := rapid.SampledFrom([]string{"web:1", "registry.example/web:1", "registry.example/none:1"}).Draw(rt, "image")
		spec := "imagePullSecrets: [{name: pull}]\nvolumes: [{name: key, secret: {secretName: key}}]\ncontainers:\n- name: app\n  image: " + image
		used := map[string]bool{}
		for _, part := range secretFields {
			field, _, _ := strings.Cut(part, ":")
			if !used[field] && rapid.Bool().Draw(rt, part) {
				used[field] = true
				spec += "\n  " + part
			}
		}
		fails := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "PullImage", "ImageStatus", "RemoveContainer", "StopPodSandbox",
		}), 0, 3, rapid.ID[string]).Draw(rt, "fails")
		found := ""
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			m := newMachine(t)
			m.log = slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
			m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: hidden, Password: hidden})
			for _, method := range fails {
				m.Inject(runtimetest.Fault{Method: method, Nth: 1, Err: fmt.Errorf("exec: %q: executable file not found in $PATH", hidden)})
			}
			m.start()
			m.setObjects(secretObjects, pod(t, "web", spec))
			look := func() {
				if output := m.allOutput(t); strings.Contains(output, hidden) {
					found = output
				}
			}
			for range 5 {
				m.advance(7 * time.Second)
				look()
			}
			m.setPods()
			m.advance(time.Second)
			look()
			m.advance(time.Minute)
			m.finish()
			if log.Len() == 0 || strings.Contains(log.String(), hidden) {
				found = "log: " + log.String()
			}
		})
		if found != "" {
			rt.Fatalf("pod\n%s\nmessages: got a private value, want none:\n%s", spec, found)
		}
	})
}

// allOutput returns everything that is shown and stored of every pod, except the manifest
// itself.
func (m *machine) allOutput(t *testing.T) string {
	t.Helper()
	output := m.state()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.reports {
		shown := []any{r.LastExits, r.Finished, r.Decision.Why}
		if r.Pod != nil {
			shown = append(shown, r.Pod.Status)
		}
		for _, s := range r.Decision.Steps {
			shown = append(shown, s.Why, s.Reason)
		}
		text, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		output += string(text)
	}
	journals, err := filepath.Glob(filepath.Join(m.root, "pods", "*", "journal.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range journals {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		output += string(text)
	}
	return output
}
