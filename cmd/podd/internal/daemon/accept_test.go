package daemon

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"podd/manifest"
	"podd/manifest/source"
	"podd/server"
)

// TestAcceptEmpty checks the error for a directory in which no manifest is missing, and for a directory
// that is not a source of podd.
func TestAcceptEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := source.NewDir(dir, source.Options{NodeName: "n1"})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx, func(manifest.Batch) {}) })
	t.Cleanup(func() { cancel(); running.Wait() })
	for name, c := range map[string]struct {
		source string // path of the directory to accept
		status int
		want   string // part of the error
	}{
		"no missing manifests": {dir, http.StatusConflict, "the directory was not replaced, or no manifest is missing"},
		"unknown directory":    {"/elsewhere", http.StatusNotFound, "the sources are " + dir},
	} {
		_, err := acceptEmptyDir(t.Context(), []source.Source{s}, c.source)
		var e *server.Error
		if !errors.As(err, &e) || e.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with status %d that contains %q", name, err, c.status, c.want)
		}
	}
}
