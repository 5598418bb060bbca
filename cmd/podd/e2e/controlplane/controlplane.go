// Package controlplane has a cluster's control plane run beside tests and measurements:
// etcd and kube-apiserver 1.34.4, with the users that podd, a kubelet and an
// administrator are. They are program up of testdata/controlplane, whose package doc
// says what there is, and end with this process.
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

// Plane is one that runs until Stop. One goroutine uses it, but for Ask.
type Plane struct {
	Dir   string // has audit.log, and the kubeconfigs of the administrator and of each node
	URL   string // of the API server
	Admin *http.Client

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start starts one in a directory, with the programs that there are, and returns when
// it is ready. Each of the nodes gets a kubeconfig, Dir/NODE.kubeconfig.
func Start(ctx context.Context, made tools.ControlPlane, dir string, nodes ...string) (*Plane, error) {
	up := dir + "-up"
	if err := made.BuildUp(ctx, up); err != nil {
		return nil, err
	}
	p := &Plane{Dir: dir, cmd: exec.Command(up, append([]string{"--programs", made.Programs, "--dir", dir}, nodes...)...)}
	p.cmd.Stderr = os.Stderr
	var err error
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
		return nil, errors.Join(errors.New("the control plane did not start"), p.Stop())
	}
	admin, err := Connect(filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	p.URL, p.Admin = admin.URL, admin.HTTP
	return p, nil
}

// Stop ends all of it.
func (p *Plane) Stop() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// Command has up do something and waits until it is done.
func (p *Plane) Command(word string) error {
	if _, err := fmt.Fprintln(p.in, word); err != nil || !p.out.Scan() || p.out.Text() != word {
		return fmt.Errorf("%s: %w, said %q", word, err, p.out.Text())
	}
	p.Admin.CloseIdleConnections()
	return nil
}

// Ask makes a request as administrator; body and answer may be nil.
func (p *Plane) Ask(method, path string, body, answer any) error {
	return Client{p.URL, p.Admin}.Ask(method, path, body, answer)
}

// Asked counts what the agent of a node has asked for since a time, by verb and
// resource, as the audit log has it.
func (p *Plane) Asked(node string, since time.Time) (map[string]int, error) {
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
		// The last line may be half written.
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != "system:node:"+node || e.At.Before(since) {
			continue
		}
		if e.Verb != "watch" || e.Stage == "ResponseStarted" {
			n[strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
		}
	}
	return n, lines.Err()
}
