package main

import (
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cli"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
)

// TestComplete checks the completions of the last word of each command line. ":files" stands for the
// names of files, which the shell completes.
func TestComplete(t *testing.T) {
	f := poddtest.ServeShop(t)
	v := *f.View()
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app", "side"))
	web.Pod.Spec.InitContainers = []v1.Container{{Name: "fetch"}}
	web.Pod.Spec.Containers[1].Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	other := poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app"))
	other.Pod.Namespace = "shop"
	v.Revision++
	v.Pods = poddtest.NewView(web, other, poddtest.SetRunning(poddtest.NewPod("db.yaml", 1, "db", "pg")), v.Pods[2]).Pods
	f.Publish(&v)
	t.Setenv("PODD_RUN_DIR", f.Dir)
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
		"get ":                       "configmaps events namespaces nodes persistentvolumeclaims persistentvolumes pods secrets clustertrustbundles csidrivers",
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
		"images r":                   "rm",
	} {
		var words []string
		for l := range strings.Lines(completionsFor(t, strings.Split(line, " ")...)) {
			word, _, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			words = append(words, word)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("completions of %q: got %q, want %q", line, got, want)
		}
	}
	if got, want := completionsFor(t, "exec", "de"), "default/web\tRunning\n"; got != want {
		t.Errorf("completions of \"exec de\" with descriptions: got %q, want %q", got, want)
	}
	if got := poddVerb(t.Context(), completeVerb); got.Code != 0 || got.Err != "" || !strings.Contains(got.Out, "help\t") {
		t.Errorf("completions of an empty line: got %+v, want exit code 0 and all verbs, such as help", got)
	}
}

// completionsFor returns the completions of the last word. Unlike podd, it sets no timeout
// (completionTimeout), because completing may take longer on a loaded host.
func completionsFor(t *testing.T, words ...string) string {
	t.Helper()
	k, err := newParser(&verbs{}, iostreams.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := cli.Complete(t.Context(), k.Model, words, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCompletion checks that the completion script of each shell has no syntax error, if the
// shell is installed.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := poddVerb(t.Context(), "completion", shell)
		if got.Code != 0 || !strings.Contains(got.Out, completeVerb) {
			t.Errorf("%s: got %+v, want a script that calls %s", shell, got, completeVerb)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(got.Out)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("checking the completion script with %s -n: got error %v, output %q; want none", shell, err, out)
		}
	}
}
