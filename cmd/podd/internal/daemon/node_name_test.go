package daemon

import (
	"log/slog"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/nodename"
)

// TestNodeNamer_Accept checks that accept stores the new name of a node without a cluster. A node of a
// cluster must keep its name, because its credential is valid only for this name.
func TestNodeNamer_Accept(t *testing.T) {
	for _, inCluster := range []bool{false, true} {
		// With a cloud, the new name is configuredName, and not the hostname of this machine.
		n := &nodeNamer{root: t.TempDir(), record: nodename.Record{Name: "old"}, configuredName: "new", cloud: "external", isInCluster: inCluster, acceptedName: make(chan string, 1)}
		message, err := n.accept()
		stored, rerr := nodename.Read(n.root)
		if rerr != nil {
			t.Fatal(rerr)
		}
		problem := n.nameProblem("new").Message
		if !inCluster {
			if err != nil || stored.Name != "new" || !strings.Contains(problem, "podd accept node-name") {
				t.Errorf("without a cluster: got message %q, error %v, stored name %q, problem %q; want no error, stored name \"new\" and a problem that contains \"podd accept node-name\"", message, err, stored.Name, problem)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "--hostname-override=new") || stored.Name != "" || !strings.Contains(problem, "--hostname-override=new") {
			t.Errorf("in a cluster: got message %q, error %v, stored name %q, problem %q; want an error and a problem that contain \"--hostname-override=new\", and no stored name", message, err, stored.Name, problem)
		}
	}
}

// TestNewNodeNamer_InvalidHostname checks that a node keeps its stored name if the hostname
// becomes invalid. podd must fail only if no name is stored.
func TestNewNodeNamer_InvalidHostname(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	cfg := &config.Config{Node: config.Node{InvalidHostname: "my_host"}, Paths: config.Paths{RootDir: t.TempDir()}}
	if n, err := newNodeNamer(cfg, log); err == nil || !strings.Contains(err.Error(), `"my_host"`) {
		t.Errorf("no stored name: got %+v, error %v; want an error that contains \"my_host\"", n, err)
	}
	if stored, err := nodename.Read(cfg.RootDir); err != nil || stored.Name != "" {
		t.Errorf("no stored name: got stored name %q, error %v; want none", stored.Name, err)
	}
	if err := nodename.Write(cfg.RootDir, nodename.Record{Name: "old"}); err != nil {
		t.Fatal(err)
	}
	n, err := newNodeNamer(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	if n.record.Name != "old" {
		t.Errorf("got name %q, want the stored name \"old\"", n.record.Name)
	}
	p := n.nameProblem(n.configuredName)
	if p == nil || !strings.Contains(p.Message, `"my_host"`) || !strings.Contains(p.Message, `"old"`) || strings.Contains(p.Message, "podd accept") {
		t.Errorf("got problem %+v, want one that contains \"my_host\" and \"old\", but not \"podd accept\"", p)
	}
}
