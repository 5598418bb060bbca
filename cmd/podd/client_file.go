package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"podd/server"
)

// knownPath is the path in v that a user means by word: a URL as it is, a file
// by any path that leads to it or, if only one has it, by its name. "" when
// there is none.
func knownPath(v *server.View, word string) string {
	paths := viewPaths(v)
	if isURL(word) {
		for _, p := range paths {
			if p == word {
				return p
			}
		}
		return ""
	}
	for _, p := range paths {
		if sameFile(p, word) {
			return p
		}
	}
	named := filter(paths, func(p string) bool { return filepath.Base(p) == word })
	if len(named) == 1 {
		return named[0]
	}
	return ""
}

// viewPaths are all paths that v speaks of, each once.
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

// sameFile says whether two paths are of one file, which need not exist.
func sameFile(known, word string) bool {
	abs, err := filepath.Abs(word)
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

// looksLikeFile says whether word is meant as a file rather than a pod.
func looksLikeFile(word string) bool {
	switch filepath.Ext(word) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return isURL(word) || strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/")
}

// unknownFileError says what podd reads instead.
func unknownFileError(v *server.View, word string) error {
	if len(v.Sources) == 0 {
		return fmt.Errorf("podd does not read %s; it reads no files at all", word)
	}
	return fmt.Errorf("podd does not read %s; it reads %s", word, strings.Join(v.Sources, " and "))
}

// inSources says whether podd would read a file of this path.
func inSources(v *server.View, path string) bool {
	for _, s := range v.Sources {
		if sameFile(s, path) || sameFile(s, filepath.Dir(path)) {
			return true
		}
	}
	return false
}

// digestOf is "sha256:<hex>" of a file's content, as FileView.Digest.
func digestOf(path string) (string, error) {
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
