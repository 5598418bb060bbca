// Package paths compares and shortens the paths of manifests. A path may be a URL.
package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// SameFile reports whether two paths refer to the same file. abs is an absolute path; path may
// be relative to the working directory. Equal paths refer to the same file even if the file
// does not exist.
func SameFile(abs, path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if filepath.Clean(abs) == path {
		return true
	}
	info, err := os.Stat(abs)
	if err != nil {
		return false
	}
	pathInfo, err := os.Stat(path)
	return err == nil && os.SameFile(info, pathInfo)
}

// Shorten returns path relative to dir if path is absolute and below dir. It returns a URL and
// any other path unchanged.
func Shorten(path, dir string) string {
	if below, err := filepath.Rel(dir, path); err == nil && dir != "" && filepath.IsLocal(below) && filepath.IsAbs(path) {
		return below
	}
	return path
}

// ShortenStart returns text with the path at its beginning relative to dir, if the text begins with
// the path of a file below dir. The event FailedValidation has such a text, because the daemon does
// not know the working directory of the user.
func ShortenStart(text, dir string) string {
	if dir == "" {
		return text
	}
	return strings.TrimPrefix(text, strings.TrimSuffix(dir, "/")+"/")
}

// IsURL reports whether a path is a URL.
func IsURL(path string) bool { return strings.Contains(path, "://") }

// WorkingDir returns the working directory, or "" if it is unknown. Messages contain paths
// relative to this directory.
func WorkingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
