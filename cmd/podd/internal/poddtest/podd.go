// Package poddtest contains a fake of the running podd for tests of its clients. The fake serves
// a View on a Unix socket.
package poddtest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/events"
	"podd/server/kube"
	"podd/server/servertest"
)

// A Podd is a fake podd that serves a View on a Unix socket. All fields except LatestView must be
// set before the first request.
type Podd struct {
	*server.LatestView
	Dir      string     // run directory, which contains the socket
	Mu       sync.Mutex // guards Requests
	Requests []string   // requests that change the state of podd, in order

	OnLogs    func(ctx context.Context, r server.LogRequest, w io.Writer) error
	OnRestart func(key types.NamespacedName, container string) error
	OnDown    func(ctx context.Context) error // called by Down and Shutdown
	Orphans   server.Orphans
	Images    server.Images
	OnDebug   http.HandlerFunc                                 // handles requests for ephemeral containers; may be nil
	OnUsage   func(ctx context.Context) (*server.Usage, error) // if nil, the method Usage returns no pods
}

// RecordRequest adds a request to Requests.
func (f *Podd) RecordRequest(request string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Requests = append(f.Requests, request)
}

// Restart implements server.Commander.
func (f *Podd) Restart(_ context.Context, key types.NamespacedName, container string) error {
	f.RecordRequest("restart " + key.String() + " " + container)
	return f.OnRestart(key, container)
}

// Down implements server.Commander.
func (f *Podd) Down(ctx context.Context) error { return f.OnDown(ctx) }

// Shutdown implements server.Commander.
func (f *Podd) Shutdown(ctx context.Context, grace time.Duration) error {
	f.RecordRequest("shutdown " + grace.String())
	return f.OnDown(ctx)
}

// accept handles POST /v1/accept.
func (f *Podd) accept(_ context.Context, change server.AcceptedChange) (string, error) {
	f.RecordRequest("accept " + change.Change)
	return `node "a" is now "b"`, nil
}

// credential handles POST /v1/credential.
func (f *Podd) credential(life time.Duration) (server.Credential, error) {
	f.RecordRequest("credential " + life.String())
	return server.Credential{Server: "https://127.0.0.1:10250", CA: []byte("CA"), Certificate: []byte("CERT"), Key: []byte("KEY"), ExpiresAt: At.Add(life)}, nil
}

// revoke handles DELETE /v1/credential.
func (f *Podd) revoke() (server.Revocation, error) {
	f.RecordRequest("revoke")
	return server.Revocation{ClosedConnections: 2}, nil
}

// Resume implements server.Commander.
func (f *Podd) Resume(context.Context) error { f.RecordRequest("resume"); return nil }

// Usage implements read.Usage.
func (f *Podd) Usage(ctx context.Context) (*server.Usage, error) {
	if f.OnUsage == nil {
		return &server.Usage{At: At}, nil
	}
	return f.OnUsage(ctx)
}

// Logs implements server.LogReader.
func (f *Podd) Logs(ctx context.Context, r server.LogRequest, w io.Writer) error {
	return f.OnLogs(ctx, r, w)
}

// Serve returns a Podd that serves v in a new run directory until the test has finished. Requests
// for logs fail unless the test sets OnLogs.
func Serve(t *testing.T, v *server.View) *Podd {
	t.Helper()
	f := &Podd{LatestView: server.NewLatestView(v), Dir: ShortDir(t)}
	f.OnLogs = func(context.Context, server.LogRequest, io.Writer) error {
		return server.NewNotFoundError("nothing was logged")
	}
	f.Start(t)
	return f
}

// Start serves f until the test has finished or the returned function stop is called. The function
// returns when the server has stopped; it may be called more than once.
func (f *Podd) Start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ln, err := server.ListenSocket(ctx, f.Dir, slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	api := &server.API{State: f, Command: f, Logs: f, Events: events.New(events.Options{Node: "n1"}), AcceptChange: f.accept,
		IssueCredential: f.credential, RevokeCredentials: f.revoke, Orphans: f.Orphans, Images: f.Images}
	mux := http.NewServeMux()
	mux.Handle("/v1/", api.Handler())
	mux.Handle("/", (&kube.API{State: f, Logs: f, Meter: f, DebuggingEnabled: true, Now: func() time.Time { return At }}).Handler())
	if f.OnDebug != nil {
		mux.HandleFunc("PATCH /api/v1/namespaces/{namespace}/pods/{pod}/ephemeralcontainers", func(w http.ResponseWriter, r *http.Request) { f.OnDebug(w, r) })
	}
	done := make(chan error, 1)
	go func() {
		done <- (&server.Server{Handler: mux, AllowsStreams: true}).Serve(ctx, servertest.WithoutDeadlines(ln))
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving the socket: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// ShortDir returns a temporary directory with a path that is short enough for a Unix socket.
func ShortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// ServeShop returns a Podd that serves a View with a node, pods in two namespaces and a Secret.
func ServeShop(t *testing.T) *Podd {
	t.Helper()
	system := SetRunning(NewPod("dns.yaml", 1, "dns", "app", "side"))
	system.Pod.Namespace = "kube-system"
	web := SetRunning(NewPod("web.yaml", 1, "web", "app"))
	web.Pod.Labels = map[string]string{"app": "web"}
	v := NewView(web, SetCrashed(NewPod("db.yaml", 1, "db", "pg")), system)
	v.NodeObject = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: *MetaTimeBeforeAt(0)}}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key\x1b[2J", CreationTimestamp: *MetaTimeBeforeAt(0)}, Data: map[string][]byte{"a": []byte("x")}}
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
	v.Objects = func() *server.Objects { return &server.Objects{Secrets: []*server.ObjectView{{Object: secret}}} }
	return Serve(t, v)
}
