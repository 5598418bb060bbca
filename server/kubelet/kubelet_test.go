package kubelet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// node publishes a View with a pod, of which container "app" is running and container "done" has
// terminated. It records the last call of its Runtime and LogReader methods.
type node struct {
	*server.LatestView
	call string
	url  string // returned by Exec, Attach and PortForward
	err  error
	log  string
	cut  bool // Logs fails after writing log
}

func newNode() *node {
	p := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n1", UID: "u1"},
		Spec: v1.PodSpec{Containers: []v1.Container{
			{Name: "app", Image: "web:1", Env: []v1.EnvVar{{Name: "A", Value: "b"}}}, {Name: "done", Image: "job:1"},
		}},
		Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", Image: "web:1", ContainerID: "containerd://c1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
			{Name: "done", Image: "job:1", ContainerID: "containerd://c2", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
		}},
	}
	idle := p.DeepCopy()
	idle.Name, idle.UID, idle.Status = "zzz-n1", "u2", v1.PodStatus{}
	return &node{LatestView: server.NewLatestView(&server.View{Revision: 1, Node: "n1", Version: "v9", Pods: []*server.PodView{{Pod: p, SandboxID: "s1"}, {Pod: idle}}})}
}

func (n *node) handler() http.Handler {
	return (&API{
		State: n, Logs: n, Runtime: n,
		Stats: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "stats: "+r.Method+" "+r.URL.Path)
		}),
		Health: &server.Health{Checks: []server.Check{{Name: "syncloop", Func: func() error { return nil }}}},
		Config: func(context.Context) any { return json.RawMessage(`{"maxPods":7}`) }, Flags: func() map[string]string { return map[string]string{"v": "2", "port": "10250"} }, StartTime: time.Unix(1000, 0), KubernetesRelease: "1.37",
		MirrorUID: func(key types.NamespacedName) types.UID {
			return map[types.NamespacedName]types.UID{{Namespace: "default", Name: "web-n1"}: "mirror"}[key]
		},
		SystemLogs: fstest.MapFS{"syslog": {Data: []byte("line\n")}}, SystemLogQueryEnabled: true, CheckpointDir: "/nowhere/else",
		DebuggingEnabled: true, ProfilingEnabled: true, SetVerbosity: func(int) { n.call = "verbosity" },
	}).Handler()
}

func (n *node) Exec(_ context.Context, id string, command []string, s Streams) (string, error) {
	n.call = "exec " + id + " " + strings.Join(command, "|") + stdio(s)
	return n.url, n.err
}

func (n *node) Attach(_ context.Context, id string, s Streams) (string, error) {
	n.call = "attach " + id + stdio(s)
	return n.url, n.err
}

func (n *node) PortForward(_ context.Context, sandbox string, ports []int32) (string, error) {
	b, _ := json.Marshal(ports)
	n.call = "forward " + sandbox + " " + string(b)
	return n.url, n.err
}

func (n *node) Run(_ context.Context, id string, command []string) ([]byte, int32, error) {
	n.call = "run " + id + " " + strings.Join(command, "|")
	if command[0] == "false" {
		return []byte("no"), 3, n.err
	}
	return []byte("out"), 0, n.err
}

func (n *node) Checkpoint(_ context.Context, id, file string, timeout time.Duration) error {
	n.call = "checkpoint " + id + " " + file + " " + timeout.String()
	return n.err
}

func (n *node) Logs(_ context.Context, req server.LogRequest, w io.Writer) error {
	b, _ := json.Marshal(req)
	n.call = string(b)
	io.WriteString(w, n.log)
	if n.cut {
		return errors.New("reading the log failed")
	}
	return n.err
}

