// Package paths compares and shortens paths of manifests. A path may be a URL.
package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// SameFile reports whether two paths refer to the same file. known is absolute; path may be
// relative to the working directory. Equal paths need not exist.
func SameFile(known, path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if filepath.Clean(known) == abs {
		return true
	}
	a, err := os.Stat(known)
	if err != nil {
		return false
	}
	b, err := os.Stat(abs)
	return err == nil && os.SameFile(a, b)
}

// Short returns path relative to dir if it is below dir. URLs are not changed.
func Short(path, dir string) string {
	if below, err := filepath.Rel(dir, path); err == nil && dir != "" && filepath.IsLocal(below) && filepath.IsAbs(path) {
		return below
	}
	return path
}

// IsURL reports whether a path is a URL.
func IsURL(path string) bool { return strings.Contains(path, "://") }

// WorkingDir returns the working directory, which messages show paths relative to. It
// returns "" if it is unknown.
func WorkingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
