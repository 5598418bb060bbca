// Package nodename stores the name of the node in podd's root directory.
//
// The names of pods from files and URLs contain the node's name, and their UIDs depend on it.
// A changed hostname must not replace these pods. The name of the first start therefore
// stays in effect until a user accepts another one or sets one with --hostname-override.
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
	fileName = "node-name"
	maxSize  = 4 << 10 // bytes
)

// A Record is the content of the file. The zero Record means that there is no file.
type Record struct {
	// Name is the node's name.
	Name string `json:"name"`
	// Earlier contains the previous names, the oldest first. Pods with an earlier name may
	// still be stopping. podd starts the pods with Name after these have stopped.
	Earlier []string `json:"earlier,omitempty"`
}

// maxEarlier limits the earlier names.
const maxEarlier = 16

// Resolve returns the record to use when podd starts with the name found. given reports
// whether the user has set found; otherwise found is the hostname. A name that the user has
// set always takes effect. A hostname takes effect only if r is empty. differs reports
// whether found is not the name in effect.
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

// Rename returns r with another name. The current name becomes the last earlier name.
func (r Record) Rename(name string) Record {
	if r.Name == name {
		return r
	}
	earlier := slices.DeleteFunc(append(slices.Clone(r.Earlier), r.Name), func(e string) bool { return e == name })
	return Record{Name: name, Earlier: earlier[max(0, len(earlier)-maxEarlier):]}
}

// Read returns the record in the root directory root. If there is no file, the record is
// zero.
func Read(root string) (Record, error) {
	r, err := read(root)
	if err != nil {
		return r, fmt.Errorf("reading the node name in %s: %w; write {\"name\": \"NAME\"} with the suffix of the present pod names, or remove the file to use the hostname", filepath.Join(root, fileName), err)
	}
	return r, nil
}

func read(root string) (Record, error) {
	var r Record
	text, err := atomicfile.Read(filepath.Join(root, fileName), maxSize)
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
			return Record{}, fmt.Errorf("invalid node name %q", name)
		}
	}
	return r, nil
}

// Write stores r in the root directory root and syncs the file.
func Write(root string, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("storing the node name: %w", err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("storing the node name: %w", err)
	}
	defer dir.Close()
	if err := atomicfile.WriteIn(dir, fileName, fileName+".new", append(data, '\n')); err != nil {
		return fmt.Errorf("storing the node name in %s: %w", filepath.Join(root, fileName), err)
	}
	return nil
}
