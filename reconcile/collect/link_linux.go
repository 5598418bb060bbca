package collect

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/beneath"
)

const (
	maxName    = 255 // bytes, on every file system in use
	linkSuffix = ".log"
)

// linkName is the name of a link; one that is too long is cut before its
// suffix.
func linkName(pod types.NamespacedName, container, id string) string {
	name := pod.Name + "_" + pod.Namespace + "_" + container + "-" + id
	return name[:min(len(name), maxName-len(linkSuffix))] + linkSuffix
}

// Link makes the link to a container's log, once there is a log: made is false
// until then. Made already is true. path is the log's, below Dir.
func (l Logs) Link(path string, pod types.NamespacedName, container, id string) (made bool, err error) {
	made, err = l.link(path, linkName(pod, container, id))
	if err != nil {
		err = fmt.Errorf("linking the log of container %s of pod %s: %w", container, pod, err)
	}
	return made, err
}

func (l Logs) link(path, name string) (made bool, err error) {
	if exists, err := l.exists(path); !exists {
		return false, err
	}
	links, err := l.openLinks(true)
	if links == nil {
		return false, err
	}
	defer links.Close()
	if filepath.Base(name) != name {
		return false, fmt.Errorf("%q cannot be a file name", name)
	}
	err = unix.Symlinkat(path, links.Fd(), name)
	if err != unix.EEXIST {
		return err == nil, err
	}
	target, err := links.Readlink(name)
	if err != nil || target == path {
		return err == nil, err
	}
	// Of an earlier container, whose name was cut to the same.
	temp := ".new." + name[:min(len(name), maxName-len(".new."))]
	if err := unix.Symlinkat(path, links.Fd(), temp); err != nil && err != unix.EEXIST {
		return false, err
	}
	err = unix.Renameat(links.Fd(), temp, links.Fd(), name)
	return err == nil, err
}

// exists says whether there is a log of that path below Dir.
func (l Logs) exists(path string) (bool, error) {
	rel, err := filepath.Rel(l.Dir, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return false, fmt.Errorf("%s is not in %s", path, l.Dir)
	}
	all, err := beneath.Open(l.Dir)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer all.Close()
	mode, err := all.Mode(rel)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err == nil && !mode.IsRegular() {
		err = fmt.Errorf("%s %w", path, beneath.ErrNotRegular)
	}
	return err == nil, err
}