func stdio(s Streams) string {
	var on []string
	for name, is := range map[string]bool{"in": s.Stdin, "out": s.Stdout, "err": s.Stderr, "tty": s.TTY} {
		if is {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return " " + strings.Join(on, ",")
}

func TestAPI(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string // part of the response
	}{
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/healthz/syncloop", "", 200, "ok"},
		{"GET", "/livez", "", 200, "ok"},
		{"GET", "/readyz", "", 200, "ok"},
		{"GET", "/pods", "", 200, `"env":[{"name":"A","value":"b"}]`},
		{"GET", "/pods/", "", 200, `"kind":"PodList","apiVersion":"v1"`},
		{"POST", "/pods", "", 405, ""},
		{"GET", "/runningpods/", "", 200, `"items":[{"metadata":{"name":"web-n1","namespace":"default","uid":"u1"},"spec":{"containers":[{"name":"app","image":"web:1","resources":{}}]},"status":{}}]`},
		{"GET", "/configz", "", 200, `{"kubeletconfig":{"maxPods":7}}`},
		{"GET", "/logs/syslog", "", 200, "line\n"},
		{"GET", "/logs/", "", 200, "syslog"},
		{"GET", "/logs/nothing", "", 404, ""},
		{"GET", "/logs/?query=syslog", "", 200, "line\n"},
		{"POST", "/logs/?query=syslog", "", 405, ""},
		{"GET", "/debug/pprof/symbol", "", 200, "num_symbols"},
		{"GET", "/debug/pprof/cmdline", "", 404, ""},
		{"PUT", "/debug/flags/v", "4", 200, "successfully set klog.logging.verbosity to 4"},
		{"PUT", "/debug/flags/v", "many", 400, "not a number"},
		{"PUT", "/debug/flags/v", strings.Repeat("1", 100), 400, "not a number"},
		{"GET", "/metricz", "", 404, ""},
		{"GET", "/metrics", "", 200, "stats: GET /metrics"},
		{"GET", "/metrics/cadvisor", "", 200, "stats: GET /metrics/cadvisor"},
		{"GET", "/metrics/resource", "", 200, "stats: GET /metrics/resource"},
		{"GET", "/metrics/probes", "", 200, "stats: GET /metrics/probes"},
		{"GET", "/stats/summary", "", 200, "stats: GET /stats/summary"},
		{"POST", "/stats/summary", "", 200, "stats: POST /stats/summary"},
		{"GET", "/spec/", "", 200, "stats: GET /spec/"},
		{"POST", "/spec/", "", 405, ""},
		{"POST", "/run/default/web-n1/app?cmd=ls+-l", "", 200, "out"},
		{"POST", "/run/default/web-n1/u1/app?cmd=ls", "", 200, "out"},
		{"POST", "/run/default/web-n1/mirror/app?cmd=ls", "", 200, "out"},
		{"POST", "/run/default/zzz-n1/mirror/app?cmd=ls", "", 404, `pod "zzz-n1" does not exist`},
		{"POST", "/run/default/web-n1/app?cmd=false", "", 500, "command 'false' exited with 3: no"},
		{"POST", "/run/default/web-n1/app", "", 400, "no command"},
		{"GET", "/run/default/web-n1/app?cmd=ls", "", 405, ""},
		{"POST", "/exec/default/web-n1/app", "", 400, "at least 1 of stdin, stdout, stderr"},
		{"POST", "/exec/default/web-n1/app?output=1", "", 400, "no command"},
		{"POST", "/exec/default/nobody/app?output=1&command=ls", "", 404, `pod "nobody" does not exist`},
		{"POST", "/exec/default/web-n1/u2/app?output=1&command=ls", "", 404, `pod "web-n1" does not exist`},
		{"POST", "/exec/default/web-n1/mirror/done?output=1&command=ls", "", 404, `container "done" of pod "web-n1" is not running`},
		{"POST", "/attach/default/web-n1/mirror/done?output=1", "", 404, `container "done" of pod "web-n1" is not running`},
		{"POST", "/portForward/default/web-n1/mirror", "", 500, "the runtime returned no valid URL of its streaming server"},
		{"POST", "/exec/default/web-n1/ap?output=1&command=ls", "", 404, `container "ap" not found in pod "web-n1"`},
		{"POST", "/exec/default/web-n1/done?output=1&command=ls", "", 404, `container "done" of pod "web-n1" is not running`},
		{"POST", "/exec/default/web-n1/app?output=1&command=ls", "", 500, "the runtime returned no valid URL of its streaming server"},
		{"POST", "/portForward/default/zzz-n1", "", 404, `pod "zzz-n1" is not running`},
		{"POST", "/portForward/default/web-n1?port=0", "", 400, `"0" is not a port number`},
		{"POST", "/portForward/default/web-n1?port=65536", "", 400, `"65536" is not a port number`},
		{"POST", "/checkpoint/default/web-n1/app?timeout=-1", "", 400, "not a number of seconds"},
		{"POST", "/checkpoint/default/web-n1/done", "", 404, "is not running"},
		{"GET", "/containerLogs/default/web/app", "", 404, `pod "web" does not exist; did you mean "web-n1"?`},
		{"GET", "/containerLogs/default/web-n1/ap", "", 404, `container "ap" not found`},
		{"GET", "/containerLogs/default/web-n1/app?tailLines=x", "", 400, "tailLines"},
		{"GET", "/containerLogs/default/web-n1/app?tailLines=-1", "", 422, "too small"},
		{"GET", "/containerLogs/default/web-n1/app?limitBytes=0", "", 422, "too small"},
		{"GET", "/containerLogs/default/web-n1/app?sinceSeconds=0", "", 422, "too small"},
		{"GET", "/containerLogs/default/web-n1/app?sinceTime=now", "", 400, "not a time"},
		{"GET", "/containerLogs/default/web-n1/app?sinceSeconds=1&sinceTime=2026-01-02T15:04:05Z", "", 422, "at most one"},
		{"GET", "/containerLogs/default/web-n1/app?stream=Stderr", "", 422, "stream may not"},
	} {
		w := httptest.NewRecorder()
		newNode().handler().ServeHTTP(w, httptest.NewRequest(c.method, c.target, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: got %d %s, want %d %s", c.method, c.target, w.Code, w.Body, c.status, c.want)
		}
	}
}

// TestAPI_DebuggingDisabled checks that, if debugging is disabled, its endpoints respond with an
// error that names this cause, and that all others are served.
func TestAPI_DebuggingDisabled(t *testing.T) {
	n := newNode()
	h := (&API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler()}).Handler()
	for target, want := range map[string]string{
		"/exec/default/web-n1/app?output=1&command=ls": "405 Debug endpoints are disabled.",
		"/containerLogs/default/web-n1/app":            "405 Debug endpoints are disabled.",
		"/runningpods/":                                "405 Debug endpoints are disabled.",
		"/logs/syslog":                                 "405 Debug endpoints are disabled.",
		"/debug/pprof/heap":                            "405 Debug endpoints are disabled.",
		"/run/default/web-n1/app":                      "405 Debug endpoints are disabled.",
		"/debug/flags/v":                               "404 404 page not found",
		"/configz":                                     "404 404 page not found",
		"/checkpoint/default/web-n1/app":               "404 404 page not found",
		"/pods":                                        "200 ",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if got := http.StatusText(w.Code); got == "" || !strings.HasPrefix(want, w.Result().Status[:3]) || !strings.Contains(w.Body.String(), want[4:]) {
			t.Errorf("%s: got %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
	if n.call != "" {
		t.Errorf("got call %s, want none", n.call)
	}
}

// TestServeLog_EndSentSeparately checks that the end of a log is sent separately from its last
// bytes. If both arrive together, an API server does not send these bytes to WebSocket clients.
func TestServeLog_EndSentSeparately(t *testing.T) {
	n := newNode()
	s := httptest.NewServer((&API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true}).Handler())
	defer s.Close()
	r, err := s.Client().Get(s.URL + "/containerLogs/default/web-n1/app")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != 200 || r.ContentLength != -1 {
		t.Errorf("got status %s, content length %d; want status 200, content length -1 (chunked)", r.Status, r.ContentLength)
	}
}

// TestAPI_EndpointDisabled checks that, if an endpoint is disabled by its own setting, the response
// names the endpoint.
func TestAPI_EndpointDisabled(t *testing.T) {
	n := newNode()
	h := (&API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true}).Handler()
	for target, want := range map[string]string{
		"/logs/syslog":      "logs endpoint is disabled.\n",
		"/debug/pprof/heap": "profiling endpoint is disabled.\n",
		"/debug/flags/v":    "flags endpoint is disabled.\n",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != 405 || w.Body.String() != want {
			t.Errorf("%s: got %d %q, want 405 %q", target, w.Code, w.Body, want)
		}
	}
}

// TestAPI_Checkpoint checks that the runtime writes the checkpoint, and that the response contains
// the path of the file.
func TestAPI_Checkpoint(t *testing.T) {
	n, dir := newNode(), filepath.Join(t.TempDir(), "checkpoints")
	h := (&API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true, CheckpointDir: dir}).Handler()
	checkpoint := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/checkpoint/default/web-n1/app?timeout=7", nil))
		return w
	}
	w := checkpoint()
	var written struct{ Items []string }
	if err := json.Unmarshal(w.Body.Bytes(), &written); err != nil || w.Code != 200 || len(written.Items) != 1 {
		t.Fatalf("got %d %s and error %v, want 200 and the path of a checkpoint", w.Code, w.Body, err)
	}
	file := written.Items[0]
	if name := filepath.Base(file); filepath.Dir(file) != dir || !strings.HasPrefix(name, "checkpoint-web-n1_default-app-") || filepath.Ext(name) != ".tar" {
		t.Errorf("got checkpoint file %s, want checkpoint-web-n1_default-app-*.tar in %s", file, dir)
	}
	if want := "checkpoint c1 " + file + " 7s"; n.call != want {
		t.Errorf("got call %s, want %s", n.call, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("checkpoint directory: got mode %v, error %v; want mode 0700", info.Mode(), err)
	}
	n.err = server.NewNotFoundError("the runtime does not support checkpoints")
	if w := checkpoint(); w.Code != 404 || w.Body.String() != "checkpointing container default/web-n1/app: the runtime does not support checkpoints\n" {
		t.Errorf("got %d %s, want 404 and the runtime's error", w.Code, w.Body)
	}
}

// TestAPI_SystemLogMarkup checks that a browser does not interpret markup in system logs.
func TestAPI_SystemLogMarkup(t *testing.T) {
	n := newNode()
	h := (&API{State: n, Logs: n, Runtime: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true,
		SystemLogs: fstest.MapFS{"app": {Data: []byte("<html><script>fetch('/exec')</script>")}}}).Handler()
	for _, target := range []string{"/logs/", "/logs/app"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if got := w.Header().Get("Content-Security-Policy"); w.Code != 200 || got != "sandbox; default-src 'none'" {
			t.Errorf("%s: got status %d, Content-Security-Policy %q; want status 200, a policy of sandbox and default-src 'none'", target, w.Code, got)
		}
	}
}

func TestParseLogRequest(t *testing.T) {
	const zero = `"Previous":false,"Follow":false,"Tail":-1,"Since":"0001-01-01T00:00:00Z","Timestamps":false,"Limit":0}`
	for query, want := range map[string]string{
		"":         zero,
		"follow":   strings.Replace(zero, `"Follow":false`, `"Follow":true`, 1),
		"follow=0": zero,
		"previous=true&timestamps=1&tailLines=0&limitBytes=5": `"Previous":true,"Follow":false,"Tail":0,"Since":"0001-01-01T00:00:00Z","Timestamps":true,"Limit":5}`,
		"tail=3":                         strings.Replace(zero, `"Tail":-1`, `"Tail":3`, 1),
		"tail=all":                       zero,
		"sinceTime=2026-01-02T15:04:05Z": strings.Replace(zero, "0001-01-01T00:00:00Z", "2026-01-02T15:04:05Z", 1),
	} {
		n := newNode()
		n.log = "hello\n"
		w := httptest.NewRecorder()
		n.handler().ServeHTTP(w, httptest.NewRequest("GET", "/containerLogs/default/web-n1/app?"+query, nil))
		if w.Code != 200 || w.Body.String() != "hello\n" || !strings.HasSuffix(n.call, want) {
			t.Errorf("%q: got %d %s, want 200 hello; got call %s, want the end %s", query, w.Code, w.Body, n.call, want)
		}
	}
}

// TestServeLog_Incomplete checks that a client gets an error if the log that it receives is
// incomplete.
func TestServeLog_Incomplete(t *testing.T) {
	n := newNode()
	n.log, n.cut = strings.Repeat("line\n", 20000), true
	s := httptest.NewServer(n.handler())
	defer s.Close()
	r, err := http.Get(s.URL + "/containerLogs/default/web-n1/app")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("reading the response of an incomplete log: got no error, want one")
	}
	n.log = ""
	r, err = http.Get(s.URL + "/containerLogs/default/web-n1/app")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != 500 || !strings.Contains(string(text), "reading the log failed") {
		t.Errorf("got status %s, body %s; want status 500, and the error in the body", r.Status, text)
	}
}

