package volume

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

// A FileUsage contains the disk usage of files in a pod's directory that are mounted in the pod's
// containers. The containers can write to these files. Since CVE-2020-8557, the kubelet counts
// Hosts towards ephemeral storage. It does not count Messages.
type FileUsage struct {
	// Hosts is the usage of /etc/hosts.
	Hosts safepath.Usage
	// Messages contains the usage of the termination messages of all attempts, by container.
	Messages map[string]safepath.Usage
}

// FileUsage measures the hosts file and the termination messages of a pod. A missing file counts as
// zero. If FileUsage returns an error, the result contains the usage of the files that could be
// measured. The pod may be running.
func (d Dir) FileUsage(uid types.UID) (FileUsage, error) {
	usage := FileUsage{Messages: map[string]safepath.Usage{}}
	if err := checkUID(uid); err != nil {
		return usage, err
	}
	pods, err := d.openRoot()
	if pods == nil {
		return usage, err
	}
	defer pods.Close()
	pod, err := pods.Sub(string(uid))
	if err != nil {
		return usage, ignoreNotExist(err)
	}
	defer pod.Close()
	usage.Hosts, err = pod.FileUsage(hostsName)
	messagesErr := forEachMessage(pod, func(container string, dir *safepath.Dir, name string) error {
		u, err := dir.FileUsage(name)
		sum := usage.Messages[container]
		usage.Messages[container] = safepath.Usage{Bytes: sum.Bytes + u.Bytes, Inodes: sum.Inodes + u.Inodes}
		return ignoreNotExist(err)
	})
	if err := errors.Join(ignoreNotExist(err), messagesErr); err != nil {
		return usage, fmt.Errorf("measuring the hosts file and termination messages of pod %s: %w", uid, err)
	}
	return usage, nil
}

// freeFileSpace frees most of the disk space that FileUsage measures. The pod must have no
// processes. freeFileSpace removes the hosts file, which the next start writes again. It also frees
// the part of termination messages that ReadMessage does not read.
func freeFileSpace(pod *safepath.Dir) error {
	return errors.Join(pod.Remove(hostsName), forEachMessage(pod, func(_ string, dir *safepath.Dir, name string) error {
		return freeBeforeTail(dir, name)
	}))
}

// freeBeforeTail frees the disk space of a file before the last messageLimit bytes. It needs no
// free disk space. It keeps the size of the file, so that a concurrent ReadMessage still reads the
// complete end. It does nothing on file systems that do not support holes.
func freeBeforeTail(dir *safepath.Dir, name string) error {
	size, _, err := dir.Stat(name)
	if err != nil || size <= messageLimit {
		return ignoreNotExist(err)
	}
	f, err := dir.OpenFileReadWrite(name)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, size-messageLimit)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// forEachMessage calls do for every file of a termination message in a pod's directory. It continues
// after an error, and returns all errors joined.
func forEachMessage(pod *safepath.Dir, do func(container string, dir *safepath.Dir, name string) error) error {
	messages, err := pod.Sub(containersDir)
	if err != nil {
		return ignoreNotExist(err)
	}
	defer messages.Close()
	containers, err := messages.Names()
	errs := []error{err}
	for _, container := range containers {
		dir, err := messages.Sub(container)
		if err != nil {
			errs = append(errs, ignoreNotExist(err))
			continue
		}
		names, err := dir.Names()
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, do(container, dir, name))
		}
		dir.Close()
	}
	return errors.Join(errs...)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
