package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/runtime/beneath"
	"podd/runtime/logs"
)

// sweepLinks removes the links into log directories of pods that are owned and
// not live, and the dead links of live ones. all may be nil: there are no logs.
func (l Logs) sweepLinks(ctx context.Context, all *beneath.Dir, owned, live sets.Set[types.UID]) error {
	links, err := l.openLinks(false)
	if links == nil {
		return err
	}
	defer links.Close()
	names, err := links.Names()
	if err != nil {
		return fmt.Errorf("removing links to logs that are gone: %w", err)
	}
	var failed []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if filepath.Ext(name) != linkSuffix {
			continue
		}
		log, ok := l.logOf(links, name)
		if !ok || !owned.Has(log.uid) || live.Has(log.uid) && !log.superseded(all) {
			continue
		}
		if err := links.Remove(name); err != nil {
			failed = append(failed, fmt.Errorf("removing links to logs that are gone: %w", err))
		}
	}
	return errors.Join(failed...)
}

// target is the log that a link points to.
type target struct {
	uid  types.UID
	dir  string // of the container, below Dir
	name string
}

// logOf reads a link without following it; not ok for what is no link to a
// container's log.
func (l Logs) logOf(links *beneath.Dir, name string) (target, bool) {
	path, err := links.Readlink(name)
	if err != nil {
		return target{}, false
	}
	rel, err := filepath.Rel(l.Dir, path)
	if err != nil || !filepath.IsAbs(path) || !filepath.IsLocal(rel) {
		return target{}, false
	}
	parts := strings.Split(rel, "/")
	if len(parts) != 3 {
		return target{}, false
	}
	uid, ok := uidOf(parts[0])
	return target{uid: uid, dir: filepath.Join(parts[0], parts[1]), name: parts[2]}, ok
}

// superseded says that a log is gone for good: it is missing, and there is one
// of a later attempt. (While a log is rotated it is missing for a moment.)
func (t target) superseded(all *beneath.Dir) bool {
	attempt, ok := logs.AttemptOf(t.name)
	if all == nil || !ok {
		return false
	}
	if _, err := all.Mode(filepath.Join(t.dir, t.name)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	dir, err := all.Sub(t.dir)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Names()
	return err == nil && attempt < maxAttempt && nextAttempt(names) > attempt+1
}
