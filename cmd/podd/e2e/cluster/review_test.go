//go:build e2e

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/e2e/freeport"
	"podd/cmd/podd/internal/stream"
)

// newServingAgent prepares an agent with the configuration of a kubelet that kubeadm has set up.
// The agent serves the kubelet API on a free port instead of 10250.
func newServingAgent(t *testing.T, node string, flags ...string) (a *agent, port string) {
	t.Helper()
	free, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	port = strconv.Itoa(free)
	return newAgent(t, node, append([]string{
		"--enable-server=true", "--port", port, "--client-ca-file", filepath.Join(plane.dir, "ca.crt"), "--authorization-mode", "Webhook",
	}, flags...)...), port
}

// token returns a token of a new service account with permission to get the given resources. Without
// resources, the account has no permission.
func (p *controlPlane) token(t *testing.T, name string, resources ...string) string {
	t.Helper()
	return p.tokenFor(t, name, rbac.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: append(resources, "nodes/none")})
}

// tokenFor returns a token of a new service account with these rules.
func (p *controlPlane) tokenFor(t *testing.T, name string, rules ...rbac.PolicyRule) string {
	t.Helper()
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	made := []struct {
		path   string
		object any
	}{
		{accounts, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", &rbac.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
		}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &rbac.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbac.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
		}},
	}
	for _, m := range made {
		if err := p.do(http.MethodPost, m.path, m.object, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.do(http.MethodDelete, m.path+"/"+name, nil, nil) })
	}
	var q authentication.TokenRequest
	if err := p.do(http.MethodPost, accounts+"/"+name+"/token", &q, &q); err != nil {
		t.Fatal(err)
	}
	return q.Status.Token
}

// request sends a request to podd's API and returns the status code and the body. It does not
// verify podd's self-signed certificate.
func request(port, token, method, path string) (status int, body string, err error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: patience}
	q, err := http.NewRequest(method, "https://127.0.0.1:"+port+path, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := client.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// TestKubeletAPI_Authorization checks that the cluster authenticates and authorizes users of
// podd's API, including service accounts. While the cluster is unreachable, podd must use its
// cached decisions for a limited time.
func TestKubeletAPI_Authorization(t *testing.T) {
	reader := plane.token(t, "reader", "nodes/metrics", "nodes/pods")
	proxier := plane.token(t, "proxier", "nodes/proxy")
	powerless := plane.token(t, "powerless")
	a, port := newServingAgent(t, "n9")
	a.start().untilReady()
	type row struct {
		who, token, method, path string
		status                   int
		want                     string
	}
	check := func(rows []row) {
		t.Helper()
		for _, c := range rows {
			status, body, err := request(port, c.token, c.method, c.path)
			if err != nil || status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %s %s: got error %v, status %d, body %.300s; want status %d and %q in the body", c.who, c.method, c.path, err, status, body, c.status, c.want)
			}
		}
	}
	check([]row{
		{"reader", reader, "GET", "/metrics", 200, "kubelet_"},
		{"reader", reader, "GET", "/pods", 200, "PodList"},
		{"reader", reader, "GET", "/configz", 403, "Forbidden (user=system:serviceaccount:default:reader, verb=get, resource=nodes, subresource(s)=[configz proxy])"},
		{"reader", reader, "GET", "/api/v1/pods", 403, "nodes/proxy"},
		{"proxier", proxier, "GET", "/pods", 200, "PodList"},
		{"proxier", proxier, "GET", "/configz", 200, "kubeletconfig"},
		{"proxier", proxier, "GET", "/metrics", 403, "subresource(s)=[metrics]"},
		{"proxier", proxier, "GET", "/exec/default/x/main?command=id&output=1", 403, "verb=create"},
		{"proxier", proxier, "GET", "/api/v1/pods", 200, "PodList"},
		{"proxier", proxier, "GET", "/api/v1/namespaces/default/pods/x/exec?command=id", 403, "cannot create"},
		{"proxier", proxier, "POST", "/api/v1/namespaces/default/pods", 403, "forbidden"},
		{"powerless", powerless, "GET", "/pods", 403, "subresource(s)=[pods proxy]"},
		{"invalid token", reader[:len(reader)-8] + "AAAAAAAA", "GET", "/metrics", 401, "Unauthorized"},
		{"unknown token", "made-up", "GET", "/metrics", 401, "Unauthorized"},
		{"no token", "", "GET", "/metrics", 401, "Unauthorized"},
	})
	if n := a.countInLog(reader) + a.countInLog("made-up"); n != 0 {
		t.Errorf("log: got tokens %d times, want them never", n)
	}
	// podd has not verified the token late before the outage. Therefore podd must reject this token
	// during the outage.
	late := plane.token(t, "late", "nodes/metrics")
	restart := plane.killAPIServer(t)
	check([]row{
		{"reader, outage", reader, "GET", "/metrics", 200, "kubelet_"},
		{"reader, outage", reader, "GET", "/stats/summary", 500, "Authorization error (user=system:serviceaccount:default:reader, verb=get, resource=nodes, subresource=stats)"},
		{"powerless, outage", powerless, "GET", "/logs/", 500, "Authorization error"},
		{"late, outage", late, "GET", "/metrics", 401, "Unauthorized"},
	})
	restart()
	a.eventually("podd authenticates a new token with the API server", func() error {
		status, body, err := request(port, late, "GET", "/metrics")
		if err == nil && status != 200 {
			err = fmt.Errorf("got status %d, body %s; want status 200", status, body)
		}
		return err
	})
}

