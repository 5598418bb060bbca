package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
)

// newSysctls returns a directory like /proc/sys with the kernel parameters that the kubelet requires.
// kernel.panic and vm.overcommit_memory have the value 7, and all others the required value.
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

// TestApplyKernelParameters_Check checks that the error names each parameter that does not have the
// required value.
func TestApplyKernelParameters_Check(t *testing.T) {
	err := applyKernelParameters(newSysctls(t), config.CheckKernelParameters, slog.New(slog.DiscardHandler))
	want := "kernel parameter vm.overcommit_memory is 7, but protectKernelDefaults requires 1; run: sysctl -w vm.overcommit_memory=1\n" +
		"kernel parameter kernel.panic is 7, but protectKernelDefaults requires 10; run: sysctl -w kernel.panic=10"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// TestApplyKernelParameters_Set checks that parameters without the required value are set, and that each
// change is logged with the previous value.
func TestApplyKernelParameters_Set(t *testing.T) {
	dir := newSysctls(t)
	var log strings.Builder
	if err := applyKernelParameters(dir, config.SetKernelParameters, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "previous=7"); n != 2 {
		t.Errorf("got %d logged changes, want 2:\n%s", n, &log)
	}
	if err := applyKernelParameters(dir, config.CheckKernelParameters, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("check after the changes: got error %v, want none", err)
	}
}

// TestApplyKernelParameters_Keep checks that no parameter is read. A read would fail, because the
// directory of the parameters does not exist.
func TestApplyKernelParameters_Keep(t *testing.T) {
	if err := applyKernelParameters("/does/not/exist", config.KeepKernelParameters, nil); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}
