package main

import (
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestComplete: what may stand where the cursor is, at the end of each line.
func TestComplete(t *testing.T) {
	f := shown(t)
	v := *f.View()
	web := up(podAt("web.yaml", 1, "web", "app", "side"))
	web.Pod.Spec.InitContainers = []v1.Container{{Name: "fetch"}}
	web.Pod.Spec.Containers[1].Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	other := up(podAt("web.yaml", 1, "web", "app"))
	other.Pod.Namespace = "shop"
	v.Revision++
	v.Pods = viewOf(web, other, up(podAt("db.yaml", 1, "db", "pg")), v.Pods[2]).Pods
	f.Publish(&v)
	t.Setenv("PODD_RUN_DIR", f.dir)
	for line, want := range map[string]string{
		"w":                          "why wait",
		"help v":                     "volume validate version",
		"nosuch ":                    "",
		"exec ":                      "db default/web dns shop/web",
		"exec d":                     "db default/web dns",
		"exec -n shop ":              "web",
		"exec -nshop ":               "web",
		"exec --namespace=shop w":    "web",
		"exec -it default/web -c ":   "fetch app side",
		"exec shop/web -itc ":        "app",
		"logs -n default web --cont": "--container",
		"logs default/web -c s":      "side",
		"exec default/web -- ":       "",
		"exec default/web -- --":     "",
		"get ":                       "configmaps events namespaces nodes persistentvolumeclaims persistentvolumes pods secrets",
		"get no":                     "nodes",
		"get pods,no":                "pods,nodes",
		"get pod/d":                  "pod/db pod/default/web pod/dns",
		"get node ":                  "n1",
		"get po web-n1 d":            "db default/web dns",
		"get pods db d":              "default/web dns",
		"get pods -n ":               "default kube-system shop",
		"get pods --namespace=s":     "--namespace=shop",
		"get pods -o y":              "yaml",
		"get pods -oy":               "",
		"top n":                      "node nodes no",
		"top pod d":                  "db default/web dns",
		"describe node ":             "n1",
		"wait d":                     "db default/web dns :files",
		"wait --for=r":               "--for=ready",
		"cp d":                       "db: default/web: dns: :files",
		"cp db:/etc/passwd ":         "db: default/web: dns: shop/web: :files",
		"port-forward default/web ":  "8080",
		"port-forward d":             "db default/web dns",
		"completion f":               "fish",
		"--pod-manifest-p":           "--pod-manifest-path",
		"--pod-manifest-path ":       ":files",
		"validate ":                  ":files",
		"ps --run-dir /nowhere -n ":  "",
		"down ":                      "",
	} {
		got := poddVerb(t.Context(), append([]string{completeVerb}, strings.Split(line, " ")...)...)
		var words []string
		for l := range strings.Lines(got.Out) {
			word, _, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			words = append(words, word)
		}
		if s := strings.Join(words, " "); s != want || got.Err != "" || got.Code != 0 {
			t.Errorf("%q: %q, want %q; %q, %d", line, s, want, got.Err, got.Code)
		}
	}
	if got := poddVerb(t.Context(), completeVerb, "exec", "de"); got.Out != "default/web\tRunning\n" {
		t.Errorf("with what it means: %q", got.Out)
	}
	if got := poddVerb(t.Context(), completeVerb); got.Code != 0 || got.Err != "" || !strings.Contains(got.Out, "help\t") {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestCompletionParses: each script, where there is a shell to read it.
func TestCompletionParses(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := poddVerb(t.Context(), "completion", shell)
		if got.Code != 0 || !strings.Contains(got.Out, completeVerb) {
			t.Errorf("%s: %+v", shell, got)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(got.Out)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}
