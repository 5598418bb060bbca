// Package nodename stores the name of the node in podd's root directory.
//
// The names and UIDs of pods from files and URLs depend on the name of the node. A changed
// hostname must not replace these pods. The name of the first start therefore remains in
// effect until the user accepts another name (podd accept) or sets --hostname-override.
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

// A Record is the content of the file with the node name. The zero Record means that the file
// does not exist.
type Record struct {
	// Name is the name in effect.
	Name string `json:"name"`
	// EarlierNames contains the previous names of the node, the oldest first. Pods with an earlier
	// name may still be stopping. podd starts no pods with Name before these pods have stopped.
	EarlierNames []string `json:"earlier,omitempty"`
}

// maxEarlier is the maximum number of names in Record.EarlierNames.
const maxEarlier = 16

// Resolve returns the record that takes effect when podd starts. name is the value of
// --hostname-override if isSetByUser is true, and otherwise the hostname. A name that the user has
// set always takes effect. A hostname takes effect only if r is the zero Record. isIgnored reports
// whether name has no effect, because r contains a different name.
func (r Record) Resolve(name string, isSetByUser bool) (next Record, isIgnored bool) {
	switch {
	case r.Name == name:
		return r, false
	case r.Name == "":
		return Record{Name: name}, false
	case isSetByUser:
		return r.Rename(name), false
	}
	return r, true
}

// Rename returns a record with another name. It appends the name of r to EarlierNames.
func (r Record) Rename(name string) Record {
	if r.Name == name {
		return r
	}
	earlier := slices.DeleteFunc(append(slices.Clone(r.EarlierNames), r.Name), func(e string) bool { return e == name })
	return Record{Name: name, EarlierNames: earlier[max(0, len(earlier)-maxEarlier):]}
}

// Read returns the record in podd's root directory. It returns the zero Record if the file
// does not exist.
func Read(root string) (Record, error) {
	r, err := read(root)
	if err != nil {
		return r, fmt.Errorf("reading the node name in %s: %w; write {\"name\": \"NAME\"} to the file, where NAME is the node name at the end of the names of the running pods, or remove the file to use the hostname", filepath.Join(root, fileName), err)
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
	for _, name := range append([]string{r.Name}, r.EarlierNames...) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return Record{}, fmt.Errorf("the file contains the invalid node name %q", name)
		}
	}
	return r, nil
}

// Write stores r in podd's root directory. When it returns, the file is on disk (fsync).
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
