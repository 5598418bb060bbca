package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/beneath"
)

const (
	// containersDir has a file for each start of a container, named as the
	// kubelet's are: <container>/<8 hex digits>. Here they are the attempt.
	containersDir = "containers"
	// messageMode: whoever the container runs as writes it.
	messageMode = 0o666
	// messageLimit is what is read of a message, its end.
	messageLimit = 4096
)

func messageName(attempt uint32) string { return fmt.Sprintf("%08x", attempt) }

// MakeMessage makes the empty file that a start of a container may leave a
// message in, and returns its path on the host. Those of starts before the
// previous one are removed.
func (d Dir) MakeMessage(uid types.UID, container string, attempt uint32) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	pod, err := d.make(uid)
	if err != nil {
		return "", err
	}
	defer pod.Close()
	dir, err := within(pod, true, containersDir, container)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		// What has the number of this start is of one that never came about.
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

// Message is the end of what a start of a container left; fs.ErrNotExist when it
// has no file.
func (d Dir) Message(uid types.UID, container string, attempt uint32) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	pods, err := d.open()
	if err != nil {
		return "", err
	}
	if pods == nil {
		return "", fs.ErrNotExist
	}
	defer pods.Close()
	dir, err := within(pods, false, string(uid), containersDir, container)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.File(messageName(attempt))
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

// within opens a directory step by step, making what is missing if asked. The
// caller closes it; from stays open.
func within(from *beneath.Dir, create bool, names ...string) (*beneath.Dir, error) {
	dir := from
	for _, name := range names {
		if create {
			if _, err := dir.Mkdir(name, dirMode, -1); err != nil {
				return nil, err
			}
		}
		next, err := dir.Sub(name)
		if dir != from {
			err = errors.Join(err, dir.Close())
		}
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}
