// Package controlplane runs the control plane of a cluster for tests and measurements: etcd and
// kube-apiserver, with users for podd, a kubelet and an administrator. The program up of
// testdata/controlplane starts etcd and kube-apiserver; see its package doc. All of them exit when
// this process exits.
package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"podd/runtime/runtimetest/stack/tools"
)

// A Plane is a control plane that runs until Stop is called. Only Do may be called concurrently.
type Plane struct {
	Dir         string // contains audit.log and the kubeconfigs of the administrator and of each node
	URL         string // URL of the API server
	AdminClient *http.Client

	cmd         *exec.Cmd
	stdin       io.WriteCloser
	stdoutLines *bufio.Scanner
}

// Start starts programs, writes their files into dir, and returns when the control plane is ready.
// For each of the nodes, Start creates the kubeconfig Dir/NODE.kubeconfig.
func Start(ctx context.Context, programs tools.ControlPlane, dir string, nodes ...string) (*Plane, error) {
	up := dir + "-up"
	if err := programs.BuildUpProgram(ctx, up); err != nil {
		return nil, err
	}
	p := &Plane{Dir: dir, cmd: exec.Command(up, append([]string{"--programs", programs.Programs, "--dir", dir, "--feature-gates", programs.FeatureGates}, nodes...)...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdoutLines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if !p.stdoutLines.Scan() {
		return nil, errors.Join(errors.New("the control plane exited before it was ready"), p.Stop())
	}
	adminClient, err := NewClient(filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	p.URL, p.AdminClient = adminClient.URL, adminClient.HTTP
	return p, nil
}

// Stop stops the control plane.
func (p *Plane) Stop() error { return errors.Join(p.stdin.Close(), p.cmd.Wait()) }

// SendCommand sends a command to the program up and waits until the command has been executed.
func (p *Plane) SendCommand(word string) error {
	if _, err := fmt.Fprintln(p.stdin, word); err != nil {
		return fmt.Errorf("sending the command %q to the control plane: %w", word, err)
	}
	if !p.stdoutLines.Scan() || p.stdoutLines.Text() != word {
		return errors.Join(fmt.Errorf("sending the command %q to the control plane: got the response %q, want the command", word, p.stdoutLines.Text()), p.stdoutLines.Err())
	}
	p.AdminClient.CloseIdleConnections()
	return nil
}

// Do sends a request as the administrator. Its parameters and errors are those of Client.Do.
func (p *Plane) Do(method, path string, body, into any) error {
	return Client{p.URL, p.AdminClient}.Do(method, path, body, into)
}

// CountRequests returns the number of requests of a node in the audit log since a time. The keys
// of the result are "VERB RESOURCE", for example "update leases".
func (p *Plane) CountRequests(node string, since time.Time) (map[string]int, error) {
	log, err := os.Open(filepath.Join(p.Dir, "audit.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n := map[string]int{}
	lines := bufio.NewScanner(log)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var e struct {
			Verb, Stage string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Subresource string }
			At          time.Time `json:"requestReceivedTimestamp"`
		}
		// Decoding fails if the last line is incomplete.
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != "system:node:"+node || e.At.Before(since) {
			continue
		}
		if e.Verb != "watch" || e.Stage == "ResponseStarted" {
			n[strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
		}
	}
	return n, lines.Err()
}
