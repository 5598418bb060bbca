package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/logging"
	"podd/manifest"
	"podd/manifest/source"
)

// A slowSource returns some time after ctx is done, like a source that writes its cache.
type slowSource struct {
	started chan struct{}
	stopped chan struct{}
}

func (slowSource) Name() string { return "/slow" }
func (slowSource) Kind() string { return manifest.KindFile }

func (s slowSource) Run(ctx context.Context, emit func(manifest.Batch)) error {
	emit(manifest.Batch{IsComplete: true})
	close(s.started)
	<-ctx.Done()
	<-time.After(200 * time.Millisecond)
	emit(manifest.Batch{IsComplete: true})
	close(s.stopped)
	return nil
}

// testConfig returns the configuration for f with a root directory and a runtime that does
// not exist.
func testConfig(t *testing.T, root string, f config.Flags) *config.Config {
	t.Helper()
	endpoint := "unix://" + filepath.Join(root, "no.sock")
	f.RootDir, f.RunDir, f.ContainerRuntimeEndpoint = root, filepath.Join(root, "run"), &endpoint
	cfg, _, err := config.Load(f, config.HostFacts{Program: "podd", Hostname: "n1", UsesCgroupV2: true})
	if err != nil {
		t.Fatal(err)
	}
	return &cfg
}

// testParts returns the parts for testConfig. They do not run yet, and are closed when the test
// ends.
func testParts(t *testing.T, root string, f config.Flags) *parts {
	t.Helper()
	cfg := testConfig(t, root, f)
	b, err := lockRoot(*cfg, testBase)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.instance.Close() })
	b.startup = &startup{runDir: cfg.RunDir}
	p, err := newParts(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

var testBase = processState{version: "v0.1.0", log: slog.New(slog.DiscardHandler), level: &logging.Level{}}

// TestRun_WaitsForSources checks that run returns only after its sources have stopped,
// because the root directory is unlocked next.
func TestRun_WaitsForSources(t *testing.T) {
	root := t.TempDir()
	off, api := int32(0), false
	p := testParts(t, root, config.Flags{EndpointFlags: config.EndpointFlags{HealthzPort: &off}, APIFlags: config.APIFlags{EnableServer: &api}, SourceFlags: config.SourceFlags{PodManifestPath: []string{root}}})
	slow := slowSource{make(chan struct{}), make(chan struct{})}
	p.sources = []source.Source{slow}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-slow.started; cancel() }() // this goroutine ends before run returns, because run waits for the source slow
	if err := p.run(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-slow.stopped:
	default:
		t.Error("run returned while a source was still running")
	}
}

// TestCheckAPIDir checks that the directory of the API cannot be a manifest directory, even
// if the paths differ.
func TestCheckAPIDir(t *testing.T) {
	root := t.TempDir()
	read, link := filepath.Join(root, "read"), filepath.Join(root, "link")
	if err := os.Mkdir(read, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(read, link); err != nil {
		t.Fatal(err)
	}
	off, api := int32(0), false
	cfg := testConfig(t, root, config.Flags{EndpointFlags: config.EndpointFlags{HealthzPort: &off}, APIFlags: config.APIFlags{EnableServer: &api}, SourceFlags: config.SourceFlags{PodManifestPath: []string{read}, APIManifestDir: link}})
	b, err := lockRoot(*cfg, testBase)
	if err != nil {
		t.Fatal(err)
	}
	defer b.instance.Close()
	if _, err := newParts(b); err == nil || !strings.Contains(err.Error(), "is the same directory as") {
		t.Errorf("got error %v, want that it is the same directory as another one", err)
	}
	if info, err := os.Stat(read); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v for the manifest directory, want mode 0755", info, err)
	}
}
