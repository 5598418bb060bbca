package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

const (
	// hostsName is the name of the hosts file in a pod's directory, as in the kubelet.
	hostsName = "etc-hosts"
	hostsMode = 0o644
	// newFileSuffix is the suffix of a new file that is not completely written yet.
	newFileSuffix = ".new"
)

// WriteHosts writes the hosts file of a pod and returns the path of the file on the host. It may be
// called concurrently for the same pod with the same text.
//
// Like the kubelet, WriteHosts changes an existing file in place, because containers have the file
// mounted. If WriteHosts replaced the file, the containers would keep the deleted file. They could
// fill the disk with it, and FileUsage would not count its space.
func (d Dir) WriteHosts(uid types.UID, text string) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	dir, err := d.openPodDir(uid)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := flock(dir); err != nil {
		return "", err
	}
	path := filepath.Join(d.Root, string(uid), hostsName)
	f, err := dir.OpenFileReadWrite(hostsName)
	switch {
	case err == nil:
		defer f.Close()
		return path, overwrite(f, text)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, safepath.ErrLink), errors.Is(err, safepath.ErrNotRegular):
		return path, replaceFile(dir, hostsName, text)
	}
	return "", err
}

// overwrite sets the content of f to text. It writes nothing if f already has this content.
func overwrite(f *os.File, text string) error {
	size := int64(len(text))
	var oldText strings.Builder
	_, err := io.Copy(&oldText, io.NewSectionReader(f, 0, size+1))
	if err == nil && oldText.String() == text {
		return nil
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(size)
}

// replaceFile writes text to a temporary file in dir and renames the file to name.
func replaceFile(dir *safepath.Dir, name, text string) error {
	if err := dir.Remove(name + newFileSuffix); err != nil {
		return err
	}
	f, err := dir.Create(name+newFileSuffix, hostsMode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return dir.Rename(name+newFileSuffix, name)
}
