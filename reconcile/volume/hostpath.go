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

// hostPath is a volume at a path of the host that the pod's author chose. Links in the path
// are followed, because the runtime follows them, too. But nothing is created through a
// link in the last element, which a container that has the parent mounted may have created.
//
// As with the kubelet, a link that a container creates in a parent determines what the
// runtime mounts, for every type. The types that create something add only an empty file
// or directory with a name that the author chose; nothing that exists is changed. Links in
// parents cannot be rejected because hosts have them, for example /var/run.
type hostPath struct{}

func (hostPath) source() string { return "hostPath" }

func (hostPath) serves(v *v1.Volume) bool { return v.HostPath != nil }

func (hostPath) prepare(_ context.Context, _ *place, v *v1.Volume) (string, error) {
	return checkHostPath(v.HostPath, true)
}

// check accepts a path that prepare would create.
func (hostPath) check(_ *place, v *v1.Volume) (string, error) {
	return checkHostPath(v.HostPath, false)
}

func checkHostPath(v *v1.HostPathVolumeSource, create bool) (string, error) {
	path := v.Path
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(path, "/"), "..") {
		return path, errors.New("hostPath must be an absolute path without \"..\"")
	}
	path = filepath.Clean(path)
	if v.Type == nil || *v.Type == v1.HostPathUnset {
		return path, nil
	}
	rule, ok := hostPathTypes[*v.Type]
	if !ok {
		return path, fmt.Errorf("hostPath has no type %q; see spec.volumes.hostPath.type", *v.Type)
	}
	return path, rule.check(path, create)
}

// A hostPathType has the requirements of a type.
type hostPathType struct {
	is     func(fs.FileMode) bool
	noun   string
	create func(path string) error // nil if the path must exist
	advice string                  // remedy if the path does not exist
}

var hostPathTypes = map[v1.HostPathType]hostPathType{
	v1.HostPathDirectoryOrCreate: {is: fs.FileMode.IsDir, noun: "a directory", create: createDir},
	v1.HostPathDirectory:         {is: fs.FileMode.IsDir, noun: "a directory", advice: "make it, or use type DirectoryOrCreate"},
	v1.HostPathFileOrCreate:      {is: fs.FileMode.IsRegular, noun: "a file", create: createFile},
	v1.HostPathFile:              {is: fs.FileMode.IsRegular, noun: "a file", advice: "make it, or use type FileOrCreate"},
	v1.HostPathSocket:            {is: hasType(fs.ModeSocket), noun: "a Unix socket", advice: "start what listens on it"},
	v1.HostPathCharDev:           {is: hasType(fs.ModeDevice | fs.ModeCharDevice), noun: "a character device", advice: "load its driver"},
	v1.HostPathBlockDev:          {is: hasType(fs.ModeDevice), noun: "a block device", advice: "attach the disk or load its driver"},
}

func hasType(want fs.FileMode) func(fs.FileMode) bool {
	return func(m fs.FileMode) bool { return m.Type() == want }
}

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
		return fmt.Errorf("there is no such path, and hostPath.type wants %s; %s", t.noun, t.advice)
	case err != nil:
		return fmt.Errorf("reading its status: %w", withoutPath(err))
	case !t.is(info.Mode()):
		return fmt.Errorf("is %s, and hostPath.type wants %s; change the path or the type", describeMode(info.Mode()), t.noun)
	}
	return nil
}

// createDir creates a directory with mode 0755 and its parents.
func createDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	parent, err := safepath.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	// parent is open, so a link that is created in the path from now on has no effect.
	_, err = parent.Mkdir(filepath.Base(path), 0o755, -1)
	return ignoreExisting(path, err)
}

// createFile creates an empty file with mode 0644. Its directory must exist.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("its directory is missing; make it, or add a volume of type DirectoryOrCreate for it")
		}
		return ignoreExisting(path, err)
	}
	err = f.Chmod(0o644) // independent of the umask
	return errors.Join(err, f.Close())
}

// ignoreExisting returns nil if err is that path exists, because another pod may have
// created it. It returns an error if path is a dangling link.
func ignoreExisting(path string, err error) error {
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, safepath.ErrLink) {
		return err
	}
	if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errors.New("a symbolic link to nothing is in the way; remove it or make its target")
	}
	return nil
}

// withoutPath returns err without its path, for messages that contain the path. It returns
// nil for nil.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// describeMode returns a noun for the type of a file.
func describeMode(mode fs.FileMode) string {
	for _, t := range []v1.HostPathType{v1.HostPathDirectory, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev} {
		if hostPathTypes[t].is(mode) {
			return hostPathTypes[t].noun
		}
	}
	return "of another type (" + mode.Type().String() + ")"
}
