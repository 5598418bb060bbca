package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
)

// newSysctls returns a directory with the parameters of the kubelet. Two of them have other values.
func newSysctls(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range kernelParameters {
		value := p.value
		if p.name == "kernel.panic" || p.name == "vm.overcommit_memory" {
			value = "7"
		}
		file := filepath.Join(dir, strings.ReplaceAll(p.name, ".", "/"))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestApplyKernelParameters_Check(t *testing.T) {
	err := applyKernelParameters(newSysctls(t), config.CheckKernelParameters, slog.New(slog.DiscardHandler))
	want := "kernel parameter vm.overcommit_memory is 7, but protectKernelDefaults requires 1; run: sysctl -w vm.overcommit_memory=1\n" +
		"kernel parameter kernel.panic is 7, but protectKernelDefaults requires 10; run: sysctl -w kernel.panic=10"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestApplyKernelParameters_Set(t *testing.T) {
	dir := newSysctls(t)
	var log strings.Builder
	if err := applyKernelParameters(dir, config.SetKernelParameters, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "previous=7"); n != 2 {
		t.Errorf("got %d changes, want 2:\n%s", n, &log)
	}
	if err := applyKernelParameters(dir, config.CheckKernelParameters, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("after the change: %v", err)
	}
}

func TestApplyKernelParameters_Keep(t *testing.T) {
	if err := applyKernelParameters("/does/not/exist", config.KeepKernelParameters, nil); err != nil {
		t.Error(err)
	}
}
