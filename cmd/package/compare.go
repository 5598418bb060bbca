package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// compareDirs returns the number of files in the first directory. It returns errDifferent unless
// the second directory contains the same files with the same content.
func compareDirs(firstDir, secondDir string) (n int, err error) {
	firstFiles, err := readFiles(firstDir)
	if err != nil {
		return 0, err
	}
	secondFiles, err := readFiles(secondDir)
	if err != nil {
		return 0, err
	}
	for name := range secondFiles {
		if _, ok := firstFiles[name]; !ok {
			return 0, fmt.Errorf("%w: only the second build contains %s", errDifferent, name)
		}
	}
	for name, content := range firstFiles {
		if secondContent, ok := secondFiles[name]; !ok || !bytes.Equal(content, secondContent) {
			return 0, fmt.Errorf("%w in %s", errDifferent, name)
		}
	}
	return len(firstFiles), nil
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
