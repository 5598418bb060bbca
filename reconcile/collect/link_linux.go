package collect

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

const (
	maxNameLength = 255 // maximum length of a file name in bytes on all common file systems
	linkSuffix    = ".log"
)

// linkName returns the name of the link to a container's log. If the name is too long, it is
// truncated before the suffix ".log".
func linkName(pod types.NamespacedName, container, id string) string {
	name := pod.Name + "_" + pod.Namespace + "_" + container + "-" + id
	return name[:min(len(name), maxNameLength-len(linkSuffix))] + linkSuffix
}

// Link creates the link to a container's log at path, which must be below Dir. exists reports
// whether the link exists when Link returns. If there is no log yet, or if LinkDir is "", Link
// creates no link and returns no error.
func (l Logs) Link(path string, pod types.NamespacedName, container, id string) (exists bool, err error) {
	exists, err = l.link(path, linkName(pod, container, id))
	if err != nil {
		err = fmt.Errorf("creating a link to the log of container %s of pod %s: %w", container, pod, err)
	}
	return exists, err
}

// link creates the link to the log at path; name is the name of the link. exists has the same
// meaning as in Link.
func (l Logs) link(path, name string) (exists bool, err error) {
	if logExists, err := l.logExists(path); !logExists {
		return false, err
	}
	links, err := l.openLinks(true)
	if links == nil {
		return false, err
	}
	defer links.Close()
	if filepath.Base(name) != name {
		return false, fmt.Errorf("%q is not a valid name of a link", name)
	}
	err = unix.Symlinkat(path, links.Fd(), name)
	if err != unix.EEXIST {
		return err == nil, err
	}
	target, err := links.Readlink(name)
	if err != nil || target == path {
		return err == nil, err
	}
	// Replace the link, because it belongs to an earlier container with the same truncated name.
	temp := ".new." + name[:min(len(name), maxNameLength-len(".new."))]
	if err := unix.Symlinkat(path, links.Fd(), temp); err != nil && err != unix.EEXIST {
		return false, err
	}
	err = unix.Renameat(links.Fd(), temp, links.Fd(), name)
	return err == nil, err
}

// logExists reports whether the log at path exists. If path is not below Dir or is not a regular
// file, logExists returns an error.
func (l Logs) logExists(path string) (exists bool, err error) {
	rel, err := filepath.Rel(l.Dir, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return false, fmt.Errorf("the log %s is not in the log directory %s", path, l.Dir)
	}
	rootDir, err := safepath.Open(l.Dir)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer rootDir.Close()
	mode, err := rootDir.Mode(rel)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err == nil && !mode.IsRegular() {
		err = fmt.Errorf("%s %w", path, safepath.ErrNotRegular)
	}
	return err == nil, err
}
