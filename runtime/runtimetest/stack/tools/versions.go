package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func versionsFile(dir string) string { return filepath.Join(dir, "versions.json") }

// writeVersions stores the versions of the programs in a cache entry.
func writeVersions(dir string, v Versions) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the versions of the programs: %w", err)
	}
	if err := os.WriteFile(versionsFile(dir), data, 0o644); err != nil {
		return fmt.Errorf("writing the versions of the programs: %w", err)
	}
	return nil
}

func readVersions(dir string) (Versions, error) {
	data, err := os.ReadFile(versionsFile(dir))
	if err != nil {
		return Versions{}, fmt.Errorf("reading the versions of the programs: %w", err)
	}
	var v Versions
	if err := json.Unmarshal(data, &v); err != nil {
		return Versions{}, fmt.Errorf("decoding %s: %w", versionsFile(dir), err)
	}
	return v, nil
}
