package tools

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEnsure_GivenTools(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debian.json")
	if err := os.WriteFile(file, []byte(`{"Flavor": "debian", "Containerd": "/payload/containerd"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ToolSetFileEnv, file)
	if s, err := Ensure(t.Context(), Options{Flavor: Debian}); err != nil || s.Containerd != "/payload/containerd" {
		t.Errorf("Ensure of the given tools: got %+v (error %v), want containerd at /payload/containerd", s, err)
	}
	if s, err := Ensure(t.Context(), Options{}); err == nil {
		t.Errorf("Ensure of tools for another runtime than the given ones: got %+v, want an error", s)
	}
}

func TestCopyFiles(t *testing.T) {
	tree := t.TempDir()
	for range 2 { // the second call replaces existing files
		if err := copyFiles(tree); err != nil {
			t.Fatal(err)
		}
	}
	wants := filepath.Join(tree, "etc/systemd/system/multi-user.target.wants/podd-vm.service")
	if text, err := os.ReadFile(wants); err != nil || len(text) == 0 {
		t.Errorf("link that enables the unit: got %q (error %v), want the content of the unit", text, err)
	}
}
