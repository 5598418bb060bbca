package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podd/runtime/atomicfile"
)

// The prefixes of file names. After a prefix of podd or the kubelet follows a hash.
const (
	kubeletPrefix   = "sha256-"
	presentPrefix   = "present-"
	temporaryPrefix = ".podd-" // see atomicfile.Write
)

// Count returns the numbers of intents and records. It returns 0 for a directory that cannot be read.
func (s *Store) Count() (intents, records int) {
	intentFiles, _ := listFiles(s.pullingDir)
	recordFiles, _ := listFiles(s.pulledDir)
	return len(intentFiles), len(recordFiles)
}

// listFiles returns the names of the intents or records in a directory. If the directory does not
// exist, there are none.
func listFiles(dir string) (names []string, err error) {
	allNames, err := readDir(dir)
	for _, name := range allNames {
		if strings.HasPrefix(name, kubeletPrefix) && !strings.HasSuffix(name, ".tmp") { // the kubelet's temporary files
			names = append(names, name)
		}
	}
	return names, err
}

// readDir returns the names of the files in a directory, or none if the directory does not exist.
func readDir(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the records of image pulls: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// minLeftoverAge is the age at which removeLeftovers removes a file. A younger file may belong to
// another process that has not yet renamed the file or written its intent.
const minLeftoverAge = time.Minute

// removeLeftovers removes the files that a power cut can leave: temporary files, and the IDs of
// preloaded images without an intent.
func (s *Store) removeLeftovers() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, dir := range []string{s.pullingDir, s.pulledDir} {
		names, err := readDir(dir)
		errs = append(errs, err)
		isFile := make(map[string]bool, len(names))
		for _, name := range names {
			isFile[name] = true
		}
		for _, name := range names {
			hash, isPresentID := strings.CutPrefix(name, presentPrefix)
			isLeftover := strings.HasPrefix(name, temporaryPrefix) || isPresentID && !isFile[kubeletPrefix+hash]
			if isLeftover && isOlderThan(filepath.Join(dir, name), minLeftoverAge) {
				errs = append(errs, removeFiles(dir, name))
			}
		}
	}
	return errors.Join(errs...)
}

// isOlderThan reports whether a file was written more than age ago. It returns false if the file does
// not exist.
func isOlderThan(path string, age time.Duration) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > age
}

// removeFiles removes the files of dir with the given names, in the given order, so that they stay
// removed after a power cut. A file that does not exist is not an error.
func removeFiles(dir string, names ...string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	hasRemoved := false
	for _, name := range names {
		switch err := root.Remove(name); {
		case err == nil:
			hasRemoved = true
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("removing a record of an image pull: %w", err)
		}
	}
	if !hasRemoved {
		return nil
	}
	return atomicfile.SyncDir(root)
}