// TestServeLog_FollowCanceled checks that, if podd or the client terminates a followed log, no
// error is added to the log.
func TestServeLog_FollowCanceled(t *testing.T) {
	n := newNode()
	n.err = context.Canceled
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || w.Body.Len() > 0 {
			t.Errorf("got panic %v and body %q, want panic %v and an empty body", p, w.Body, http.ErrAbortHandler)
		}
	}()
	n.handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/containerLogs/default/web-n1/app?follow=true", nil))
}

// TestStreams_Upgrade checks that, after the upgrade, data passes in both directions unchanged. The
// runtime's server receives neither the Authorization header nor podd's path.
func TestStreams_Upgrade(t *testing.T) {
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/exec/token" || r.URL.RawQuery != "" || r.Header.Get("Authorization") != "" || r.Header.Get("X-Stream-Protocol-Version") != "v4" {
			http.Error(w, "unexpected request "+r.URL.String(), http.StatusBadRequest)
			return
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello ")
		line, _ := rw.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	}))
	defer runtime.Close()
	n := newNode()
	n.url = runtime.URL + "/exec/token"
	s := httptest.NewServer(n.handler())
	defer s.Close()
	for _, target := range []struct{ path, call string }{
		{"/exec/default/web-n1/app?command=a+b&command=c&input=1&output=1&error=1", "exec c1 a b|c err,in,out"},
		{"/exec/default/web-n1/u1/app?command=sh&input=1&output=1&error=1&tty=1", "exec c1 sh in,out,tty"},
		{"/attach/default/web-n1/app?output=1", "attach c1 out"},
		{"/portForward/default/web-n1", "forward s1 null"},
		{"/portForward/default/web-n1/u1?port=80&port=8080", "forward s1 [80,8080]"},
	} {
		addr, _ := url.Parse(s.URL)
		conn, err := net.Dial("tcp", addr.Host)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "POST "+target.path+" HTTP/1.1\r\nHost: n1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4\r\nAuthorization: Bearer s3cret\r\n\r\n")
		from := bufio.NewReader(conn)
		agreed, _ := from.ReadString('\n')
		io.WriteString(conn, "input\n")
		all, err := io.ReadAll(from)
		conn.Close()
		if err != nil || !strings.HasPrefix(agreed, "HTTP/1.1 101 ") || !strings.HasSuffix(string(all), "hello INPUT\n") || n.call != target.call {
			t.Errorf("%s: got status line %q, data %q, error %v, call %q; want status 101, data that ends in \"hello INPUT\\n\", no error, call %q", target.path, agreed, all, err, n.call, target.call)
		}
	}
	n.url = "http://127.0.0.1:1/unreachable"
	r, err := http.Post(s.URL+"/attach/default/web-n1/app?output=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusBadGateway {
		t.Errorf("runtime is unreachable: got %s, want 502", r.Status)
	}
}