// dial opens a connection to the API server as administrator.
func (p *controlPlane) dial(t *testing.T, path string, query url.Values) (net.Conn, *url.URL) {
	t.Helper()
	target, err := url.Parse(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	target.RawQuery = query.Encode()
	conf := p.admin.Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.NextProtos = []string{"http/1.1"}
	conn, err := tls.Dial("tcp", target.Host, conf)
	if err != nil {
		t.Fatal(err)
	}
	return conn, target
}

// getText returns the body of the response to a GET request.
func (p *controlPlane) getText(path string) (string, error) {
	r, err := p.admin.Get(p.url + path)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("got status %s, want 200: %s", r.Status, body)
	}
	return string(body), err
}

// TestKubeletAPI_Streams checks the requests of kubectl logs, exec, attach, port-forward and top
// to the API server, for a static pod of podd.
func TestKubeletAPI_Streams(t *testing.T) {
	t.Parallel()
	a, _ := newServingAgent(t, "n10")
	a.start().untilReady()
	const manifest = `{apiVersion: v1, kind: Pod, metadata: {name: %s},
spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "podd.test/busybox:1", stdin: true,
command: [sh, -c, "echo began; httpd -p 8080; while read line; do echo got $line; done; sleep 1000000"]}]}}`
	a.write("web", fmt.Sprintf(manifest, "web"))
	a.untilRunning("web")
	const name = "web-n10"
	const pods = "/api/v1/namespaces/default/pods"
	a.eventually("the log is available", func() error {
		text, err := plane.getText(pods + "/" + name + "/log")
		if err == nil && !strings.Contains(text, "began") {
			err = fmt.Errorf("got log %q, want %q in it", text, "began")
		}
		return err
	})
	run := func(verb string, query url.Values, c stream.Command) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, target := plane.dial(t, pods+"/"+name+"/"+verb, query)
		streams, err := stream.DialCommand(ctx, conn, target)
		if err != nil {
			return err
		}
		return c.Run(ctx, streams)
	}
	var out, errs bytes.Buffer
	err := run("exec", url.Values{"command": {"sh", "-c", "cat; echo bad >&2; exit 3"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}},
		stream.Command{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errs})
	if exit, ok := err.(*stream.ExitError); !ok || exit.Code != 3 || out.String() != "hello" || errs.String() != "bad\n" {
		t.Errorf("exec: got error %v, stdout %q, stderr %q; want exit code 3, stdout %q, stderr %q", err, out.String(), errs.String(), "hello", "bad\n")
	}
	in, type_ := io.Pipe()
	received := make(lines, 16)
	var attached sync.WaitGroup
	defer attached.Wait()
	attached.Go(func() {
		_ = run("attach", url.Values{"stdin": {"true"}, "stdout": {"true"}}, stream.Command{Stdin: in, Stdout: received})
	})
	defer type_.Close()
	// One input is not enough, because containerd may forward the input before it can forward output. Then
	// the response of the container is lost.
	enough := make(chan struct{})
	attached.Go(func() {
		for {
			if _, err := io.WriteString(type_, "typed\n"); err != nil {
				return
			}
			select {
			case <-enough:
				return
			case <-time.After(time.Second):
			}
		}
	})
	for !strings.Contains(received.next(t), "got typed\n") {
	}
	close(enough)
	if conn, target := plane.dial(t, pods+"/"+name+"/portforward", nil); true {
		forward, err := stream.DialForward(t.Context(), conn, target)
		if err != nil {
			t.Fatal(err)
		}
		defer forward.Close()
		near, far := net.Pipe()
		go func() { _ = forward.Forward(8080, far) }()
		if _, err := io.WriteString(near, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			t.Error(err)
		}
		if text, _ := io.ReadAll(near); !bytes.HasPrefix(text, []byte("HTTP/1.")) {
			t.Errorf("port-forward: got %q, want an HTTP response", text)
		}
	}
	type_.Close()
	a.remove("web") // this ends the attach stream
	for path, want := range map[string]string{
		"stats/summary": `"nodeName":"n10"`, "metrics/resource": "node_cpu_usage_seconds_total", "pods": "PodList", "configz": "kubeletconfig", "healthz": "ok",
	} {
		if text, err := plane.getText("/api/v1/nodes/n10/proxy/" + path); err != nil || !strings.Contains(text, want) {
			t.Errorf("proxy/%s: got error %v, body %.300s; want %q in the body", path, err, text, want)
		}
	}
}

// lines is a writer that sends each write to a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func (l lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(patience):
		t.Fatalf("waited %v for output: got none", patience)
		return ""
	}
}
