package main

import (
	_ "embed"
	"fmt"
	"strings"

	"podd/testdata/controlplane/change"
)

//go:embed pods.txt
var podLines string

//go:embed pods_api.txt
var podLinesAPI string

// podSecurity and containerSecurity contain security contexts. Each context in podSecurity is
// combined with each context in containerSecurity.
var (
	podSecurity = []string{
		``, `{}`, `{"runAsUser":1000}`, `{"runAsUser":1000,"runAsGroup":1001,"supplementalGroups":[7,8],"fsGroup":9}`,
		`{"runAsGroup":0,"runAsUser":0}`, `{"seccompProfile":{"type":"RuntimeDefault"}}`, `{"seccompProfile":{"type":"Unconfined"}}`,
		`{"runAsNonRoot":true,"runAsUser":5}`, `{"seccompProfile":{"type":"Localhost","localhostProfile":"a.json"}}`,
	}
	containerSecurity = []string{
		``, `{}`, `{"runAsUser":2000}`, `{"runAsUser":0,"runAsGroup":0}`, `{"privileged":true}`,
		`{"privileged":false,"readOnlyRootFilesystem":true}`, `{"allowPrivilegeEscalation":false}`, `{"allowPrivilegeEscalation":true}`,
		`{"capabilities":{"add":["NET_ADMIN"],"drop":["ALL"]}}`, `{"capabilities":{"add":["CAP_SYS_ADMIN","all"]}}`,
		`{"seccompProfile":{"type":"Unconfined"}}`, `{"seccompProfile":{"type":"RuntimeDefault"},"privileged":true}`,
		`{"procMount":"Default"}`, `{"runAsNonRoot":true,"runAsUser":6}`, `{"seccompProfile":{"type":"Localhost","localhostProfile":"b.json"}}`,
	}
)

// pods returns all pods for a standalone kubelet, each with a name.
func pods() []map[string]any {
	lines := linesOf(podLines)
	for _, p := range podSecurity {
		for _, c := range containerSecurity {
			var line []string
			if p != "" {
				line = append(line, "spec.securityContext="+p)
			}
			if c != "" {
				line = append(line, "spec.containers.0.securityContext="+c)
			}
			lines = append(lines, strings.Join(line, " "))
		}
	}
	return podsOf("p", lines)
}

// podsAPI returns the pods that need an API server. They disable the service account token and the
// service links, which the API server enables by default.
func podsAPI() []map[string]any {
	var lines []string
	for _, line := range linesOf(podLinesAPI) {
		lines = append(lines, line+" spec.automountServiceAccountToken=false spec.enableServiceLinks=false")
	}
	return podsOf("a", lines)
}

func linesOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// podsOf returns one minimal pod per line, with the changes on that line.
func podsOf(prefix string, lines []string) (list []map[string]any) {
	for i, line := range lines {
		var pod any = map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": fmt.Sprintf("%s%03d", prefix, i)},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example/app:1"}}},
		}
		if line != "" {
			for _, c := range change.Parse(line) {
				pod = c.Apply(pod)
			}
		}
		list = append(list, pod.(map[string]any))
	}
	return list
}