// TestStreams_OutputAfterExit checks that, if a command exits without reading all of its input, the
// client receives all output, even if the client reads slowly.
func TestStreams_OutputAfterExit(t *testing.T) {
	output := strings.Repeat("a", 40<<10) + " the end"
	closed := make(chan struct{})
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"+output)
		conn.(*net.TCPConn).SetLinger(0) // makes Close reset the connection, as if the command had not read all of its input
		conn.Close()
		close(closed)
	}))
	defer runtime.Close()
	n := newNode()
	n.url = runtime.URL + "/exec/token"
	client, podds := net.Pipe() // net.Pipe has no buffer, so the client reads slowly
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/exec/default/web-n1/app?command=echo&input=1&output=1", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	served := make(chan struct{})
	go func() {
		defer close(served)
		n.handler().ServeHTTP(hijacked{httptest.NewRecorder(), podds}, r)
	}()
	from := bufio.NewReaderSize(client, 16)
	if line, err := from.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 101 ") {
		t.Fatalf("got %q and error %v, want status 101", line, err)
	}
	<-closed
	for line := "-"; line != "" && line != "\r\n"; {
		line, _ = from.ReadString('\n')
	}
	for range 3 {
		client.Write([]byte("more input")) // either all or nothing is written
	}
	all, err := io.ReadAll(from)
	if string(all) != output {
		t.Errorf("got %d bytes, error %v; want the %d bytes of the output", len(all), err, len(output))
	}
	client.Close()
	<-served
}

