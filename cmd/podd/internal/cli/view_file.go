package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podd/cmd/podd/internal/paths"
	"podd/manifest/filename"
	"podd/server"
)

// findPath returns the path in v that arg refers to, or "" if there is none. arg may be the URL or
// a path of the file. arg may also be the base name of the file, if no other file in v has this
// base name.
func findPath(v *server.View, arg string) string {
	allPaths := viewPaths(v)
	if paths.IsURL(arg) {
		for _, p := range allPaths {
			if p == arg {
				return p
			}
		}
		return ""
	}
	for _, p := range allPaths {
		if paths.SameFile(p, arg) {
			return p
		}
	}
	matches := filter(allPaths, func(p string) bool { return filepath.Base(p) == arg })
	if len(matches) == 1 {
		return matches[0]
	}
	return ""
}

// viewPaths returns the paths of all files, pods and problems in v without duplicates.
func viewPaths(v *server.View) []string {
	var paths []string
	seen := map[string]bool{"": true}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	for _, f := range v.Files {
		add(f.Path)
	}
	for _, p := range v.Pods {
		add(p.Path)
	}
	for _, q := range v.Problems {
		add(q.Path)
	}
	return paths
}

// looksLikeFile reports whether arg looks like a file or URL rather than the name of a pod.
func looksLikeFile(arg string) bool {
	switch filepath.Ext(arg) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return paths.IsURL(arg) || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/")
}

// unknownFileError returns the error for a file that is not in v: the file is in no source of podd,
// podd has not read it yet, or podd does not read files with its name.
func unknownFileError(v *server.View, file string) error {
	if len(v.Sources) == 0 {
		return fmt.Errorf("%s does not belong to a source of podd, because podd has no sources; set one, for example with --pod-manifest-path", file)
	}
	abs, err := filepath.Abs(file)
	if err != nil || !isInSources(v, abs) {
		return fmt.Errorf("%s does not belong to a source of podd; the sources are %s", file, strings.Join(v.Sources, " and "))
	}
	if reason := ignoredReason(v, abs); reason != "" {
		return ignoredFileError{file, reason}
	}
	if _, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", file)
	}
	return fmt.Errorf("podd has not read %s yet", file)
}

// An ignoredFileError is the error for a file that podd does not read because of its name.
type ignoredFileError struct{ file, reason string }

func (e ignoredFileError) Error() string {
	return "podd does not read " + e.file + ", because " + e.reason + "; rename the file"
}

// ignoredReason returns the reason why podd does not read a file in a source because of its name, or
// "". If the source is a single file, the file can have any name.
func ignoredReason(v *server.View, path string) string {
	kind := filename.Classify(filepath.Base(path))
	isSource := slices.ContainsFunc(v.Sources, func(s string) bool { return paths.SameFile(s, path) })
	if isSource || kind == filename.Other && v.ReadsAnyName {
		return ""
	}
	return kind.IgnoredReason()
}

// isInSources reports whether path is a source, or a file directly in the directory of a
// source.
func isInSources(v *server.View, path string) bool {
	for _, s := range v.Sources {
		if paths.SameFile(s, path) || paths.SameFile(s, filepath.Dir(path)) {
			return true
		}
	}
	return false
}

// fileDigest returns the digest of a file's content in the format of FileView.Digest,
// "sha256:<hex>".
func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the manifest: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading the manifest: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
