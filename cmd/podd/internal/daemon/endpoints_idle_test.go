package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/endpoint"
	"podd/server"
)

// endpointStacks returns the stacks of the goroutines that serve endpoints and their connections.
func endpointStacks(t *testing.T) (stacks []string) {
	t.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "podd/server.") || strings.Contains(stack, "podd/server/") || strings.Contains(stack, "net/http.(*conn)") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// findFreeAddress returns an address on which no program listens.
func findFreeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// TestOpenEndpoints_PortInUse checks that no endpoint stays open if a port is in use, because podd then opens
// the endpoints again in the same process if it returns to an earlier dynamic configuration.
func TestOpenEndpoints_PortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	runDir, api := t.TempDir(), false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(healthzPort int32) ([]endpoint.Endpoint, error) {
		root := t.TempDir()
		p := testParts(t, root, config.Flags{EndpointFlags: config.EndpointFlags{HealthzPort: &healthzPort}, APIFlags: config.APIFlags{EnableServer: &api}, SourceFlags: config.SourceFlags{PodManifestPath: []string{root}}})
		p.endpointOptions.RunDir = runDir
		return endpoint.Open(ctx, p.endpointOptions)
	}
	if _, err := open(int32(ln.Addr().(*net.TCPAddr).Port)); !errors.Is(err, unix.EADDRINUSE) {
		t.Fatalf("with a port in use: got error %v, want %v", err, unix.EADDRINUSE)
	}
	endpoints, err := open(0)
	if err != nil {
		t.Fatalf("without the port: got error %v, want none", err)
	}
	cancel()
	for _, serve := range endpoints {
		if err := serve(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestEndpoints_Idle checks that endpoints without clients have no goroutines except those that wait
// for connections. The endpoints must also have no other goroutines after all clients, including a
// rejected client, have disconnected.
func TestEndpoints_Idle(t *testing.T) {
	var runDir, api string // the run directory, and the address of the kubelet API
	ctx, cancel := context.WithCancel(t.Context())
	open := func() ([]endpoint.Endpoint, error) {
		root := t.TempDir()
		p := testParts(t, root, config.Flags{SourceFlags: config.SourceFlags{PodManifestPath: []string{root}}})
		runDir, api = filepath.Join(root, "run"), findFreeAddress(t)
		s := &p.endpointOptions.Server
		s.HealthzAddress, s.ReadOnlyAddress, s.API.Address = findFreeAddress(t), findFreeAddress(t), api
		return endpoint.Open(ctx, p.endpointOptions)
	}
	endpoints, err := open()
	for retry := 0; retry < 10 && errors.Is(err, unix.EADDRINUSE); retry++ { // another program has begun to use one of the addresses
		endpoints, err = open()
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, len(endpoints))
	for _, serve := range endpoints {
		go func() { done <- serve(ctx) }()
	}
	defer func() {
		cancel()
		for range endpoints {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	// waitIdle waits until each endpoint has only two goroutines: Serve, and the one that Serve starts to
	// accept connections.
	waitIdle := func(when string) {
		t.Helper()
		for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
			stacks := endpointStacks(t)
			busy := 0
			for _, s := range stacks {
				if !strings.Contains(s, "podd/server.(*Server).Serve") { // neither Serve nor the goroutine that Serve started
					busy++
				}
			}
			if busy == 0 && len(stacks) == 2*len(endpoints) {
				return
			}
			if time.Since(began) > 5*time.Minute {
				t.Fatalf("%s: got %d goroutines, %d of them busy, want 2 idle ones for each of the %d endpoints:\n%s", when, len(stacks), busy, len(endpoints), strings.Join(stacks, "\n\n"))
			}
		}
	}
	waitIdle("before the first request")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(runDir, server.SocketName))
	}}
	for _, path := range []string{"/pods", "/v1/state", "/metrics", "/stats/summary", "/metrics/cadvisor", "/api/v1/pods", "/page/usage", "/openapi/v2", "/openapi/v3"} {
		resp, err := (&http.Client{Transport: transport}).Get("http://podd" + path)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	unauthenticated := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	checkpoint := "https://" + api + "/checkpoint/"
	resp, err := (&http.Client{Transport: unauthenticated}).Get(checkpoint)
	// On a busy machine, the TLS handshake may take longer than podd permits. podd then counts no request.
	for attempt := 0; attempt < 20 && err != nil; attempt++ {
		resp, err = (&http.Client{Transport: unauthenticated}).Get(checkpoint)
	}
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	unauthenticated.CloseIdleConnections()
	scrape, err := (&http.Client{Transport: transport}).Get("http://podd/metrics")
	if err != nil {
		t.Fatal(err)
	}
	counts, err := io.ReadAll(scrape.Body)
	scrape.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("/checkpoint/ without credentials: got status %s, want 401", resp.Status)
	}
	for _, path := range []string{"checkpoint", "v1"} { // the rejected request and the request for /v1/state
		want := `kubelet_http_requests_total{long_running="false",method="GET",path="` + path + `",server_type="readwrite"} 1`
		if !bytes.Contains(counts, []byte(want)) {
			t.Errorf("metrics do not contain %s", want)
		}
	}
	for _, path := range []string{"/v1/state?watch=1", "/api/v1/pods?watch=1", "/v1/events?watch=1"} {
		watch, stop := context.WithCancel(ctx)
		r, err := http.NewRequestWithContext(watch, http.MethodGet, "http://podd"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		resp.Body.Close()
	}
	transport.CloseIdleConnections()
	waitIdle("after all clients have disconnected")
}
