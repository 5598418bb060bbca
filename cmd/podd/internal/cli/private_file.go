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

// privateFile is a file that only its owner can read, and that write replaces whole.
type privateFile struct {
	dir  *os.Root
	name string
}

// openPrivate returns the file of a path, which it neither creates nor changes. A path
// of something else than a regular file is an error: replacing /dev/stdout would harm
// every program.
func openPrivate(path string) (*privateFile, error) {
	if strings.HasSuffix(path, "/") {
		return nil, fmt.Errorf("%s is a directory; name a file in it", path)
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	info, err := dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; name a file that can be replaced", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		dir.Close()
		return nil, err
	}
	return &privateFile{dir, name}, nil
}

// write replaces the file. Its mode is 0600, whatever the mode of an earlier one.
func (f *privateFile) write(data []byte) error {
	return atomicfile.WriteIn(f.dir, f.name, ".podd-"+rand.Text(), data)
}

func (f *privateFile) close() { f.dir.Close() }
