package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"podd/runtime/atomicfile"
)

// maxFileBytes is the maximum size of the file in bytes.
const maxFileBytes = 4 << 10

// storedChoice is the content of the file that stores an address across restarts of podd.
type storedChoice struct {
	IP netip.Addr `json:"ip"`
	// ByName reports whether the node's name resolved to the address. Otherwise the address was
	// found by a route.
	ByName bool `json:"byName,omitempty"`
}

// readChoice returns the choice in a file; the zero choice if the file does not exist.
func readChoice(path string) (choice, error) {
	text, err := atomicfile.Read(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return choice{}, nil
	}
	if err != nil {
		return choice{}, fmt.Errorf("reading the node's address: %w", err)
	}
	var s storedChoice
	if err := json.Unmarshal(text, &s); err != nil {
		return choice{}, fmt.Errorf("reading the node's address in %s: %w", path, err)
	}
	c := choice{s.IP, byRoute}
	if s.ByName {
		c.reason = byName
	}
	if !c.isFromRouteOrName() {
		return choice{}, fmt.Errorf("reading the node's address in %s: %s is not a valid node address", path, s.IP)
	}
	return c, nil
}

// writeChoice durably replaces the file at path, whose directory must exist.
func writeChoice(path string, c choice) error {
	data, err := json.Marshal(storedChoice{c.ip, c.reason == byName})
	if err != nil {
		return fmt.Errorf("storing the node's address: %w", err)
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("storing the node's address: %w", err)
	}
	defer dir.Close()
	name := filepath.Base(path)
	if err := atomicfile.WriteIn(dir, name, name+".new", append(data, '\n')); err != nil {
		return fmt.Errorf("storing the node's address in %s: %w", path, err)
	}
	return nil
}
