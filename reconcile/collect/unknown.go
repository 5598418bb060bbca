package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/runtime/safepath"
)

// ListUIDs returns the UIDs of all pods that have a log directory or a link to a log.
func (l Logs) ListUIDs() (sets.Set[types.UID], error) {
	uids := sets.New[types.UID]()
	names, err := safepath.Names(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the logs of pods: %w", err)
	}
	for _, name := range names {
		if uid, ok := uidFromName(name); ok {
			uids.Insert(uid)
		}
	}
	err = l.eachLink(func(links *safepath.Dir, name string) error {
		if log, ok := l.linkTarget(links, name); ok {
			uids.Insert(log.uid)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the links to logs: %w", err)
	}
	return uids, nil
}

// ListDeadLinks returns the names of the links in LinkDir that point to a file outside of Dir that does not
// exist. podd creates no such links. They are leftovers of other runtimes, such as Docker.
func (l Logs) ListDeadLinks() (sets.Set[string], error) {
	dead := sets.New[string]()
	err := l.eachLink(func(links *safepath.Dir, name string) error {
		if _, ok := l.linkTarget(links, name); !ok && isDeadLink(links, name) {
			dead.Insert(name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing dead links to logs: %w", err)
	}
	return dead, nil
}

// RemoveDeadLink removes the link in LinkDir with a name, unless the file to which it points exists.
func (l Logs) RemoveDeadLink(name string) error {
	links, err := l.openLinks(false)
	if links == nil {
		return err
	}
	defer links.Close()
	if filepath.Base(name) != name || !isDeadLink(links, name) {
		return nil
	}
	return links.Remove(name)
}

// isDeadLink reports whether name is a link in the directory links, and the file to which it points does
// not exist.
func isDeadLink(links *safepath.Dir, name string) bool {
	if _, err := links.Readlink(name); err != nil {
		return false
	}
	var target unix.Stat_t
	return unix.Fstatat(links.Fd(), name, &target, 0) == unix.ENOENT
}
