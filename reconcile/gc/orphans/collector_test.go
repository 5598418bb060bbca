package orphans

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A host is a node with logs, links and cgroups. It is a LogStore.
type host struct {
	mu sync.Mutex // guards all following fields

	logs, cgroups, known, dirs sets.Set[types.UID]
	running                    sets.Set[types.UID] // pods in the runtime that UnknownUIDs does not know yet
	deadLinks                  sets.Set[string]
	busy                       sets.Set[types.UID] // cgroups that cannot be removed
	mounted                    sets.Set[types.UID] // logs that cannot be removed
	isStarting                 bool
	logsErr, cgroupsErr        error // errors of ListUIDs and listCgroups
	removals                   []string
}

func (h *host) ListUIDs() (sets.Set[types.UID], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logs.Clone(), h.logsErr
}

func (h *host) Remove(_ context.Context, uids sets.Set[types.UID]) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, uid := range sets.List(uids) {
		h.removals = append(h.removals, "logs "+string(uid))
		if h.mounted.Has(uid) {
			err = errors.New("logs are mounted")
			continue
		}
		h.logs.Delete(uid)
	}
	return err
}

func (h *host) ListDeadLinks() (sets.Set[string], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadLinks.Clone(), nil
}

func (h *host) RemoveDeadLink(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removals = append(h.removals, "link "+name)
	h.deadLinks.Delete(name)
	return nil
}

func (h *host) removeCgroup(_ context.Context, uid types.UID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removals = append(h.removals, "cgroup "+string(uid))
	if h.busy.Has(uid) {
		return errors.New("processes remain")
	}
	h.cgroups.Delete(uid)
	return nil
}

func (h *host) unknownUIDs(_ context.Context, uids []types.UID) ([]types.UID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isStarting {
		return nil, errors.New("starting")
	}
	return slices.DeleteFunc(slices.Clone(uids), h.known.Has), nil
}

func (h *host) listPods(context.Context) (sets.Set[types.UID], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running.Clone(), nil
}

func (h *host) listCgroups() (sets.Set[types.UID], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cgroups.Clone(), h.cgroupsErr
}

func (h *host) hasDir(uid types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dirs.Has(uid)
}

// change calls f while the Collector does not use h.
func (h *host) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *host) options(log *bytes.Buffer) Options {
	return Options{
		UnknownUIDs: h.unknownUIDs, ListPods: h.listPods, HasDir: h.hasDir, Logs: h,
		ListCgroups: h.listCgroups, RemoveCgroup: h.removeCgroup,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

func uids(all ...types.UID) sets.Set[types.UID] { return sets.New(all...) }

// TestCollector checks that leftovers are removed only if their pods are unknown in two rounds, that the
// logs remain until the cgroup is removed, and that a repeated failure is logged once.
func TestCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{
			logs: uids("dir", "known", "new", "old"), cgroups: uids("busy", "dir", "known", "old"), known: uids("known"), dirs: uids("dir"),
			deadLinks: sets.New("docker.log"), busy: uids("busy"), mounted: uids("mounted"), isStarting: true,
		}
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- New(h.options(&log)).Run(ctx) }()
		expect := func(name string, after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			h.change(func() {
				if !slices.Equal(h.removals, want) {
					t.Errorf("%s: got removals %q, want %q", name, h.removals, want)
				}
				h.removals = nil
			})
		}
		expect("podd is starting", 10*time.Minute+time.Second)
		h.change(func() { h.isStarting = false })
		expect("first round", confirmInterval)
		h.change(func() {
			h.known.Insert("new") // another program has created its sandbox
			h.logs.Insert("busy", "mounted")
		})
		expect("second round", confirmInterval, "cgroup busy", "cgroup old", "logs old", "link docker.log")
		h.change(func() { h.busy.Delete("busy") })
		expect("third round", confirmInterval, "cgroup busy", "logs busy", "logs mounted")
		expect("fourth round", confirmInterval, "logs mounted")
		h.change(func() {
			h.mounted.Delete("mounted")
			h.dirs.Insert("mounted") // a new pod has the same UID
		})
		expect("pod directory exists", confirmInterval)
		h.change(func() { h.dirs.Delete("mounted") })
		expect("after nothing was unknown", interval)
		expect("confirmed again", confirmInterval, "logs mounted")
		expect("no leftovers", 10*time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want none", err)
		}
		if want := uids("dir", "known", "new"); !h.logs.Equal(want) || !h.cgroups.Equal(uids("dir", "known")) {
			t.Errorf("got remaining logs %q and cgroups %q, want %q, and dir and known", sets.List(h.logs), sets.List(h.cgroups), sets.List(want))
		}
		for _, want := range []string{
			`msg="removed the cgroup of a pod that does not exist" uid=old`, `msg="removed the logs of a pod that does not exist" uid=old`,
			`msg="removed the dead link to a container's log" link=docker.log`, `msg="removing the cgroup of a pod that does not exist failed; trying again later" uid=busy err="processes remain"`,
			`msg="removing the logs of pods that do not exist failed; trying again later" err="logs are mounted"`,
		} {
			if got := strings.Count(log.String(), want); got != 1 {
				t.Errorf("got %d messages with %q, want one:\n%s", got, want, log.String())
			}
		}
	})
}

