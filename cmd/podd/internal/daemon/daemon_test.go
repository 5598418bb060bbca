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

// testConfig returns the configuration for the flags f. Its root directory is root, and no runtime
// listens on its socket.
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

// testParts returns the parts of a podd with the configuration of testConfig. The parts do not run.
// They are closed when the test ends.
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

// TestRun_WaitsForSources checks that run returns only after its sources have stopped. The caller of
// run unlocks the root directory next, and a source must not write to an unlocked root directory.
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

// TestCheckAPIDir checks that podd does not start if the directory of the API is also a manifest
// directory, even if one of the paths is a symlink. The mode of the directory must not change.
func TestCheckAPIDir(t *testing.T) {
	root := t.TempDir()
	dir, link := filepath.Join(root, "dir"), filepath.Join(root, "link")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	off, api := int32(0), false
	cfg := testConfig(t, root, config.Flags{EndpointFlags: config.EndpointFlags{HealthzPort: &off}, APIFlags: config.APIFlags{EnableServer: &api}, SourceFlags: config.SourceFlags{PodManifestPath: []string{dir}, APIManifestDir: link}})
	b, err := lockRoot(*cfg, testBase)
	if err != nil {
		t.Fatal(err)
	}
	defer b.instance.Close()
	if _, err := newParts(b); err == nil || !strings.Contains(err.Error(), "is the same directory as") {
		t.Errorf("got error %v, want one that contains \"is the same directory as\"", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("manifest directory: got %v, error %v; want mode 0755", info, err)
	}
}
