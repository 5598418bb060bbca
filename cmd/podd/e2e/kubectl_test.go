//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/e2e/harness"
	"podd/manifest"
	"podd/runtime/runtimetest/syncbuffer"
)

// kubectlPath returns the path of kubectl, which it builds if the host has none.
var kubectlPath = sync.OnceValues(func() (string, error) {
	return harness.FindOrBuildKubectl(context.Background(), "../../../testdata/controlplane", filepath.Join(shared.Dir, "kubectl"))
})

// kubectl runs kubectl with the file that podd kubeconfig writes.
type kubectl struct {
	d            *daemon
	path, config string
	home         string
}

// kubectl returns a kubectl that uses the file that podd kubeconfig writes.
func (d *daemon) kubectl() *kubectl {
	d.t.Helper()
	path, err := kubectlPath()
	if err != nil {
		d.t.Fatal(err)
	}
	return &kubectl{d: d, path: path, config: d.kubeconfig(), home: d.t.TempDir()}
}

// command returns a kubectl command that is not started yet. Its environment is minimal.
func (k *kubectl) command(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig", k.config}, words...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.home}
	return cmd
}

// try runs kubectl, which may fail, and returns its outputs.
func (k *kubectl) try(stdin string, words ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(k.d.t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := k.command(ctx, words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// run runs kubectl, which must succeed, and returns its stdout.
func (k *kubectl) run(words ...string) string {
	k.d.t.Helper()
	out, stderr, err := k.try("", words...)
	if err != nil {
		k.d.t.Fatalf("kubectl %s: %v: %s%s", strings.Join(words, " "), err, out, stderr)
	}
	return out
}

// wantOutput fails the test unless kubectl succeeds and its stdout contains all texts in want.
func (k *kubectl) wantOutput(words string, want ...string) {
	k.d.t.Helper()
	out := k.run(strings.Fields(words)...)
	for _, w := range want {
		if !strings.Contains(out, w) {
			k.d.t.Errorf("kubectl %s: got\n%s\nwant %q in it", words, out, w)
		}
	}
}

// wantFailure fails the test unless kubectl fails and its stderr contains all texts in want.
func (k *kubectl) wantFailure(words string, want ...string) {
	k.d.t.Helper()
	out, stderr, err := k.try("", strings.Fields(words)...)
	for _, w := range want {
		if err == nil || !strings.Contains(stderr, w) {
			k.d.t.Errorf("kubectl %s: got error %v, stdout %s and stderr\n%s\nwant an error and %q in stderr", words, err, out, stderr, w)
		}
	}
}

// start starts kubectl in the background until the test ends, and returns its output.
func (k *kubectl) start(words ...string) *lines {
	k.d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := k.command(ctx, words...)
	all := &lines{name: "kubectl " + strings.Join(words, " ")}
	cmd.Stdout, cmd.Stderr = all, all
	if err := cmd.Start(); err != nil {
		k.d.t.Fatal(err)
	}
	k.d.t.Cleanup(func() { cancel(); cmd.Wait() })
	return all
}

// lines is the output of a program so far. It is safe for concurrent use.
type lines struct {
	name string
	syncbuffer.Buffer
}

// untilPrinted waits until the output contains a text.
func (d *daemon) untilPrinted(l *lines, want string) {
	d.t.Helper()
	d.eventually(l.name+" prints "+want, func() error {
		if got := l.String(); !strings.Contains(got, want) {
			return fmt.Errorf("got output %q, want %q in it", got, want)
		}
		return nil
	})
}

// startListening starts a podd with the kubelet API and a pod web. The pod serves on port 8080
// and logs each line that it reads from stdin.
func startListening(t *testing.T) (*daemon, *kubectl) {
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	web := shell("main", "echo up >/tmp/index.html; echo hello; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & while read line; do echo got $line; done; wait")
	web.Stdin = true
	web.Env = []v1.EnvVar{{Name: "COLOUR", Value: "green"}}
	web.ReadinessProbe = probeEverySecond(execHandler("wget -q -O /dev/null http://127.0.0.1:8080/"))
	p := d.pod("web", web)
	p.Labels = map[string]string{"app": "web"}
	d.write("web", manifestText(d, p, newConfigMap("settings", map[string]string{"port": "8080"}), newSecret("pass", v1.SecretTypeOpaque, map[string]string{"word": "hidden"})))
	d.untilApplied("web")
	return d, d.kubectl()
}

// TestKubectlReads checks kubectl's commands that read objects.
func TestKubectlReads(t *testing.T) {
	t.Parallel()
	d, k := startListening(t)
	d.untilEvent("web", 1, "Started") // The pod may be ready before podd records this event.
	web := d.podName("web")
	k.wantOutput("version", "Server Version: "+manifest.KubernetesVersion+"-podd")
	k.wantOutput("api-resources", "pods", "po", "persistentvolumeclaims", "selfsubjectaccessreviews")
	k.wantOutput("api-versions", "v1", "authorization.k8s.io/v1")
	k.run("wait", "--for=condition=Ready", "pod/"+web, "--timeout", patience.String())
	k.wantOutput("get pods -A", "NAMESPACE", "READY", "RESTARTS", "default", web, "1/1")
	k.wantOutput("get pods -o wide", "NODE", d.host)
	for _, words := range []string{"--sort-by=.metadata.creationTimestamp", "--chunk-size=1", "--server-print=false", "-o custom-columns=N:.metadata.name"} {
		k.wantOutput("get pods "+words, web)
	}
	k.run("wait", "--for=jsonpath={.status.phase}=Running", "pod/"+web, "--timeout", patience.String())
	k.wantOutput("explain pod.spec.containers --recursive", "livenessProbe\t<Probe>", "tcpSocket\t<TCPSocketAction>")
	for _, endpoint := range []struct{ path, want string }{
		{"/healthz", "ok"}, {"/readyz", "ok"}, {"/metrics", "kubelet_running_pods"},
		{"/metrics/slis", "kubernetes_healthcheck{"}, // metrics of the health checks above
	} {
		k.wantOutput("get --raw "+endpoint.path, endpoint.want)
		k.wantOutput("get --raw /api/v1/nodes/"+d.host+"/proxy"+endpoint.path, endpoint.want)
	}
	for path, want := range map[string]string{"stats/summary": d.host, "pods": web, "runningpods": web, "configz": "kubeletconfig", "logs/": "<pre>"} {
		k.wantOutput("get --raw /api/v1/nodes/"+d.host+"/proxy/"+path, want)
	}
	k.wantOutput("get nodes", "STATUS", "Ready", manifest.KubernetesVersion+"-podd")
	k.wantOutput("explain pod.spec.containers.image", "FIELD: image <string>")
	k.wantOutput("get pod "+web+" -o yaml", "kubernetes.io/config.source: file", "value: green", "phase: Running")
	k.wantOutput("get pods -l app=web -o name", "pod/"+web)
	k.wantOutput("get pods --field-selector status.phase=Running,spec.nodeName="+d.host+" -o name", "pod/"+web)
	if out := k.run("get", "pods", "-l", "app!=web", "-o", "name"); out != "" {
		t.Errorf("kubectl get pods -l app!=web: got %s, want no pods", out)
	}
	k.wantOutput("get nodes -o jsonpath={.items[0].status.conditions[?(@.type==\"Ready\")].status}", "True")
	k.d.eventually("the node has conditions and images", func() error {
		out, _, err := k.try("", "get", "nodes", "-o", "jsonpath={.items[0].status.conditions[*].type} {.items[0].status.images[*].names}")
		// The node lists its largest images. Some of these images belong to other tests.
		for _, want := range []string{"MemoryPressure DiskPressure PIDPressure Ready ", `["`} {
			if err != nil || !strings.Contains(out, want) {
				return fmt.Errorf("got output %q, error %v; want %q in it", out, err, want)
			}
		}
		return nil
	})
	k.wantOutput("get ns", "default")
	k.wantOutput("get configmaps,secrets -o name", "configmap/settings", "secret/pass")
	k.wantOutput("get secret pass -o jsonpath={.data.word}", "aGlkZGVu")
	k.wantOutput("describe pod "+web, "Name:", web, "COLOUR:  green", "Ready", "True", "Node:", d.host)
	k.wantOutput("describe node "+d.host, "Capacity:", "cpu:", "Container Runtime Version:", d.on.RuntimeName()+"://", web,
		"Non-terminated Pods:", "(1 in total)", "Allocated resources:", "Events:", "NodeReady")
	if out := k.run("describe", "node", d.host); strings.Contains(out, "<unknown>") {
		t.Errorf("kubectl describe node: got\n%s\nwant no %q in it", out, "<unknown>")
	}
	k.wantOutput("describe secret pass", "word:  6 bytes")
	k.wantOutput("get all", web)
	k.wantOutput("get events", "Started", "pod/"+web, "Started container")
	k.wantOutput("get events -A --field-selector reason=Pulled,involvedObject.name="+web, "Pulled", "pod/"+web)
	k.wantOutput("describe pod "+web, "Events:", "Started container")
	k.wantOutput("top pod", web, "m", "Mi")
	k.wantOutput("top pod "+web+" --containers", "main")
	k.wantOutput("top node", d.host, "%")
	k.wantOutput("auth whoami", "podd-admin", "system:masters")
	k.wantOutput("auth can-i create pods/exec", "yes")
	k.wantOutput("auth whoami --as prom --as-group monitoring", "prom", "monitoring", "system:authenticated")
	k.wantFailure("get pods --as prom", `User "prom" cannot list resource "pods"`)
	k.wantOutput("auth can-i --list", "*.*")
	k.wantFailure("get pod web", `pods "web" not found; did you mean "`+web+`"?`)
	k.wantFailure("get services", `the server doesn't have a resource type "services"`)
	k.wantFailure("delete pod "+web, "is defined in "+d.manifestFile("web")+":", "remove it from that file")
	k.wantFailure("label pod "+web+" a=b", "is defined in "+d.manifestFile("web")+":", "edit that file")
	k.wantFailure("delete node "+d.host, "is managed by podd")
}

// TestKubectlWatches checks kubectl's watches while a pod is created, becomes ready and is
// removed.
func TestKubectlWatches(t *testing.T) {
	t.Parallel()
	d, k := startListening(t)
	watch := k.start("get", "pods", "-w", "-o", "jsonpath={.metadata.name}={.status.phase}{.metadata.deletionTimestamp} ")
	d.untilPrinted(watch, d.podName("web")+"=Running")
	d.apply(d.pod("late", shell("main", serve("late"))))
	d.untilPrinted(watch, d.podName("late")+"=Running ")
	d.untilPrinted(k.start("get", "events", "-w"), "pod/"+d.podName("late"))
	d.remove("late")
	d.untilPrinted(watch, d.podName("late")+"=Running2")
	d.untilPrinted(k.start("events", "--for", "pod/"+d.podName("late"), "-w"), "Killing")
	k.run("wait", "--for=delete", "pod/"+d.podName("late"), "--timeout", patience.String())
}

// TestKubectlStreams checks logs, exec, attach, cp and port-forward.
func TestKubectlStreams(t *testing.T) {
	t.Parallel()
	d, k := startListening(t)
	web := d.podName("web")
	k.run("wait", "--for=condition=Ready", "pod/"+web, "--timeout", patience.String())
	follow := k.start("logs", "-f", web)
	d.untilPrinted(follow, "hello\n")
	all := k.start("logs", "--all-containers", "-l", "app=web", "-f", "--prefix")
	d.untilPrinted(all, "[pod/"+web+"/main] hello\n")
	if out, stderr, err := k.try("one\ntwo\n", "attach", "-i", web); err != nil {
		t.Errorf("kubectl attach: %v: %s%s", err, out, stderr)
	}
	d.untilPrinted(follow, "got one\ngot two\n")
	d.untilPrinted(all, "[pod/"+web+"/main] got two\n")
	if got, want := k.run("logs", web, "--tail", "1"), "got two\n"; got != want {
		t.Errorf("kubectl logs --tail 1: got %q, want %q", got, want)
	}
	if got, want := k.run("logs", "-l", "app=web", "--limit-bytes", "4"), "hell"; got != want {
		t.Errorf("kubectl logs --limit-bytes 4: got %q, want %q", got, want)
	}
	if got := k.run("logs", web, "--timestamps", "--since", "1h"); !strings.HasPrefix(got, time.Now().UTC().Format("2006-")) {
		t.Errorf("kubectl logs --timestamps: got %q, want lines that begin with the date", got)
	}
	if got, want := k.run("exec", web, "--", "sh", "-c", "echo $COLOUR"), "green\n"; got != want {
		t.Errorf("kubectl exec: got %q, want %q", got, want)
	}
	if out, _, err := k.try("3 4", "exec", "-i", web, "--", "wc", "-w"); err != nil || strings.TrimSpace(out) != "2" {
		t.Errorf("kubectl exec -i: got error %v, output %q; want the word count 2", err, out)
	}
	if _, stderr, err := k.try("", "exec", web, "--", "sh", "-c", "exit 7"); err == nil || !strings.Contains(stderr, "exit code 7") {
		t.Errorf("kubectl exec of a failing command: got error %v and stderr %s, want an error and %q in stderr", err, stderr, "exit code 7")
	}
	k.wantFailure("exec "+web+" -c other -- true", "container other is not valid", "choose one of: [main]")
	k.checkCopy(web)
	k.checkForward(web)
}

// checkCopy copies a file into a pod and back.
func (k *kubectl) checkCopy(pod string) {
	k.d.t.Helper()
	dir := k.d.t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("cargo\n"), 0o600); err != nil {
		k.d.t.Fatal(err)
	}
	k.run("cp", in, pod+":/tmp/cargo")
	k.run("cp", pod+":/tmp/cargo", out)
	if got, err := os.ReadFile(out); err != nil || string(got) != "cargo\n" {
		k.d.t.Errorf("kubectl cp into the pod and back: got %q, error %v; want %q", got, err, "cargo\n")
	}
}

// checkForward sends several requests through kubectl port-forward.
func (k *kubectl) checkForward(pod string) {
	k.d.t.Helper()
	port := freePort(k.d.t)
	output := k.start("port-forward", pod, fmt.Sprintf("%d:8080", port))
	k.d.untilPrinted(output, "Forwarding from 127.0.0.1")
	for range 2 { // each request is a separate stream
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/index.html", port))
		if err != nil {
			k.d.t.Fatalf("request through kubectl port-forward: %v; output of kubectl: %s", err, output)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "up\n" || err != nil {
			k.d.t.Errorf("response through kubectl port-forward: got %q, error %v; want %q", body, err, "up\n")
		}
		http.DefaultClient.CloseIdleConnections()
	}
}
