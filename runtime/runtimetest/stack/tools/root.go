package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// moduleRoot returns the directory of podd's go.mod. This is the working directory or the
// nearest directory above it, because tests run in the directory of their package.
func moduleRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the podd checkout: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module podd\n")) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("finding the podd checkout: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the podd checkout: neither %s nor a directory above it has the go.mod of module podd; run this inside the checkout", wd)
		}
	}
}
