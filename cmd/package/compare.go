package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// compareDirs returns the number of files in the first directory. It returns errDifferent unless
// the second directory contains the same files with the same content.
func compareDirs(first, second string) (n int, err error) {
	a, err := readFiles(first)
	if err != nil {
		return 0, err
	}
	b, err := readFiles(second)
	if err != nil {
		return 0, err
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			return 0, fmt.Errorf("%w: only the second one contains %s", errDifferent, name)
		}
	}
	for name, content := range a {
		if other, ok := b[name]; !ok || !bytes.Equal(content, other) {
			return 0, fmt.Errorf("%w in %s", errDifferent, name)
		}
	}
	return len(a), nil
}

// readFiles returns the content of the files in dir, by name.
func readFiles(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}
