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

// TestAcceptEmpty checks that only a manifest directory of this podd can be accepted, and
// only if it lacks manifests.
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
		source string
		status int
		want   string
	}{
		"no missing manifests": {dir, http.StatusConflict, "the directory was not replaced, or no manifest is missing"},
		"unknown directory":    {"/elsewhere", http.StatusNotFound, "the sources are " + dir},
	} {
		_, err := acceptEmptyDir(t.Context(), []source.Source{s}, c.source)
		var e *server.Error
		if !errors.As(err, &e) || e.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q with status %d", name, err, c.want, c.status)
		}
	}
}
