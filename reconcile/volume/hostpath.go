package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/safepath"
)

// hostPath implements volumeType for volumes of type hostPath: a path of the host that the pod's
// author chose. podd follows links in the path, because the runtime follows them, too. But if the
// last element is a link, podd creates nothing at its target. A container that has the parent
// directory mounted may have created the link.
//
// For every hostPath type, a container that can write to a parent directory can create a link
// there, and so choose the file that the runtime mounts. A kubelet has the same weakness. podd
// cannot reject links in parents, because hosts have them, for example /var/run. A type that
// creates a missing path changes no existing file. It only adds an empty file or directory with a
// name that the author chose.
type hostPath struct{}

func (hostPath) matches(v *v1.Volume) bool { return v.HostPath != nil }

func (hostPath) prepare(_ context.Context, _ *podDir, v *v1.Volume) (string, error) {
	return prepareHostPath(v.HostPath, true)
}

// check reports no error for a missing path if prepare would create the path.
func (hostPath) check(_ *podDir, v *v1.Volume) (string, error) {
	return prepareHostPath(v.HostPath, false)
}

// prepareHostPath returns the path of a hostPath. It returns an error if the path does not exist or
// is not of the type of the hostPath. If create is true and the type allows it, prepareHostPath
// creates a missing path.
func prepareHostPath(v *v1.HostPathVolumeSource, create bool) (path string, err error) {
	path = v.Path
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(path, "/"), "..") {
		return path, errors.New("hostPath must be an absolute path without \"..\"")
	}
	path = filepath.Clean(path)
	if v.Type == nil || *v.Type == v1.HostPathUnset {
		return path, nil
	}
	t, ok := hostPathTypes[*v.Type]
	if !ok {
		return path, fmt.Errorf("%q is not a hostPath type; use a type such as Directory or FileOrCreate", *v.Type)
	}
	return path, t.check(path, create)
}

// A hostPathType describes which files a hostPath of one type accepts.
type hostPathType struct {
	matches func(fs.FileMode) bool
	noun    string
	create  func(path string) error // nil if the path must exist
	remedy  string                  // what to do if the path does not exist
}

var hostPathTypes = map[v1.HostPathType]hostPathType{
	v1.HostPathDirectoryOrCreate: {matches: fs.FileMode.IsDir, noun: "a directory", create: createDir},
	v1.HostPathDirectory:         {matches: fs.FileMode.IsDir, noun: "a directory", remedy: "create it, or use type DirectoryOrCreate"},
	v1.HostPathFileOrCreate:      {matches: fs.FileMode.IsRegular, noun: "a file", create: createFile},
	v1.HostPathFile:              {matches: fs.FileMode.IsRegular, noun: "a file", remedy: "create it, or use type FileOrCreate"},
	v1.HostPathSocket:            {matches: hasType(fs.ModeSocket), noun: "a Unix socket", remedy: "start the program that listens on it"},
	v1.HostPathCharDev:           {matches: hasType(fs.ModeDevice | fs.ModeCharDevice), noun: "a character device", remedy: "load its driver"},
	v1.HostPathBlockDev:          {matches: hasType(fs.ModeDevice), noun: "a block device", remedy: "attach the disk or load its driver"},
}

func hasType(fileType fs.FileMode) func(fs.FileMode) bool {
	return func(m fs.FileMode) bool { return m.Type() == fileType }
}

// check returns an error if the file at path is not of this type. If the file is missing and the
// type allows podd to create it, check creates it if create is true, and otherwise reports no
// error.
func (t hostPathType) check(path string, create bool) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && t.create != nil {
		if !create {
			return ignoreExisting(path, fs.ErrExist)
		}
		if err := t.create(path); err != nil {
			return fmt.Errorf("creating %s: %w", t.noun, withoutPath(err))
		}
		info, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the path does not exist, but hostPath.type requires %s; %s", t.noun, t.remedy)
	case err != nil:
		return fmt.Errorf("reading the file status: %w", withoutPath(err))
	case !t.matches(info.Mode()):
		return fmt.Errorf("is %s, but hostPath.type requires %s; change the path or the type", describeMode(info.Mode()), t.noun)
	}
	return nil
}

// createDir creates a directory and its parents with mode 0755.
func createDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	parent, err := safepath.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	// Because parent is open, a symbolic link that replaces a part of the path later has no effect.
	_, err = parent.Mkdir(filepath.Base(path), 0o755, -1)
	return ignoreExisting(path, err)
}

// createFile creates an empty file with mode 0644. The parent directory must exist.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("the parent directory does not exist; create it, or add a volume of type DirectoryOrCreate for it")
		}
		return ignoreExisting(path, err)
	}
	err = f.Chmod(0o644) // set the mode independently of the umask
	return errors.Join(err, f.Close())
}

// ignoreExisting returns nil if err means that path exists, because another pod may have created
// the path in the meantime. It returns an error if path is a symbolic link to a file that does not
// exist.
func ignoreExisting(path string, err error) error {
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, safepath.ErrLink) {
		return err
	}
	if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errors.New("the path is a symbolic link to a file that does not exist; remove the link, or create its target")
	}
	return nil
}

// withoutPath returns the cause of err if err is a *fs.PathError, for messages that already contain
// the path. It returns other errors and nil unchanged.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// describeMode returns a noun for the type of a file, such as "a directory".
func describeMode(mode fs.FileMode) string {
	for _, t := range []v1.HostPathType{v1.HostPathDirectory, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev} {
		if hostPathTypes[t].matches(mode) {
			return hostPathTypes[t].noun
		}
	}
	switch mode.Type() {
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSymlink:
		return "a symbolic link"
	}
	return "a file of unknown type (" + mode.Type().String() + ")"
}
