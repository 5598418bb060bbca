package bootid

import (
	"os"
	"testing"
)

// TestGet checks that the ID is that of the kernel, without the newline.
func TestGet(t *testing.T) {
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Get(); err != nil || got+"\n" != string(want) {
		t.Errorf("got %q, error %v; want the line %q", got, err, want)
	}
}
