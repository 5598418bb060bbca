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
)

// kubectlPath is the machine's kubectl or, where it has none, one built from
// Kubernetes' own source.
var kubectlPath = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	path := filepath.Join(shared.Dir, "kubectl")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "k8s.io/kubernetes/cmd/kubectl")
	cmd.Dir, cmd.Env = "../../../testdata/controlplane", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl: %w: %s", err, out)
	}
	return path, nil
})

// kubectl is somebody at a terminal with a file of podd kubeconfig.
type kubectl struct {
	d            *daemon
	path, config string
	home         string
}

func (d *daemon) kubectl() *kubectl {
	d.t.Helper()
	path, err := kubectlPath()
	if err != nil {
		d.t.Fatal(err)
	}
	return &kubectl{d: d, path: path, config: d.kubeconfig(), home: d.t.TempDir()}
}

// command is one not yet run; its environment has nothing of the tester's.
func (k *kubectl) command(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig", k.config}, words...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.home}
	return cmd
}

// try runs one to its end.
func (k *kubectl) try(stdin string, words ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(k.d.t.Context(), patience)
	defer cancel()
	var out, talk bytes.Buffer
	cmd := k.command(ctx, words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &talk
	err = cmd.Run()
	return out.String(), talk.String(), err
}

// run is what one prints that has to succeed.
func (k *kubectl) run(words ...string) string {
	k.d.t.Helper()
	out, talk, err := k.try("", words...)
	if err != nil {
		k.d.t.Fatalf("kubectl %s: %v: %s%s", strings.Join(words, " "), err, out, talk)
	}
	return out
}

// says fails unless what one prints has all of these.
func (k *kubectl) says(words string, want ...string) {
	k.d.t.Helper()
	out := k.run(strings.Fields(words)...)
	for _, w := range want {
		if !strings.Contains(out, w) {
			k.d.t.Errorf("kubectl %s: no %q in:\n%s", words, w, out)
		}
	}
}

// refuses fails unless one fails and says why.
func (k *kubectl) refuses(words string, want ...string) {
	k.d.t.Helper()
	out, talk, err := k.try("", strings.Fields(words)...)
	for _, w := range want {
		if err == nil || !strings.Contains(talk, w) {
			k.d.t.Errorf("kubectl %s: %v, no %q in:\n%s%s", words, err, w, out, talk)
		}
	}
}

// begin starts one that goes on; its lines come on the channel, and it ends with
// the test.
func (k *kubectl) begin(words ...string) *lines {
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

// lines is what a program wrote so far. Safe for concurrent use.
type lines struct {
	name string
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// until waits for some text.
func (d *daemon) untilTells(l *lines, want string) {
	d.t.Helper()
	d.eventually(l.name+" says "+want, func() error {
		if got := l.String(); !strings.Contains(got, want) {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

// listening is a podd with the kubelet's API and one pod, web, that answers on
// port 8080, echoes what it reads and logs a line each.
func listening(t *testing.T) (*daemon, *kubectl) {
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	web := shell("main", "echo up >/tmp/index.html; echo hello; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & while read line; do echo got $line; done; wait")
	web.Stdin = true
	web.Env = []v1.EnvVar{{Name: "COLOUR", Value: "green"}}
	web.ReadinessProbe = every(executes("wget -q -O /dev/null http://127.0.0.1:8080/"))
	p := d.pod("web", web)
	p.Labels = map[string]string{"app": "web"}
	d.write("web", text(d, p, configMap("settings", map[string]string{"port": "8080"}), secret("pass", v1.SecretTypeOpaque, map[string]string{"word": "hidden"})))
	d.untilApplied("web")
	return d, d.kubectl()
}

// TestKubectlReads: what is there, in kubectl's own words.
func TestKubectlReads(t *testing.T) {
	t.Parallel()
	d, k := listening(t)
	web := d.full("web")
	k.says("version", "Server Version: v1.34.4-podd")
	k.says("api-resources", "pods", "po", "persistentvolumeclaims", "selfsubjectaccessreviews")
	k.says("api-versions", "v1", "authorization.k8s.io/v1")
	k.run("wait", "--for=condition=Ready", "pod/"+web, "--timeout", patience.String())
	k.says("get pods -A", "NAMESPACE", "READY", "RESTARTS", "default", web, "1/1")
	k.says("get pods -o wide", "NODE", d.host)
	for _, words := range []string{"--sort-by=.metadata.creationTimestamp", "--chunk-size=1", "--server-print=false", "-o custom-columns=N:.metadata.name"} {
		k.says("get pods "+words, web)
	}
	k.run("wait", "--for=jsonpath={.status.phase}=Running", "pod/"+web, "--timeout", patience.String())
	k.says("explain pod.spec.containers --recursive", "livenessProbe\t<Probe>", "tcpSocket\t<TCPSocketAction>")
	for _, face := range []struct{ path, want string }{
		{"/healthz", "ok"}, {"/readyz", "ok"}, {"/metrics", "kubelet_running_pods"},
		{"/metrics/slis", "kubernetes_healthcheck{"}, // of the checks above
	} {
		k.says("get --raw "+face.path, face.want)
		k.says("get --raw /api/v1/nodes/"+d.host+"/proxy"+face.path, face.want)
	}
	for path, want := range map[string]string{"stats/summary": d.host, "pods": web, "runningpods": web, "configz": "kubeletconfig", "logs/": "<pre>"} {
		k.says("get --raw /api/v1/nodes/"+d.host+"/proxy/"+path, want)
	}
	k.says("get nodes", "STATUS", "Ready", "v1.34.4-podd")
	k.says("explain pod.spec.containers.image", "FIELD: image <string>")
	k.says("get pod "+web+" -o yaml", "kubernetes.io/config.source: file", "value: green", "phase: Running")
	k.says("get pods -l app=web -o name", "pod/"+web)
	k.says("get pods --field-selector status.phase=Running,spec.nodeName="+d.host+" -o name", "pod/"+web)
	if out := k.run("get", "pods", "-l", "app!=web", "-o", "name"); out != "" {
		t.Errorf("of other pods: %s", out)
	}
	k.says("get nodes -o jsonpath={.items[0].status.conditions[?(@.type==\"Ready\")].status}", "True")
	k.d.eventually("the node tells of itself", func() error {
		out, _, err := k.try("", "get", "nodes", "-o", "jsonpath={.items[0].status.conditions[*].type} {.items[0].status.images[*].names}")
		// The largest images, of which other tests have some too.
		for _, want := range []string{"MemoryPressure DiskPressure PIDPressure Ready ", `["`} {
			if err != nil || !strings.Contains(out, want) {
				return fmt.Errorf("no %q in %q, %v", want, out, err)
			}
		}
		return nil
	})
	k.says("get ns", "default")
	k.says("get configmaps,secrets -o name", "configmap/settings", "secret/pass")
	k.says("get secret pass -o jsonpath={.data.word}", "aGlkZGVu")
	k.says("describe pod "+web, "Name:", web, "COLOUR:  green", "Ready", "True", "Node:", d.host)
	k.says("describe node "+d.host, "Capacity:", "cpu:", "Container Runtime Version:", d.on.RuntimeName()+"://", web,
		"Non-terminated Pods:", "(1 in total)", "Allocated resources:", "Events:", "NodeReady")
	if out := k.run("describe", "node", d.host); strings.Contains(out, "<unknown>") {
		t.Errorf("something of the node is unknown:\n%s", out)
	}
	k.says("describe secret pass", "word:  6 bytes")
	k.says("get all", web)
	k.says("get events", "Started", "pod/"+web, "Started container")
	k.says("get events -A --field-selector reason=Pulled,involvedObject.name="+web, "Pulled", "pod/"+web)
	k.says("describe pod "+web, "Events:", "Started container")
	k.says("top pod", web, "m", "Mi")
	k.says("top pod "+web+" --containers", "main")
	k.says("top node", d.host, "%")
	k.says("auth whoami", "podd-admin", "system:masters")
	k.says("auth can-i create pods/exec", "yes")
	k.says("auth whoami --as prom --as-group monitoring", "prom", "monitoring", "system:authenticated")
	k.refuses("get pods --as prom", `User "prom" cannot list resource "pods"`)
	k.says("auth can-i --list", "*.*")
	k.refuses("get pod web", `pods "web" not found; did you mean "`+web+`"?`)
	k.refuses("get services", `the server doesn't have a resource type "services"`)
	k.refuses("delete pod "+web, "is defined in "+d.file("web")+":", "remove it from that file")
	k.refuses("label pod "+web+" a=b", "is defined in "+d.file("web")+":", "edit that file")
	k.refuses("delete node "+d.host, "is managed by podd")
}

// TestKubectlWatches: a pod that comes, gets ready and goes.
func TestKubectlWatches(t *testing.T) {
	t.Parallel()
	d, k := listening(t)
	watch := k.begin("get", "pods", "-w", "-o", "jsonpath={.metadata.name}={.status.phase}{.metadata.deletionTimestamp} ")
	d.untilTells(watch, d.full("web")+"=Running")
	d.apply(d.pod("late", shell("main", serve("late"))))
	d.untilTells(watch, d.full("late")+"=Running ")
	d.untilTells(k.begin("get", "events", "-w"), "pod/"+d.full("late"))
	d.remove("late")
	d.untilTells(watch, d.full("late")+"=Running2")
	d.untilTells(k.begin("events", "--for", "pod/"+d.full("late"), "-w"), "Killing")
	k.run("wait", "--for=delete", "pod/"+d.full("late"), "--timeout", patience.String())
}

// TestKubectlInside: logs, exec, attach, cp and port-forward.
func TestKubectlInside(t *testing.T) {
	t.Parallel()
	d, k := listening(t)
	web := d.full("web")
	k.run("wait", "--for=condition=Ready", "pod/"+web, "--timeout", patience.String())
	follow := k.begin("logs", "-f", web)
	d.untilTells(follow, "hello\n")
	all := k.begin("logs", "--all-containers", "-l", "app=web", "-f", "--prefix")
	d.untilTells(all, "[pod/"+web+"/main] hello\n")
	if out, talk, err := k.try("one\ntwo\n", "attach", "-i", web); err != nil {
		t.Errorf("attach: %v %s%s", err, out, talk)
	}
	d.untilTells(follow, "got one\ngot two\n")
	d.untilTells(all, "[pod/"+web+"/main] got two\n")
	if got := k.run("logs", web, "--tail", "1"); got != "got two\n" {
		t.Errorf("the last line: %q", got)
	}
	if got := k.run("logs", "-l", "app=web", "--limit-bytes", "4"); got != "hell" {
		t.Errorf("the first bytes: %q", got)
	}
	if got := k.run("logs", web, "--timestamps", "--since", "1h"); !strings.HasPrefix(got, time.Now().UTC().Format("2006-")) {
		t.Errorf("with a time: %q", got)
	}
	if got := k.run("exec", web, "--", "sh", "-c", "echo $COLOUR"); got != "green\n" {
		t.Errorf("exec: %q", got)
	}
	if out, _, err := k.try("3 4", "exec", "-i", web, "--", "wc", "-w"); err != nil || strings.TrimSpace(out) != "2" {
		t.Errorf("exec -i: %v %q", err, out)
	}
	if _, talk, err := k.try("", "exec", web, "--", "sh", "-c", "exit 7"); err == nil || !strings.Contains(talk, "exit code 7") {
		t.Errorf("exec of what fails: %v %s", err, talk)
	}
	k.refuses("exec "+web+" -c other -- true", "container other is not valid", "choose one of: [main]")
	k.copies(web)
	k.forwards(web)
}

// copies brings a file in and out again.
func (k *kubectl) copies(pod string) {
	k.d.t.Helper()
	dir := k.d.t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("cargo\n"), 0o600); err != nil {
		k.d.t.Fatal(err)
	}
	k.run("cp", in, pod+":/tmp/cargo")
	k.run("cp", pod+":/tmp/cargo", out)
	if got, err := os.ReadFile(out); err != nil || string(got) != "cargo\n" {
		k.d.t.Errorf("copied: %q %v", got, err)
	}
}

func (k *kubectl) forwards(pod string) {
	k.d.t.Helper()
	port := freePort(k.d.t)
	forward := k.begin("port-forward", pod, fmt.Sprintf("%d:8080", port))
	k.d.untilTells(forward, "Forwarding from 127.0.0.1")
	for range 2 { // each is a stream of its own
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/index.html", port))
		if err != nil {
			k.d.t.Fatalf("%v; %s", err, forward)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(body) != "up\n" || err != nil {
			k.d.t.Errorf("forwarded: %q %v", body, err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
}
