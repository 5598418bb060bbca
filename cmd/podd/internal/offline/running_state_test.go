package offline

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestFetchRunningView_Directories checks that fetchRunningView finds the podd that "make run" has
// started in the working directory. It must copy the directories of this podd to the configuration, so
// that "podd check" recognizes the process of this podd by them.
func TestFetchRunningView_Directories(t *testing.T) {
	checkout, root := poddtest.ShortDir(t), t.TempDir()
	t.Chdir(checkout)
	t.Setenv("PODD_RUN_DIR", "")
	runDir := filepath.Join(checkout, ".run", "run")
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := &poddtest.Podd{LatestView: server.NewLatestView(&server.View{Node: "n1", RootDir: root}), Dir: runDir}
	f.Start(t)
	for name, c := range map[string]struct {
		flags   config.FileFlags
		runDir  string
		isFound bool
	}{
		"no flags":             {config.FileFlags{}, runDir, true},
		"its root directory":   {config.FileFlags{RootDir: root}, runDir, true},
		"its run directory":    {config.FileFlags{RunDir: runDir}, runDir, true},
		"other root directory": {config.FileFlags{RootDir: t.TempDir()}, config.DefaultRunDir, false},
	} {
		flags := config.Flags{FileFlags: c.flags, NodeFlags: config.NodeFlags{HostnameOverride: "n1"}}
		cfg, _, err := config.Load(flags, config.HostFacts{Program: "podd", Hostname: "n1", UsesCgroupV2: true})
		if err != nil {
			t.Fatal(err)
		}
		v := fetchRunningView(t.Context(), &flags, &cfg, io.Discard)
		if (v != nil) != c.isFound || cfg.RunDir != c.runDir || c.isFound && cfg.RootDir != root {
			t.Errorf("%s: got podd found %t, run directory %s, root directory %s; want podd found %t, run directory %s, root directory %s (only if podd is found)", name, v != nil, cfg.RunDir, cfg.RootDir, c.isFound, c.runDir, root)
		}
	}
}
