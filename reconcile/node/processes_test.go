package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCountProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loadavg")
	for text, want := range map[string]int64{"1.36 3.49 4.53 2/3518 3715089\n": 3518, "": 0, "1 2 3 x 4\n": 0, "1 2 3 4/\n": 0} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := countProcesses(path); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	if got := countProcesses(path + "/none"); got != 0 {
		t.Errorf("without a file: got %d, want 0", got)
	}
}
