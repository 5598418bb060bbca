//go:build e2e

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/tools"
)

// nodes are those that have a kubeconfig; each test takes one.
var nodes = []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "w1", "w2", "w3", "w4", "w5", "p1", "p2", "p3", "p4", "o1", "o2", "o3", "conformance"}

// controlPlane is program up, which ends when its input does: with this process.
type controlPlane struct {
	dir, url string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Scanner
	admin    *http.Client
}

func startPlane(ctx context.Context, made tools.ControlPlane, dir string) (*controlPlane, error) {
	up, err := build(ctx, made.Module, dir+"-up", "./up")
	if err != nil {
		return nil, err
	}
	p := &controlPlane{dir: dir, cmd: exec.Command(up, append([]string{"--programs", made.Programs, "--dir", dir}, nodes...)...)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if !p.out.Scan() {
		return nil, errors.Join(errors.New("the control plane did not start"), p.stop())
	}
	p.url = p.out.Text()
	return p, p.trust()
}

// trust makes the administrator's client.
func (p *controlPlane) trust() error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(p.dir, "administrator.crt"), filepath.Join(p.dir, "administrator.key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(p.dir, "ca.crt"))
	roots := x509.NewCertPool()
	if roots.AppendCertsFromPEM(ca); err != nil {
		return err
	}
	p.admin = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}}
	return nil
}

func (p *controlPlane) stop() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}

// control has the controller manager and the scheduler run until the test ends; the
// controller manager gets flags more. Namespaces have their kube-root-ca.crt then,
// and certificates are signed.
func (p *controlPlane) control(t *testing.T, flags ...string) {
	t.Helper()
	t.Cleanup(func() { p.command(t, "release") })
	p.command(t, strings.Join(append([]string{"control"}, flags...), " "))
}

// command has up do something and waits until it is done.
func (p *controlPlane) command(t *testing.T, word string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, word); err != nil || !p.out.Scan() || p.out.Text() != word {
		t.Fatalf("%s: %v, said %q", word, err, p.out.Text())
	}
	p.admin.CloseIdleConnections()
}

// away kills the API server, and returns what has it serve again, which is done when
// the test ends at the latest: it is everybody's.
func (p *controlPlane) away(t *testing.T) (back func()) {
	t.Helper()
	served := false
	back = func() {
		t.Helper()
		if !served {
			served = true
			p.command(t, "serve")
		}
	}
	t.Cleanup(back)
	p.command(t, "kill")
	return back
}

var errNone = errors.New("there is none")

// ask makes a request as administrator; answer may be nil.
func (p *controlPlane) ask(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q, err := http.NewRequest(method, p.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	r, err := p.admin.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, errNone)
	case r.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, r.Status, all)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(all, answer)
}

func (p *controlPlane) node(name string) (n *v1.Node, err error) {
	n = &v1.Node{}
	return n, p.ask(http.MethodGet, "/api/v1/nodes/"+name, nil, n)
}

// asked counts what the agent of a node has asked for since a time.
func (p *controlPlane) asked(t *testing.T, node string, since time.Time) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var e struct {
			Verb, Stage string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Subresource string }
			At          time.Time `json:"requestReceivedTimestamp"`
		}
		// The last line may be half written.
		if json.Unmarshal([]byte(line), &e) != nil || e.User.Username != "system:node:"+node || e.At.Before(since) {
			continue
		}
		if e.Verb != "watch" || e.Stage == "ResponseStarted" {
			n[strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
		}
	}
	return n
}
