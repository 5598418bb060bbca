package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

const (
	// containersDir is the directory of termination messages. It contains a file
	// <container>/<8 hex digits> for each attempt of a container, as in the kubelet. The
	// digits are the attempt number.
	containersDir = "containers"
	// messageMode allows any user of the container to write.
	messageMode = 0o666
	// messageLimit is the number of bytes that ReadMessage reads at the end of a file.
	messageLimit = 4096
)

func messageName(attempt uint32) string { return fmt.Sprintf("%08x", attempt) }

// CreateMessageFile creates the empty file for the termination message of an attempt of a
// container, and returns its path on the host. It removes the files of all other attempts except
// the previous attempt.
func (d Dir) CreateMessageFile(uid types.UID, container string, attempt uint32) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	pod, err := d.openPodDir(uid)
	if err != nil {
		return "", err
	}
	defer pod.Close()
	dir, err := openSubdir(pod, true, containersDir, container)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		// Also remove a file with the number of this attempt. It remains from a start that failed.
		n, err := strconv.ParseUint(name, 16, 32)
		if err != nil || n+1 == uint64(attempt) {
			continue
		}
		if err := dir.Remove(name); err != nil {
			return "", err
		}
	}
	f, err := dir.Create(messageName(attempt), messageMode)
	if err != nil {
		return "", err
	}
	return filepath.Join(d.Root, string(uid), containersDir, container, messageName(attempt)), f.Close()
}

// ReadMessage returns the last messageLimit bytes of a container's termination message in one
// attempt. It returns fs.ErrNotExist if there is no file.
func (d Dir) ReadMessage(uid types.UID, container string, attempt uint32) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	pods, err := d.openRoot()
	if err != nil {
		return "", err
	}
	if pods == nil {
		return "", fs.ErrNotExist
	}
	defer pods.Close()
	dir, err := openSubdir(pods, false, string(uid), containersDir, container)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.OpenFile(messageName(attempt))
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, messageLimit)
	n, err := f.ReadAt(text, max(info.Size()-messageLimit, 0))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(text[:n]), err
}

// openSubdir opens a directory below parent and keeps parent open. names contains the elements of
// the directory's path relative to parent. If create is true, openSubdir creates missing
// directories. The caller must close the result.
func openSubdir(parent *safepath.Dir, create bool, names ...string) (*safepath.Dir, error) {
	dir := parent
	for _, name := range names {
		if create {
			if _, err := dir.Mkdir(name, dirMode, -1); err != nil {
				return nil, err
			}
		}
		subdir, err := dir.Sub(name)
		if dir != parent {
			err = errors.Join(err, dir.Close())
		}
		if err != nil {
			return nil, err
		}
		dir = subdir
	}
	return dir, nil
}
