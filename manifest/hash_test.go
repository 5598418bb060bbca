package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"podd/manifest/decode"
	"podd/manifest/manifesttest"
)

const webPod = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  terminationGracePeriodSeconds: 5
  initContainers:
  - {name: init, image: "i:1"}
  containers:
  - {name: main, image: "i:1", args: [a], resources: {limits: {cpu: 1, memory: 64Mi}, requests: {memory: 32Mi}}, ports: [{containerPort: 1}]}
  - {name: side, image: "i:1"}
`

// TestHashes checks which hashes an edit changes: "sandbox" is SandboxHash, and "start" and "size"
// are the hashes of container main. No edit changes the hashes of another container.
func TestHashes(t *testing.T) {
	tests := map[string]struct{ old, new, changes string }{
		"no edit":      {"", "", ""},
		"args":         {"args: [a]", "args: [b]", "start"},
		"image":        {`main, image: "i:1"`, `main, image: "i:2"`, "start"},
		"cpu":          {"cpu: 1", "cpu: 2", "size"},
		"memory":       {"64Mi", "128Mi", "size"},
		"same cpu":     {"cpu: 1", "cpu: 1000m", ""},
		"no limit":     {"cpu: 1, ", "", "size"},
		"zero":         {"cpu: 1", "cpu: 0", "size"},
		"a request":    {"memory: 32Mi", "memory: 32Mi, cpu: 1m", "size"},
		"huge pages":   {"64Mi", "64Mi, hugepages-2Mi: 2Mi", ""},
		"port":         {"containerPort: 1", "containerPort: 1, hostPort: 5", "sandbox start"},
		"privileged":   {"args: [a]", "securityContext: {privileged: true}", "sandbox start"},
		"runAsUser":    {"args: [a]", "securityContext: {runAsUser: 5}", "start"},
		"hostNetwork":  {"spec:\n", "spec:\n  hostNetwork: true\n", "sandbox"},
		"dnsPolicy":    {"spec:\n", "spec:\n  dnsPolicy: Default\n", "sandbox"},
		"hostname":     {"spec:\n", "spec:\n  hostname: x\n", "sandbox"},
		"label":        {"name: web,", "name: web, labels: {a: b},", ""},
		"annotation":   {"name: web,", "name: web, annotations: {a: b},", ""},
		"grace period": {"Seconds: 5", "Seconds: 6", ""},
		"namespace":    {"shop", "shoq", "sandbox"},
		"volume":       {"spec:\n", "spec:\n  volumes: [{name: a}]\n", ""},
		"a comment":    {"spec:\n", "spec: # note\n", ""},
		"unknown":      {"args: [a]", "args: [a], argz: []", "start"},
	}
	before := manifesttest.DecodeOne(t, webPod, decode.Options{NodeName: "n"})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(webPod, tt.old, tt.new, 1)
			after := manifesttest.DecodeOne(t, text, decode.Options{NodeName: "n"})
			var got []string
			if before.SandboxHash != after.SandboxHash {
				got = append(got, "sandbox")
			}
			if before.ContainerHashes["main"].StartHash != after.ContainerHashes["main"].StartHash {
				got = append(got, "start")
			}
			if before.ContainerHashes["main"].Resources != after.ContainerHashes["main"].Resources {
				got = append(got, "size")
			}
			if s := strings.Join(got, " "); s != tt.changes {
				t.Errorf("changed hashes: got %q, want %q", s, tt.changes)
			}
			for _, other := range []string{"init", "side"} {
				if before.ContainerHashes[other] != after.ContainerHashes[other] {
					t.Errorf("the edit changed the hashes of container %s", other)
				}
			}
			same := slices.Contains([]string{"no edit", "a comment", "cpu", "memory", "same cpu"}, name)
			if (before.Hash == after.Hash) != same || (before.UID == after.UID) != same {
				t.Errorf("got Hash %s and UID %s before the edit, Hash %s and UID %s after the edit; want equal values: %v", before.Hash, before.UID, after.Hash, after.UID, same)
			}
			if !strings.HasPrefix(after.Hash, "v1:") || len(after.Hash) != 35 || len(after.UID) != 32 {
				t.Errorf("got Hash %q and UID %q, want a Hash of \"v1:\" and 32 digits, and a UID of 32 digits", after.Hash, after.UID)
			}
		})
	}
}

// TestHashes_PodLevel checks that a pod-level limit changes only the sizes of containers without a limit.
func TestHashes_PodLevel(t *testing.T) {
	before := manifesttest.DecodeOne(t, webPod, decode.Options{NodeName: "n"})
	after := manifesttest.DecodeOne(t, strings.Replace(webPod, "spec:\n", "spec:\n  resources: {limits: {cpu: 2}}\n", 1), decode.Options{NodeName: "n"})
	if after.SandboxHash != before.SandboxHash {
		t.Error("the edit changed the hash of the sandbox")
	}
	for name, inherits := range map[string]string{"main": "", "init": " inherited-cpu=2", "side": " inherited-cpu=2"} {
		want := before.ContainerHashes[name]
		want.Resources += inherits
		if got := after.ContainerHashes[name]; got != want {
			t.Errorf("hashes of container %s: got %v, want %v", name, got, want)
		}
	}
}
