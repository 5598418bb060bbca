package apiserver

import (
	"path/filepath"
	"testing"
)

// TestReadOrigin checks that ReadOrigin returns the origin that Write has stored, and the zero origin if the
// file does not exist.
func TestReadOrigin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	if got, err := ReadOrigin(path); got != (Origin{}) || err != nil {
		t.Errorf("without a file: got %v, error %v; want the zero origin and no error", got, err)
	}
	o := Origin{CADigest: "a", ServiceUID: "b", NodeUID: "c"}
	if err := o.Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadOrigin(path); got != o || err != nil {
		t.Errorf("stored origin: got %v, error %v; want %v", got, err, o)
	}
}
