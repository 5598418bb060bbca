package reconcile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/runtime/logs"
)

// leftovers contains the log directories of pods: for each pod UID and each container, the number of
// attempts that have logs.
type leftovers struct {
	logs string

	mu                     sync.Mutex // guards all following fields
	attempts               map[types.UID]map[string]uint32
	removed, withoutCgroup []types.UID
}

var _ effect.LogsAndCgroups = (*leftovers)(nil)

func newLeftovers(logs string) *leftovers {
	return &leftovers{logs: logs, attempts: map[types.UID]map[string]uint32{}}
}

func (l *leftovers) NextAttempts(p *manifest.Pod) (map[string]uint32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]uint32{}
	for name, n := range l.attempts[p.UID] {
		out[name] = n
	}
	return out, nil
}

func (l *leftovers) MakeLogDirs(p *manifest.Pod, container string) error {
	return os.MkdirAll(filepath.Join(logs.Dir(l.logs, p.Key, p.UID), container), 0o755)
}

func (l *leftovers) HandleStart(p *manifest.Pod, container, _ string, attempt, _ uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempts[p.UID] == nil {
		l.attempts[p.UID] = map[string]uint32{}
	}
	l.attempts[p.UID][container] = attempt + 1
	return nil
}

func (l *leftovers) LastLines(context.Context, types.NamespacedName, types.UID, string, uint32) (string, error) {
	return "last words", nil
}

func (l *leftovers) RemoveCgroup(_ context.Context, uid types.UID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withoutCgroup = append(l.withoutCgroup, uid)
	return nil
}

func (l *leftovers) Remove(_ context.Context, _ types.NamespacedName, uid types.UID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.attempts, uid)
	l.removed = append(l.removed, uid)
	entries, err := os.ReadDir(l.logs)
	if os.IsNotExist(err) {
		return nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_"+string(uid)) {
			err = os.RemoveAll(filepath.Join(l.logs, e.Name()))
		}
	}
	return err
}
