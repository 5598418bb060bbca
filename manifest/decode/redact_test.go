package decode

import (
	"fmt"
	"strings"
	"testing"
)

// TestFile_HidesPrivate uses a private value in invalid fields and checks that no Problem contains
// this value. Problems are in the log, in events and on the public page.
func TestFile_HidesPrivate(t *testing.T) {
	const secret = "hunter2hunter2"
	forms := map[string]string{
		"plain":        secret,
		"number":       "1234567890123",
		"list":         "[" + secret + "]",
		"object":       "{" + secret + ": " + secret + "}",
		"NUL":          `"` + secret + `\0"`,
		"line":         `"` + secret + `\r\n"`,
		"reference":    `"$(` + secret + `) $"`,
		"URL":          "https://user:" + secret + "@host/%zz?token=" + secret,
		"query":        `"/%zz?token=` + secret + `"`,
		"unclosed":     `"` + secret,
		"tag":          "!!int " + secret,
		"binary":       "!!binary " + secret + "=",
		"alias":        "*" + secret,
		"tabs":         "\t" + secret + ": x",
		"long":         strings.Repeat(secret, 40_000),
		"not unicode":  secret + "\xff",
		"mapping":      "a: " + secret,
		"bad escape":   `"` + secret + `\q"`,
		"merge":        "<<: " + secret,
		"two closings": secret + "]}",
	}
	const http = "{httpGet: {port: 1, path: %s, scheme: HTTP, httpHeaders: [{name: A, value: %s}]}}"
	for place, text := range map[string]string{
		"env":           "containers: [{name: a, image: i, env: [{name: A, value: %s}]}]",
		"env with from": "containers: [{name: a, image: i, env: [{name: A, value: %s, valueFrom: {fieldRef: {fieldPath: x}}}]}]",
		"env name":      "containers: [{name: a, image: i, env: [{name: \"\", value: %s}]}]",
		"header":        "containers: [{name: a, image: i, livenessProbe: " + strings.Replace(http, "%s", "/", 1) + "}]",
		"query":         "containers: [{name: a, image: i, livenessProbe: {httpGet: {port: 1, path: %s}}}]",
		"hook header":   "containers: [{name: a, image: i, lifecycle: {preStop: " + strings.Replace(http, "%s", "/", 1) + "}}]",
		"csi":           "volumes: [{name: v, csi: {driver: d.example, volumeAttributes: {a: %s}}}]\n  containers: [{name: a, image: i}]",
		"flex":          "volumes: [{name: v, flexVolume: {driver: d/e, options: {a: %s}}}]\n  containers: [{name: a, image: i}]",
		"gitRepo":       "volumes: [{name: v, gitRepo: {repository: %s}}]\n  containers: [{name: a, image: i}]",
		"env in block":  "containers:\n  - name: a\n    image: i\n    env:\n    - name: A\n      value: %s\n",
	} {
		for form, value := range forms {
			pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  " + fmt.Sprintf(text, value) + "\n"
			checkHidesSecret(t, place+", "+form, pod, secret)
		}
	}
	for form, value := range forms {
		for _, key := range []string{"example.com/a", "podd/restart-on-change", "kubernetes.io/config.mirror",
			"container.apparmor.security.beta.kubernetes.io/a", "seccomp.security.alpha.kubernetes.io/pod", "no key/"} {
			pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {\"" + key + "\": " + value + "}}\nspec: {containers: [{name: a, image: i}]}\n"
			checkHidesSecret(t, "annotation "+key+", "+form, pod, secret)
		}
	}
}

func checkHidesSecret(t *testing.T, what, text, secret string) {
	t.Helper()
	for _, p := range File([]byte(text), Options{Path: "/a.yaml", NodeName: "n1"}).Problems {
		if s := p.String(); strings.Contains(s, secret) || strings.Contains(s, "1234567890123") {
			t.Errorf("%s: got a private value in %.300s, want none", what, s)
		}
	}
}
