package volume

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"podd/manifest"
)

// A GroupProgress is a report about a change of the group of a volume's files. podd creates such
// reports if the change takes long.
type GroupProgress struct {
	Pod *manifest.Pod
	// Path is the path of the volume. It begins with the UID of the pod if the volume is in the
	// directory of the pod.
	Path string
	// IsFirst reports whether this is the first report about the volume.
	IsFirst bool
	// Visited is the number of files and directories that were visited.
	Visited int64
}

// The first report is made after firstProgress, and each further report after progressInterval. A
// kubelet uses the same values.
const (
	firstProgress    = 30 * time.Second
	progressInterval = time.Minute
)

// watchGroupChange calls change. If change takes long, watchGroupChange calls OnGroupProgress. path
// is the path of the volume. change must add the number of visited files to its argument.
func (p *podDir) watchGroupChange(path string, change func(visited *atomic.Int64) error) error {
	var visited atomic.Int64
	if p.root.OnGroupProgress == nil {
		return change(&visited)
	}
	if rel, err := filepath.Rel(p.root.Root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	ctx, stop := context.WithCancel(context.Background())
	var watcher sync.WaitGroup
	watcher.Go(func() {
		g := GroupProgress{Pod: p.pod, Path: strings.ToValidUTF8(path, "\uFFFD"), IsFirst: true}
		for wait := firstProgress; ; wait = progressInterval {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			g.Visited = visited.Load()
			p.root.OnGroupProgress(g)
			g.IsFirst = false
		}
	})
	defer watcher.Wait()
	defer stop()
	return change(&visited)
}
