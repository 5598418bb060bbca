// Command component imitates the programs of a control plane, such as kube-apiserver and etcd. It
// accepts their flags as kubeadm writes them, responds to health checks on the same ports, and logs
// each request:
//
//	GET /livez 200 kube-probe/1.37
//
// If the file /etc/kubernetes/pki/faults/livez contains a number N, the first N requests to /livez after
// the start of the program fail. A file with the name of another path, such as readyz, has the same
// effect on requests to that path.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// faultsDir is the directory with the numbers of requests that must fail. It is below a directory
// that kubeadm's pods mount from the host.
const faultsDir = "/etc/kubernetes/pki/faults"

func main() {
	log.SetFlags(0)
	log.SetOutput(os.Stdout)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Args); err != nil {
		log.Fatal(err)
	}
}

// serve responds to health checks until ctx is done.
func serve(ctx context.Context, command []string) error {
	addr, secure, err := listenAddress(command)
	if err != nil {
		return fmt.Errorf("finding the listen address in the flags of %s: %w", command[0], err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if secure {
		certificate, err := newSelfSignedCertificate()
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	server := &http.Server{Handler: newHealthHandler(), ReadHeaderTimeout: 5 * time.Second}
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	log.Printf("%s listens on %s", filepath.Base(command[0]), addr)
	select {
	case err = <-serveErr:
		return err
	case <-ctx.Done():
	}
	err = server.Close()
	<-serveErr
	return err
}

// listenAddress returns the address on which a component responds to health checks: the metrics
// address of etcd, or the secure port of another component. secure reports whether the port uses
// TLS.
func listenAddress(command []string) (addr string, secure bool, err error) {
	flags := map[string]string{}
	for _, word := range command[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		flags[name] = value
	}
	if filepath.Base(command[0]) == "etcd" {
		u, err := url.Parse(flags["listen-metrics-urls"])
		if err != nil {
			return "", false, err
		}
		return u.Host, u.Scheme == "https", nil
	}
	return net.JoinHostPort(flags["bind-address"], flags["secure-port"]), true, nil
}

// newHealthHandler returns a handler for all kinds of health checks.
func newHealthHandler() http.Handler {
	mux := http.NewServeMux()
	for _, kind := range []string{"livez", "readyz", "healthz", "health"} {
		var failureCount atomic.Int64
		mux.HandleFunc("GET /"+kind, func(w http.ResponseWriter, r *http.Request) {
			code := http.StatusOK
			if failureCount.Load() < readFailureCount(kind) {
				failureCount.Add(1)
				code = http.StatusInternalServerError
			}
			w.WriteHeader(code)
			log.Printf("%s %s %d %s", r.Method, r.URL.Path, code, r.UserAgent())
		})
	}
	return mux
}

// readFailureCount returns the number of requests of a kind that must fail. These are the first
// requests after the start of the program.
func readFailureCount(kind string) int64 {
	text, err := os.ReadFile(filepath.Join(faultsDir, kind))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// newSelfSignedCertificate returns a self-signed certificate. Probes do not verify it.
func newSelfSignedCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
