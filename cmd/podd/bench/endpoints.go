package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"podd/server"
)

const (
	endpointPodCount = 100  // number of pods
	offeredRate      = 2000 // requests per second
	followerCount    = 1000
	watcherCount     = 100
	scrapeRate       = 20 // requests per second
)

// measureEndpoints measures the cost of podd's endpoints with many pods: without clients, under
// overload, and with many clients that follow logs and watch pods.
func (b *bench) measureEndpoints(ctx context.Context) error {
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return err
	}
	pods := b.newPods(endpointPodCount)
	if _, _, err := b.startPods(ctx, pods); err != nil {
		return err
	}
	// The restart frees the memory that podd has used to start the pods.
	memoryWithoutEndpoints, err := b.restartAndMeasureMemory(ctx)
	if err != nil {
		return err
	}
	e, err := b.configureEndpoints()
	if err != nil {
		return err
	}
	memoryWithEndpoints, err := b.restartAndMeasureMemory(ctx)
	if err != nil {
		return err
	}
	b.table.add(row{name: "RSS, 100 pods (bare: without endpoints; podd: with endpoints)", unit: megabytes, bare: samples{memoryWithoutEndpoints}, podd: samples{memoryWithEndpoints}, goal: goal{factor: 1, offset: 4e6}})
	if err := e.requestCredential(ctx); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *endpoints) error{b.measureClients, b.measureOverload, b.measureScrapes} {
		if err := measure(ctx, e); err != nil {
			return err
		}
	}
	b.daemon.extraFlags = nil
	if err := b.removePods(ctx, pods); err != nil {
		return err
	}
	return b.daemon.stop()
}

// restartAndMeasureMemory restarts podd, waits until podd is idle, and returns podd's resident
// memory.
func (b *bench) restartAndMeasureMemory(ctx context.Context) (resident float64, err error) {
	if err := b.daemon.stop(); err != nil {
		return 0, err
	}
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return 0, err
	}
	return b.measureIdleMemory(ctx)
}

// measureIdleMemory waits for idleTime and returns podd's resident memory.
func (b *bench) measureIdleMemory(ctx context.Context) (float64, error) {
	if err := sleep(ctx, idleTime); err != nil {
		return 0, err
	}
	m, err := readMemory(b.daemon.cmd.Process.Pid)
	return m.resident, err
}

// endpoints contains the addresses of podd's endpoints and the credential for these endpoints.
type endpoints struct {
	b               *bench
	kubeletAddress  string // address of the kubelet API
	readOnlyAddress string
	tls             *tls.Config
}

// configureEndpoints chooses free ports for podd's endpoints. podd listens on these ports after its next
// start.
func (b *bench) configureEndpoints() (*endpoints, error) {
	e := &endpoints{b: b}
	flags := []string{"--enable-server=true"}
	for flag, to := range map[string]*string{"--port": &e.kubeletAddress, "--read-only-port": &e.readOnlyAddress} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		*to = ln.Addr().String()
		flags = append(flags, flag, strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
	}
	b.daemon.extraFlags = flags
	return e, nil
}

// requestCredential requests the credential of root for the kubelet API from podd's socket.
func (e *endpoints) requestCredential(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://podd/v1/credential", nil)
	if err != nil {
		return err
	}
	reply, err := (&http.Client{Transport: e.b.daemon.socketTransport()}).Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	var c server.Credential
	if err := json.NewDecoder(reply.Body).Decode(&c); err != nil {
		return fmt.Errorf("requesting a credential from podd: %w", err)
	}
	pair, err := tls.X509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return fmt.Errorf("requesting a credential from podd: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return errors.New("requesting a credential from podd: the response has no CA certificate")
	}
	e.tls = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "127.0.0.1"}
	return nil
}

// measureScrapes requests metrics at scrapeRate, like several Prometheus servers.
func (b *bench) measureScrapes(ctx context.Context, e *endpoints) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: e.tls}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/metrics", "/metrics/cadvisor", "/metrics/resource"} {
		cpuSeconds := measureCPU(b.daemon.cmd.Process.Pid)
		startTime := time.Now()
		ticker := time.NewTicker(time.Second / scrapeRate)
		size := int64(0)
		for time.Since(startTime) < b.Load/4 {
			<-ticker.C
			n, status, err := getAndDiscard(ctx, client, "https://"+e.kubeletAddress+path)
			if err != nil {
				return err
			}
			if status != http.StatusOK {
				return fmt.Errorf("GET %s: got status %d, want 200", path, status)
			}
			size = n
		}
		ticker.Stop()
		name := fmt.Sprintf("%s, %d requests/s, responses of %d kB: CPU of podd", path, scrapeRate, size/1000)
		b.table.add(row{name: name, unit: percent, podd: samples{100 * cpuSeconds() / time.Since(startTime).Seconds()}})
	}
	idleMemory, err := b.measureIdleMemory(ctx)
	if err != nil {
		return err
	}
	b.table.add(row{name: "RSS after the requests for metrics", unit: megabytes, podd: samples{idleMemory}})
	return nil
}

// countInotifyInstances returns the number of inotify instances of a process.
func countInotifyInstances(pid int) (n int, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	for _, fd := range entries {
		if to, _ := os.Readlink(dir + "/" + fd.Name()); strings.Contains(to, "inotify") {
			n++
		}
	}
	return n, err
}
