package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestDNSWatcher checks the problem while the file of the node's DNS cannot be read. A
// missing file is not a problem.
func TestDNSWatcher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	w := NewDNSWatcher(path, slog.New(slog.DiscardHandler))
	unreadable := path + ": error: reading the DNS configuration of the node: read " + path + ": is a directory; no pod starts until the file can be read"
	for _, step := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"no file", func() error { return nil }, ""},
		{"a directory", func() error { return os.Mkdir(path, 0o755) }, unreadable},
		{"no file again", func() error { return os.Remove(path) }, ""},
		{"a file", func() error { return os.WriteFile(path, []byte("nameserver 192.0.2.1\n"), 0o644) }, ""},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		p, got := w.Check(), ""
		if p != nil {
			got = p.String()
		}
		if got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		if again := w.Check(); again != p {
			t.Errorf("%s: second check: got %v, want the same pointer", step.name, again)
		}
	}
}
