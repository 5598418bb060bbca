package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
)

// lateSource ends some time after it was asked to, as one does that writes its
// cache.
type lateSource struct {
	begun chan struct{}
	ended chan struct{}
}

func (lateSource) Name() string { return "/late" }
func (lateSource) Kind() string { return manifest.KindFile }

func (s lateSource) Run(ctx context.Context, emit func(manifest.Batch)) error {
	emit(manifest.Batch{Complete: true})
	close(s.begun)
	<-ctx.Done()
	<-time.After(200 * time.Millisecond)
	emit(manifest.Batch{Complete: true})
	close(s.ended)
	return nil
}

// The root directory is given up only after run, so no source may outlive it.
func TestRunOutlivesItsSources(t *testing.T) {
	root := t.TempDir()
	endpoint, off, api := "unix://"+filepath.Join(root, "no.sock"), int32(0), false
	cfg, _, err := config.Load(
		config.Flags{RootDir: root, RunDir: filepath.Join(root, "run"), ContainerRuntimeEndpoint: &endpoint, HealthzPort: &off, EnableServer: &api, PodManifestPath: []string{root}},
		config.Machine{Program: "podd", Hostname: "n1", CgroupV2: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newPodd(&cfg, slog.New(slog.DiscardHandler), &logLevel{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	late := lateSource{make(chan struct{}), make(chan struct{})}
	d.sources = []source.Source{late}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-late.begun; cancel() }() // run waits for late, and so for this
	if err := d.run(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-late.ended:
	default:
		t.Error("run returned while a source was still at work")
	}
}

// A directory is not read twice, whatever its names.
func TestReadOnce(t *testing.T) {
	root := t.TempDir()
	read, link := filepath.Join(root, "read"), filepath.Join(root, "link")
	if err := os.Mkdir(read, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(read, link); err != nil {
		t.Fatal(err)
	}
	endpoint, off, api := "unix://"+filepath.Join(root, "no.sock"), int32(0), false
	cfg, _, err := config.Load(
		config.Flags{RootDir: root, RunDir: filepath.Join(root, "run"), ContainerRuntimeEndpoint: &endpoint, HealthzPort: &off, EnableServer: &api, PodManifestPath: []string{read}, APIManifestDir: link},
		config.Machine{Program: "podd", Hostname: "n1", CgroupV2: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newPodd(&cfg, slog.New(slog.DiscardHandler), &logLevel{}); err == nil || !strings.Contains(err.Error(), "by another name") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(read); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("it was changed: %v, %v", info, err)
	}
}

// TestLooksIntoNobodys: what was taken over from a kubelet has no label of podd's, and
// is looked into by a podd that is not asked to adopt, too.
func TestLooksIntoNobodys(t *testing.T) {
	for journal, want := range map[string]bool{
		"": false, "{": false,
		`{"key":{"Namespace":"default","Name":"job"},"uid":"u1","hash":"v1:a"}`:              false,
		`{"key":{"Namespace":"default","Name":"job"},"uid":"u1","hash":"v1:a","taken":true}`: true,
	} {
		cfg := &config.Config{RootDir: t.TempDir()}
		dir := filepath.Join(podsDir(cfg.RootDir), "u1")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "journal.json"), []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := looksIntoNobodys(cfg); got != want || err != nil {
			t.Errorf("%s: %t, %v, want %t", journal, got, err, want)
		}
		cfg.Adopt = true
		if got, err := looksIntoNobodys(cfg); !got || err != nil {
			t.Errorf("%s: %t, %v though asked to adopt", journal, got, err)
		}
	}
}
