//go:build e2e

package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dropIn is a drop-in file of podd's unit. A reboot removes it.
const dropIn = "/run/systemd/system/podd.service.d/dropIn.conf"

// configure restarts podd with these fields of its configuration file, until the end of the
// test.
func configure(t *testing.T, fields string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "podd.yaml")
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields + "\n"
	service := "[Service]\nExecStart=\nExecStart=" + command(t) + " --config=" + config + "\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(dropIn), 0o755),
		os.WriteFile(config, []byte(text), 0o644), os.WriteFile(dropIn, []byte(service), 0o644)); err != nil {
		t.Fatal(err)
	}
	restart(t)
	t.Cleanup(func() {
		if err := os.Remove(dropIn); err != nil {
			t.Error(err)
		}
		restart(t)
	})
}

// command returns the command line in podd's unit file.
func command(t testing.TB) string {
	t.Helper()
	text, err := testdata.ReadFile("testdata/podd.service")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok {
			return strings.TrimSpace(command)
		}
	}
	t.Fatal("podd.service: got no line ExecStart, want one")
	return ""
}