// TestStreams_ClientDisconnects checks that, if the client disconnects, podd closes the stream
// although the command continues to run.
func TestStreams_ClientDisconnects(t *testing.T) {
	served := make(chan struct{})
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		<-served
	}))
	defer runtime.Close()
	n := newNode()
	n.url = runtime.URL + "/exec/token"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		n.handler().ServeHTTP(w, r)
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "POST /exec/default/web-n1/app?command=sleep&input=1&output=1 HTTP/1.1\r\nHost: n1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 101 ") {
		t.Errorf("got %q and error %v, want status 101", line, err)
	}
	conn.Close()
	<-served
}

// hijacked is a ResponseWriter with a Hijack that returns conn.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriterSize(h.conn, 1)), nil
}

// FuzzHandler checks that every request gets a valid status and causes no panic.
func FuzzHandler(f *testing.F) {
	for _, target := range []string{"/pods", "/exec/default/web-n1/app?command=ls&output=1", "/containerLogs/default/web-n1/app?tailLines=1", "/logs/../../etc/passwd", "//", "/run/a/b/c?cmd=%00"} {
		f.Add("GET", target, "")
		f.Add("POST", target, "4")
	}
	h := newNode().handler()
	f.Fuzz(func(t *testing.T, method, target, body string) {
		if strings.HasPrefix(target, "/debug/pprof/") {
			return // handled by net/http/pprof; profiles take long
		}
		r, err := http.NewRequest(method, "http://n1", strings.NewReader(body))
		if err != nil {
			return
		}
		if r.URL, err = url.ParseRequestURI(target); err != nil {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("%s %q: got %d, want a status from 200 to 599", method, target, w.Code)
		}
	})
}
