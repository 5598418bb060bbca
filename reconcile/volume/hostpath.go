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
	"syscall"

	v1 "k8s.io/api/core/v1"
)

// hostPath is a path of the host that the pod's author chose. Links in it are
// followed, as the runtime will follow them; but nothing is created through a
// link in its last element, which a container with the parent may have planted.
type hostPath struct{}

func (hostPath) source() string { return "hostPath" }

func (hostPath) serves(v *v1.Volume) bool { return v.HostPath != nil }

func (hostPath) prepare(_ context.Context, _ *place, v *v1.Volume) (string, error) {
	return checkHostPath(v.HostPath, true)
}

// check counts a path that would be made as good.
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

// hostPathType is what a type demands of a path.
type hostPathType struct {
	is     func(fs.FileMode) bool
	noun   string
	create func(path string) error // nil: it must be there
	advice string                  // when it is not there
}

var hostPathTypes = map[v1.HostPathType]hostPathType{
	v1.HostPathDirectoryOrCreate: {is: fs.FileMode.IsDir, noun: "a directory", create: createDir},
	v1.HostPathDirectory:         {is: fs.FileMode.IsDir, noun: "a directory", advice: "make it, or use type DirectoryOrCreate"},
	v1.HostPathFileOrCreate:      {is: fs.FileMode.IsRegular, noun: "a file", create: createFile},
	v1.HostPathFile:              {is: fs.FileMode.IsRegular, noun: "a file", advice: "make it, or use type FileOrCreate"},
	v1.HostPathSocket:            {is: ofType(fs.ModeSocket), noun: "a Unix socket", advice: "start what listens on it"},
	v1.HostPathCharDev:           {is: ofType(fs.ModeDevice | fs.ModeCharDevice), noun: "a character device", advice: "load its driver"},
	v1.HostPathBlockDev:          {is: ofType(fs.ModeDevice), noun: "a block device", advice: "attach the disk or load its driver"},
}

func ofType(want fs.FileMode) func(fs.FileMode) bool {
	return func(m fs.FileMode) bool { return m.Type() == want }
}

func (t hostPathType) check(path string, create bool) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && t.create != nil {
		if !create {
			return unlessLink(path, fs.ErrExist)
		}
		if err := t.create(path); err != nil {
			return fmt.Errorf("creating %s: %w", t.noun, bare(err))
		}
		info, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no such path, and hostPath.type wants %s; %s", t.noun, t.advice)
	case err != nil:
		return fmt.Errorf("looking at it: %w", bare(err))
	case !t.is(info.Mode()):
		return fmt.Errorf("is %s, and hostPath.type wants %s; change the path or the type", nounOf(info.Mode()), t.noun)
	}
	return nil
}

// createDir makes a directory of mode 0755 and its parents.
func createDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return unlessLink(path, err)
	}
	return chmod(path, syscall.O_DIRECTORY, 0o755)
}

// createFile makes an empty file of mode 0644; the directory must be there.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("its directory is missing; make it, or add a volume of type DirectoryOrCreate for it")
		}
		return unlessLink(path, err)
	}
	err = f.Chmod(0o644) // whatever the umask
	return errors.Join(err, f.Close())
}

// unlessLink takes "exists already" for success, for another pod may have been
// quicker, but not when a link to nowhere is what exists.
func unlessLink(path string, err error) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errors.New("a symbolic link to nothing is in the way; remove it or make its target")
	}
	return nil
}

func chmod(path string, flags int, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|flags, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(mode), f.Close())
}

// bare takes the path off an error that is shown behind it.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func nounOf(mode fs.FileMode) string {
	for _, t := range []v1.HostPathType{v1.HostPathDirectory, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev} {
		if hostPathTypes[t].is(mode) {
			return hostPathTypes[t].noun
		}
	}
	return "of another type (" + mode.Type().String() + ")"
}
