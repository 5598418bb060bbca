package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"podd/manifest"
	"podd/reconcile/render"
)

// dnsInterval is the interval between checks of the DNS configuration of the node.
const dnsInterval = 10 * time.Second

// A DNSWatcher checks that the DNS configuration of the node can be read. It only reports problems,
// because podd reads the configuration again for each new sandbox. A DNSWatcher belongs to one
// goroutine at a time.
type DNSWatcher struct {
	path    string
	log     *slog.Logger
	problem *manifest.Problem // result of the last check
}

// NewDNSWatcher returns a DNSWatcher of the resolv.conf at path. If path is "", there is no
// file, and Check returns nil.
func NewDNSWatcher(path string, log *slog.Logger) *DNSWatcher {
	return &DNSWatcher{path: path, log: log}
}

// Run checks the file until ctx is done. If the problem differs from the problem of the last check,
// Run calls publish with the new problem, or with nil if the file can be read.
func (w *DNSWatcher) Run(ctx context.Context, publish func(*manifest.Problem)) error {
	tick := time.NewTicker(dnsInterval)
	defer tick.Stop()
	previousProblem := w.problem
	for {
		if now := w.Check(); now != previousProblem {
			previousProblem = now
			publish(now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Check reads the file and returns the problem, or nil if the file can be read or does not exist.
// If the problem has not changed, Check returns the same pointer as the previous call.
func (w *DNSWatcher) Check() *manifest.Problem {
	_, err := ReadDNS(w.path)
	previousProblem := w.problem
	if err == nil {
		if previousProblem != nil {
			w.log.Info("node DNS configuration can be read again", "file", w.path)
		}
		w.problem = nil
		return nil
	}
	now := manifest.Problem{Severity: manifest.Error, Path: w.path, Message: err.Error() + "; no pod starts until the file can be read"}
	if previousProblem == nil || *previousProblem != now {
		w.log.Warn("reading the node's DNS configuration failed; no pod starts until the file can be read", "err", err)
		w.problem = &now
	}
	return w.problem
}

// ReadDNS parses a file such as /etc/resolv.conf. If the file does not exist, or if path is "",
// it returns the zero DNS.
func ReadDNS(path string) (render.DNS, error) {
	if path == "" {
		return render.DNS{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return render.DNS{}, nil
	}
	if err != nil {
		return render.DNS{}, fmt.Errorf("reading the DNS configuration of the node: %w", err)
	}
	return render.ParseResolvConf(string(text)), nil
}
