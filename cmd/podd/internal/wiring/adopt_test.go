package wiring

import (
	"os"
	"path/filepath"
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
)

// TestIncludesUnlabelled checks that podd includes sandboxes without its label if --adopt is set, or if
// a journal records that podd has adopted the pod from a kubelet ("taken").
func TestIncludesUnlabelled(t *testing.T) {
	for journal, want := range map[string]bool{
		"": false, "{": false,
		`{"key":{"Namespace":"default","Name":"job"},"uid":"u1","hash":"v1:a"}`:              false,
		`{"key":{"Namespace":"default","Name":"job"},"uid":"u1","hash":"v1:a","taken":true}`: true,
	} {
		cfg := &config.Config{Paths: config.Paths{RootDir: t.TempDir()}}
		dir := filepath.Join(rootdir.PodsPath(cfg.RootDir), "u1")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "journal.json"), []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := IncludesUnlabelled(cfg); got != want || err != nil {
			t.Errorf("journal %s: got %t, error %v; want %t", journal, got, err, want)
		}
		cfg.Adopt = true
		if got, err := IncludesUnlabelled(cfg); !got || err != nil {
			t.Errorf("journal %s, with --adopt: got %t, error %v; want true", journal, got, err)
		}
	}
}
