package node

import (
	"path/filepath"
	"testing"
)

// TestRecordBoot checks that a reboot is only reported if another boot ID was stored.
func TestRecordBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boot_id")
	for _, step := range []struct {
		id   string
		want bool
	}{{"", false}, {"a", false}, {"a", false}, {"b", true}, {"b", false}, {"", false}, {"c", true}} {
		if got, err := recordBoot(path, step.id); got != step.want || err != nil {
			t.Errorf("boot ID %q: got reboot: %v (error %v), want %v", step.id, got, err, step.want)
		}
	}
	if _, err := recordBoot(filepath.Join(path, "x"), "a"); err == nil {
		t.Error("file that cannot be written: got no error, want one")
	}
}
