package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"podd/runtime/atomicfile"
)

// A privateFile is a file that only its owner can read.
type privateFile struct {
	dir  *os.Root
	name string
}

// openPrivateFile returns the file at a path. It neither creates nor modifies the file. It
// returns an error if path is not a regular file, because replacing /dev/stdout would break
// other programs.
func openPrivateFile(path string) (*privateFile, error) {
	if strings.HasSuffix(path, "/") {
		return nil, fmt.Errorf("%s is a directory; specify a file in it", path)
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	info, err := dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; specify a new file, or a regular file to overwrite", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		dir.Close()
		return nil, err
	}
	return &privateFile{dir, name}, nil
}

// write replaces the file atomically. The mode of the new file is 0600.
func (f *privateFile) write(data []byte) error {
	return atomicfile.WriteIn(f.dir, f.name, ".podd-"+rand.Text(), data)
}

func (f *privateFile) close() { f.dir.Close() }
