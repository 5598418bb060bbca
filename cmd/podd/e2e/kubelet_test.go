//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/e2e/controlplane"
	"podd/cmd/podd/e2e/freeport"
	"podd/server/pki"
)

// A client sends requests to podd's kubelet API.
type client struct {
	*http.Client
	t      testing.TB
	server string
	tls    *tls.Config
}

// admin returns a client with the credential that podd kubeconfig issues.
func (d *daemon) admin() *client {
	d.t.Helper()
	c, err := controlplane.NewClient(d.kubeconfig())
	if err != nil {
		d.t.Fatal(err)
	}
	return d.client(c.URL, c.HTTP.Transport.(*http.Transport).TLSClientConfig)
}

// kubeconfig returns a file that podd kubeconfig has written.
func (d *daemon) kubeconfig() string {
	d.t.Helper()
	file := filepath.Join(d.dir, "kubeconfig")
	d.verb("kubeconfig", "--output", file)
	return file
}

func (d *daemon) client(server string, conf *tls.Config) *client {
	transport := &http.Transport{TLSClientConfig: conf}
	d.t.Cleanup(transport.CloseIdleConnections)
	return &client{Client: &http.Client{Transport: transport}, t: d.t, server: server, tls: conf}
}

// send sends a request, with a bearer token unless token is empty. The caller closes the body of the
// response.
func (c *client) send(ctx context.Context, method, path, token string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.server+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// request sends a request and returns the status code and the body of the response.
func (c *client) request(method, path, token string) (int, string) {
	c.t.Helper()
	resp := c.send(c.t.Context(), method, path, token)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// stream opens a WebSocket with one of Kubernetes' protocols.
func (c *client) stream(path, protocol string) *websocket.Conn {
	c.t.Helper()
	conf, err := websocket.NewConfig("wss"+strings.TrimPrefix(c.server, "https")+path, c.server)
	if err != nil {
		c.t.Fatal(err)
	}
	conf.TlsConfig, conf.Protocol = c.tls, []string{protocol}
	conn, err := conf.DialContext(c.t.Context())
	if err != nil {
		c.t.Fatalf("opening %s: %v", path, err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// readChannel returns the data that arrives on a channel. It reads until the data contains want or,
// if want is "", until the connection is closed.
func readChannel(t testing.TB, conn *websocket.Conn, channel byte, want string) string {
	t.Helper()
	var got strings.Builder
	for !strings.Contains(got.String(), want) || want == "" {
		var frame []byte
		if err := websocket.Message.Receive(conn, &frame); err != nil {
			if want != "" {
				t.Fatalf("reading from channel %d: got %q and then error %v, want %q", channel, got.String(), err, want)
			}
			break
		}
		if len(frame) > 0 && frame[0] == channel {
			got.Write(frame[1:])
		}
	}
	return got.String()
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestKubeletAPI checks pods, logs, exec, attach, port-forward and run, with the requests of
// the API server and kubectl.
func TestKubeletAPI(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	web := shell("main", "echo hello; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & while read line; do echo got $line; done; wait")
	web.Stdin = true
	web.ReadinessProbe = probeEverySecond(execHandler("echo up >/tmp/index.html; wget -q -O /dev/null http://127.0.0.1:8080/"))
	d.apply(d.pod("web", web))
	d.untilApplied("web")
	c := d.admin()

	status, text := c.request("GET", "/pods", "")
	var pods v1.PodList
	if err := json.Unmarshal([]byte(text), &pods); err != nil || status != 200 || len(pods.Items) != 1 || pods.Items[0].Name != d.podName("web") {
		t.Errorf("GET /pods: got status %d, body %s; want status 200 and only the pod web", status, text)
	}
	pod := "/default/" + d.podName("web")
	d.eventually("the log of container main contains \"hello\"", func() error {
		if status, text := c.request("GET", "/containerLogs"+pod+"/main", ""); status != 200 || !strings.Contains(text, "hello\n") {
			return fmt.Errorf("got status %d, body %s; want status 200 and %q in the body", status, text, "hello\n")
		}
		return nil
	})
	for query, want := range map[string]string{
		"tailLines=0": "", "limitBytes=3": "hel", "sinceTime=2999-01-01T00:00:00Z": "", "insecureSkipTLSVerifyBackend=true": "hello\n",
	} {
		if status, text := c.request("GET", "/containerLogs"+pod+"/main?"+query, ""); status != 200 || text != want {
			t.Errorf("GET /containerLogs with %s: got status %d, body %q; want status 200, body %q", query, status, text, want)
		}
	}
	if status, text := c.request("POST", "/run"+pod+"/main?cmd=echo+one+two", ""); status != 200 || text != "one two\n" {
		t.Errorf("POST /run: got status %d, body %q; want status 200, body %q", status, text, "one two\n")
	}
	for path, want := range map[string]string{"/healthz": "ok", "/runningpods/": d.podName("web"), "/configz": `"kubeletconfig"`, "/flagz": "hostname-override=" + d.host, "/statusz": "Emulation version: "} {
		if status, text := c.request("GET", path, ""); status != 200 || !strings.Contains(text, want) {
			t.Errorf("GET %s: got status %d, body %.200s; want status 200 and %q in the body", path, status, text, want)
		}
	}

	shell := c.stream("/exec"+pod+"/main?command=sh&input=1&output=1&error=1", "v4.channel.k8s.io")
	websocket.Message.Send(shell, []byte("\x00echo $((6*7)); echo oops >&2; exit 3\n"))
	readChannel(t, shell, 1, "42\n")
	if end := readChannel(t, shell, 3, "message"); !strings.Contains(end, `"NonZeroExitCode"`) {
		t.Errorf("/exec of a command that fails: got the status %s, want the reason NonZeroExitCode", end)
	}
	attached := c.stream("/attach"+pod+"/main?input=1&output=1", "v4.channel.k8s.io")
	enough := repeatInput(t, func() { websocket.Message.Send(attached, []byte("\x00it\n")) })
	readChannel(t, attached, 1, "got it\n")
	enough()
	forward := c.stream("/portForward"+pod+"?port=8080", "v4.channel.k8s.io")
	websocket.Message.Send(forward, []byte("\x00GET /index.html HTTP/1.0\r\n\r\n"))
	readChannel(t, forward, 0, "up\n")

	d.wantUnauthorized(c.server)

	// A request on podd's socket needs no credential, because only root can connect to the socket.
	local := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(d.runDir(), "podd.sock"))
	}}}
	defer local.CloseIdleConnections()
	resp, err := local.Get("http://podd/runningpods/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("GET /runningpods/ on podd's socket: got %s, want 200", resp.Status)
	}
}

// TestKubeletAPIFollow checks that a client that follows a log gets every line and then the end
// of the stream.
func TestKubeletAPIFollow(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	p := d.pod("job", shell("main", "echo one; until [ -e /trace/go ]; do sleep 0.1; done; echo two"))
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	d.apply(p)
	d.untilApplied("job")
	c := d.admin()
	resp := c.send(t.Context(), http.MethodGet, "/containerLogs/default/"+d.podName("job")+"/main?follow=true", "")
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for _, want := range []string{"one\n", "two\n", ""} {
		if got, _ := lines.ReadString('\n'); got != want {
			t.Errorf("next line of the followed log: got %q, want %q", got, want)
		}
		d.touch("go")
	}
}

// TestKubeletAPI_Authorization checks that podd rejects unauthenticated clients, and authorizes
// authenticated clients by the policy. podd must reload the files of the tokens and of the policy when
// they change.
func TestKubeletAPI_Authorization(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens, policy := filepath.Join(dir, "tokens"), filepath.Join(dir, "policy.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(resources string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [""], resources: [` + resources + `], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: User, name: prom}]}
`
	}
	write(tokens, "abc,prom,1\n")
	write(policy, rules("nodes/proxy"))
	d := newDaemon(t, shared, "--token-auth-file", tokens, "--authorization-policy-file", policy, "--address", "127.0.0.1")
	d.api = freePort(t)
	d.start()
	d.apply(d.pod("web", shell("main", serve("main"))))
	d.untilApplied("web")
	server := "https://" + net.JoinHostPort("127.0.0.1", fmt.Sprint(d.api))
	c := d.client(server, &tls.Config{InsecureSkipVerify: true})
	exec := "/exec/default/" + d.podName("web") + "/main?command=id&output=1"
	checkStatus := func(path, token string, want int) {
		t.Helper()
		if status, text := c.request("GET", path, token); status != want {
			t.Errorf("GET %s with token %q: got status %d, body %s; want status %d", path, token, status, text, want)
		}
	}
	checkStatus("/pods", "", 401)
	checkStatus("/healthz", "", 401)
	checkStatus("/pods", "abcd", 401)
	checkStatus("/pods", "abc", 200)
	checkStatus(exec, "abc", 403) // exec requires the verb create, although a WebSocket starts with the method GET
	proxy := "/api/v1/nodes/" + d.host + "/proxy"
	checkStatus(proxy+"/stats/summary", "abc", 200)
	checkStatus(proxy+exec, "abc", 403)
	checkStatus("/api/v1/secrets", "abc", 403)
	checkStatus("/api/v1/pods", "abc", 403)
	write(policy, rules("nodes/healthz"))
	checkStatus("/pods", "abc", 403)
	checkStatus("/healthz", "abc", 200)
	write(policy, "broken")
	checkStatus("/healthz", "abc", 200)
	write(tokens, "xyz,prom,1\n")
	checkStatus("/healthz", "abc", 401)
	checkStatus("/healthz", "xyz", 200)
	if r, err := http.Get("http://" + strings.TrimPrefix(server, "https://") + "/pods"); err == nil {
		r.Body.Close()
		if r.StatusCode != 400 {
			t.Errorf("GET /pods without TLS: got %s, want 400", r.Status)
		}
	}
	log, err := os.ReadFile(d.logFile())
	if err != nil || strings.Contains(string(log), "xyz") {
		t.Errorf("podd's log: got the token xyz in it, or a read error (%v); want no token", err)
	}
}

// wantUnauthorized checks a podd for which no authentication is configured. podd must reject requests
// without credentials, with a certificate of another CA, or with a token. It must listen on loopback
// only.
func (d *daemon) wantUnauthorized(server string) {
	d.t.Helper()
	ca, err := pki.Open(d.t.TempDir())
	if err != nil {
		d.t.Fatal(err)
	}
	cert, key, err := ca.SignClient("podd-admin", []string{"system:masters"}, time.Hour)
	if err != nil {
		d.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range []*client{
		d.client(server, &tls.Config{InsecureSkipVerify: true}),
		d.client(server, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}),
	} {
		for _, path := range []string{"/pods", "/", "/healthz", "/api/v1/pods", "/v1/credential", "/api/v1/nodes/" + d.host + "/proxy/pods"} {
			for _, token := range []string{"", "abc"} {
				if status, text := c.request("GET", path, token); status != 401 {
					d.t.Errorf("GET %s with an invalid credential or none: got status %d, body %s; want status 401", path, status, text)
				}
			}
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, a := range addresses {
		ip := a.(*net.IPNet).IP
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		if conn, err := net.Dial("tcp", net.JoinHostPort(ip.String(), fmt.Sprint(d.api))); err == nil {
			conn.Close()
			d.t.Errorf("connecting to podd at %s: got a connection, want none, because podd must listen only on loopback", ip)
		}
	}
}
