package main

import (
	_ "embed"
	"fmt"
	"strings"

	"podd/testdata/controlplane/change"
)

//go:embed pods.txt
var singles string

//go:embed pods_api.txt
var singlesAPI string

// podSecurity and containerSecurity contain security contexts. Each of the first is combined
// with each of the second.
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
	lines := linesOf(singles)
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

// podsAPI returns the pods that need an API server, without the fields that the API server adds
// by default.
func podsAPI() []map[string]any {
	var lines []string
	for _, line := range linesOf(singlesAPI) {
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
func podsOf(prefix string, lines []string) (all []map[string]any) {
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
		all = append(all, pod.(map[string]any))
	}
	return all
}
