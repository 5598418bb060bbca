package filecheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"podd/manifest"
	"podd/manifest/filename"
	"podd/manifest/source"
)

// An Input is the content of a file or URL to check, or the error of reading it.
type Input struct {
	path string // path or URL from the command line; a URL without userinfo, query and fragment
	kind string // manifest.KindFile or manifest.KindURL
	data []byte
	err  error
	// isIgnored is set for an entry of a directory that is not read, although a user may intend it to be
	// a manifest. err is then the reason.
	isIgnored bool
}

// Read reads all names. A name is the path of a file or of a directory with manifests, a URL,
// or "-" for stdin. If a name cannot be read, its Input contains the error.
func Read(ctx context.Context, names []string, stdin io.Reader) []Input {
	var inputs []Input
	for _, name := range names {
		switch {
		case name == "-":
			data, err := readLimited(stdin)
			inputs = append(inputs, Input{path: "<stdin>", kind: manifest.KindFile, data: data, err: err})
		case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
			inputs = append(inputs, fetch(ctx, name))
		default:
			inputs = append(inputs, readPath(name)...)
		}
	}
	return inputs
}

// readPath reads a file, or all manifests in a directory in the order of their names. As kubectl does, it
// does not read files of a directory that do not have the name of a manifest, such as README.md.
func readPath(path string) []Input {
	info, err := os.Stat(path)
	if err != nil {
		return []Input{{path: path, err: NewReadError(err)}}
	}
	if !info.IsDir() {
		return []Input{readRegular(path)}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return []Input{{path: path, err: NewReadError(err)}}
	}
	var inputs []Input
	hasManifest := false
	for _, e := range entries {
		file := filepath.Join(path, e.Name())
		switch kind := filename.Classify(e.Name()); {
		case kind != filename.Manifest && kind != filename.Other:
		case isDir(file):
			inputs = append(inputs, newIgnored(file, "podd does not read subdirectories; to include its files, specify the subdirectory"))
		case kind == filename.Other:
			inputs = append(inputs, newIgnored(file, kind.IgnoredReason()+"; to include it, as podd called as kubelet does, specify the file"))
		default:
			inputs = append(inputs, readRegular(file))
			hasManifest = true
		}
	}
	if !hasManifest {
		err := errors.New("the directory contains no manifests; the names of manifests must end in .yaml, .yml, .json or .manifest")
		inputs = append([]Input{{path: path, err: err}}, inputs...)
	}
	return inputs
}

// newIgnored returns the Input of an entry of a directory that is not read.
func newIgnored(path, reason string) Input {
	return Input{path: path, err: errors.New("ignored: " + reason), isIgnored: true}
}

// isDir reports whether path is a directory, or a symlink to a directory.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readRegular reads a regular file. Any other kind of file is an error. readRegular does not
// block if the file is a FIFO.
func readRegular(path string) Input {
	in := Input{path: path, kind: manifest.KindFile}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		in.err = NewReadError(err)
		return in
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		in.err = errors.New("not a regular file")
		return in
	}
	in.data, in.err = readLimited(f)
	return in
}

// readLimited reads r until its end. It returns an error if there are more than source.MaxSize
// bytes.
func readLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, source.MaxSize+1))
	if err != nil {
		return nil, NewReadError(err)
	}
	if len(data) > source.MaxSize {
		return nil, fmt.Errorf("larger than %d MiB; split the file", source.MaxSize>>20)
	}
	return data, nil
}

// NewReadError returns an error with the cause of err, which is the error of a failed read. The
// result does not contain the operation and the path, because the Problem with this error names the
// file.
func NewReadError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("cannot be read: %w", p.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}