// TestCollector_NoCgroups checks that no cgroup is removed if podd does not manage the cgroups of pods.
func TestCollector_NoCgroups(t *testing.T) {
	h := &host{logs: uids("old"), cgroups: uids("old"), known: uids(), dirs: uids()}
	var log bytes.Buffer
	o := h.options(&log)
	o.ListCgroups, o.RemoveCgroup = nil, nil
	c := New(o)
	c.collect(t.Context())
	c.collect(t.Context())
	if want := []string{"logs old"}; !slices.Equal(h.removals, want) {
		t.Errorf("got removals %q, want %q", h.removals, want)
	}
}

// TestCollector_NewPod checks that a cgroup is kept if a new pod with the same UID gets a directory while
// other cgroups are removed.
func TestCollector_NewPod(t *testing.T) {
	h := &host{logs: uids("b"), cgroups: uids("a", "b"), known: uids(), dirs: uids()}
	var log bytes.Buffer
	o := h.options(&log)
	o.RemoveCgroup = func(ctx context.Context, uid types.UID) error {
		h.change(func() { h.dirs.Insert("b") })
		return h.removeCgroup(ctx, uid)
	}
	c := New(o)
	c.collect(t.Context())
	c.collect(t.Context())
	if want := []string{"cgroup a"}; !slices.Equal(h.removals, want) {
		t.Errorf("got removals %q, want %q", h.removals, want)
	}
}

// TestCollector_StaleSnapshot checks that the leftovers of a pod in the runtime are kept if UnknownUIDs does
// not know the pod yet. While the pods in the runtime cannot be listed, all leftovers must be kept.
func TestCollector_StaleSnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		list func() (sets.Set[types.UID], error) // nil means that the list does not return
		want []string
	}{
		"pod in the runtime": {
			list: func() (sets.Set[types.UID], error) { return uids("new"), nil },
			want: []string{"cgroup old", "logs old"},
		},
		"failed list": {list: func() (sets.Set[types.UID], error) { return nil, errors.New("the runtime is unreachable") }},
		"slow list":   {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &host{logs: uids("new", "old"), cgroups: uids("new", "old"), known: uids(), dirs: uids()}
				var log bytes.Buffer
				o := h.options(&log)
				o.ListPods = func(ctx context.Context) (sets.Set[types.UID], error) {
					if test.list != nil {
						return test.list()
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}
				c := New(o)
				for range 3 {
					c.collect(t.Context())
				}
				if !slices.Equal(h.removals, test.want) {
					t.Errorf("got removals %q, want %q", h.removals, test.want)
				}
				wantMessages := 0
				if len(test.want) == 0 {
					wantMessages = 1
				}
				if got := strings.Count(log.String(), "listing the pods in the runtime failed"); got != wantMessages {
					t.Errorf("got %d messages about failed lists, want %d:\n%s", got, wantMessages, log.String())
				}
			})
		})
	}
}

// TestCollector_NewInRuntime checks that a pod must be unknown twice again after the runtime has listed it.
func TestCollector_NewInRuntime(t *testing.T) {
	h := &host{logs: uids("a"), known: uids(), dirs: uids()}
	var log bytes.Buffer
	c := New(h.options(&log))
	for i, running := range []sets.Set[types.UID]{uids(), uids("a"), uids()} {
		h.running = running
		if c.collect(t.Context()); len(h.removals) > 0 {
			t.Errorf("round %d: got removals %q, want none", i+1, h.removals)
		}
	}
	c.collect(t.Context())
	if want := []string{"logs a"}; !slices.Equal(h.removals, want) {
		t.Errorf("after the pod was unknown twice: got removals %q, want %q", h.removals, want)
	}
}

// TestCollector_FailedCgroupList checks that logs are kept while the cgroups cannot be listed, because
// processes that write the logs may run.
func TestCollector_FailedCgroupList(t *testing.T) {
	h := &host{logs: uids("a"), cgroups: uids("b"), known: uids(), dirs: uids(), cgroupsErr: errors.New("input/output error")}
	var log bytes.Buffer
	c := New(h.options(&log))
	expect := func(name string, want ...string) {
		t.Helper()
		c.collect(t.Context())
		if !slices.Equal(h.removals, want) {
			t.Errorf("%s: got removals %q, want %q", name, h.removals, want)
		}
		h.removals = nil
	}
	expect("first round")
	expect("second round", "cgroup b")
	h.cgroupsErr = nil
	expect("after the cgroups were listed", "logs a")
}

// TestCollector_LastingListFailure checks that a failure to list the logs is logged once while it lasts,
// and again if it returns.
func TestCollector_LastingListFailure(t *testing.T) {
	failure := errors.New("input/output error")
	h := &host{known: uids(), dirs: uids()}
	var log bytes.Buffer
	c := New(h.options(&log))
	for i, round := range []struct {
		err  error
		want int // number of messages
	}{{failure, 1}, {failure, 1}, {nil, 1}, {failure, 2}, {failure, 2}} {
		h.logsErr = round.err
		if next := c.collect(t.Context()); next != interval {
			t.Errorf("round %d: got the next round in %s, want %s", i+1, next, interval)
		}
		if got := strings.Count(log.String(), `err="input/output error"`); got != round.want {
			t.Errorf("round %d: got %d messages about the failure, want %d:\n%s", i+1, got, round.want, log.String())
		}
	}
}
