// Package nodename keeps the node's name under podd's root directory.
//
// The names and UIDs of pods from files and URLs contain the node's name. A changed
// hostname must not replace these pods, so the name of the first start stays in effect
// until a user accepts another one or gives one with --hostname-override.
package nodename

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"podd/runtime/atomicfile"
)

const (
	file    = "node-name"
	maxSize = 4 << 10
)

// Record is the content of the file. The zero Record is that of a root directory
// without one.
type Record struct {
	// Name is the node's name.
	Name string `json:"name"`
	// Earlier are the names before, the oldest first. Pods of such a name may still be
	// stopping; they end before those of Name start.
	Earlier []string `json:"earlier,omitempty"`
}

// maxEarlier is how many earlier names are kept.
const maxEarlier = 16

// Resolve returns the record to use from now on if podd finds the name found, and
// whether found is not in effect. given reports whether a user gave the name, which makes
// it take effect.
func (r Record) Resolve(found string, given bool) (next Record, differs bool) {
	switch {
	case r.Name == found:
		return r, false
	case r.Name == "":
		return Record{Name: found}, false
	case given:
		return r.Rename(found), false
	}
	return r, true
}

// Rename returns the record of a node that gets another name.
func (r Record) Rename(name string) Record {
	if r.Name == name {
		return r
	}
	earlier := slices.DeleteFunc(append(slices.Clone(r.Earlier), r.Name), func(e string) bool { return e == name })
	return Record{Name: name, Earlier: earlier[max(0, len(earlier)-maxEarlier):]}
}

// Read returns the record of a root directory.
func Read(root string) (Record, error) {
	r, err := read(root)
	if err != nil {
		return r, fmt.Errorf("reading the node's name in %s: %w; write the name that the pods here end with, as {\"name\": \"NAME\"}, or remove the file to use the hostname", filepath.Join(root, file), err)
	}
	return r, nil
}

func read(root string) (Record, error) {
	var r Record
	text, err := atomicfile.Read(filepath.Join(root, file), maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, err
	}
	for _, name := range append([]string{r.Name}, r.Earlier...) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return Record{}, fmt.Errorf("%q is not a node's name", name)
		}
	}
	return r, nil
}

// Write makes r the record of a root directory, durably.
func Write(root string, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("storing the node's name: %w", err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("storing the node's name: %w", err)
	}
	defer dir.Close()
	if err := atomicfile.WriteIn(dir, file, file+".new", append(data, '\n')); err != nil {
		return fmt.Errorf("storing the node's name in %s: %w", filepath.Join(root, file), err)
	}
	return nil
}
