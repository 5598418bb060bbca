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

	"podd/runtime/logs"
	"podd/runtime/safepath"
)

// sweepLinks removes links to the logs of the pods with UIDs in ownUIDs. If the UID of a pod is not
// in liveUIDs, it removes every link. Otherwise it removes a link only if isSuperseded returns true
// for its log. logsDir is the open directory l.Dir, or nil if l.Dir does not exist. sweepLinks adds
// errors to failed.
func (l Logs) sweepLinks(ctx context.Context, logsDir *safepath.Dir, ownUIDs, liveUIDs sets.Set[types.UID], failed failures) {
	err := l.eachLink(func(links *safepath.Dir, name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		log, ok := l.linkTarget(links, name)
		if !ok || !ownUIDs.Has(log.uid) || liveUIDs.Has(log.uid) && !log.isSuperseded(logsDir) {
			return nil
		}
		if err := links.Remove(name); err != nil {
			failed.add(log.uid, fmt.Errorf("removing a link to a removed log: %w", err))
		}
		return nil
	})
	if err != nil {
		failed.add(allPods, fmt.Errorf("removing links to removed logs: %w", err))
	}
}

// eachLink calls visit with the name of each file in LinkDir that has the suffix of a link, until visit
// returns an error, which eachLink returns. links is the open directory LinkDir. If LinkDir does not
// exist, eachLink does not call visit.
func (l Logs) eachLink(visit func(links *safepath.Dir, name string) error) error {
	links, err := l.openLinks(false)
	if links == nil {
		return err
	}
	defer links.Close()
	names, err := links.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if filepath.Ext(name) != linkSuffix {
			continue
		}
		if err := visit(links, name); err != nil {
			return err
		}
	}
	return nil
}

// A logTarget identifies the log to which a link points.
type logTarget struct {
	uid  types.UID
	dir  string // log directory of the container, relative to Logs.Dir
	name string // name of the log file
}

// linkTarget returns the target of a link. name is the name of the link in the directory links. ok
// is false if the link does not point to a container's log.
func (l Logs) linkTarget(links *safepath.Dir, name string) (target logTarget, ok bool) {
	path, err := links.Readlink(name)
	if err != nil {
		return logTarget{}, false
	}
	rel, err := filepath.Rel(l.Dir, path)
	if err != nil || !filepath.IsAbs(path) || !filepath.IsLocal(rel) {
		return logTarget{}, false
	}
	parts := strings.Split(rel, "/")
	if len(parts) != 3 {
		return logTarget{}, false
	}
	uid, ok := uidFromName(parts[0])
	return logTarget{uid: uid, dir: filepath.Join(parts[0], parts[1]), name: parts[2]}, ok
}

// isSuperseded reports whether the log does not exist and a log of a later attempt exists. A
// missing log alone does not prove that the log was removed, because a log is missing briefly
// during its rotation. logsDir is the directory Logs.Dir; nil if it does not exist.
func (t logTarget) isSuperseded(logsDir *safepath.Dir) bool {
	attempt, ok := logs.ParseAttempt(t.name)
	if logsDir == nil || !ok {
		return false
	}
	if _, err := logsDir.Mode(filepath.Join(t.dir, t.name)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	dir, err := logsDir.Sub(t.dir)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Names()
	return err == nil && attempt < maxAttempt && nextAttempt(names) > attempt+1
}
