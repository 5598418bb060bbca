package state

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/result"
)

// disk is the disk in TestWrite_Durable. It fails the test if a journal that must survive a power
// cut is replaced without a sync.
type disk struct {
	t       *rapid.T
	fails   bool
	content map[types.UID]Record
	synced  int // number of writes with a sync
	lazy    int // number of writes without a sync
}

// write writes a journal; it returns an error if d.fails is set.
func (d *disk) write(w Write) error {
	next, before := w.Record, d.content[w.Record.UID]
	if !w.Durable && (next.Finished != nil || before.Finished != nil) {
		d.t.Fatalf("journal with the end of the pod before the write %v, after it %v: got a write without a sync, want one with a sync", before.Finished != nil, next.Finished != nil)
	}
	if !w.Durable && len(next.Ephemeral)+len(before.Ephemeral) > 0 {
		d.t.Fatalf("journal with %d ephemeral containers before the write and %d after it: got a write without a sync, want one with a sync", len(before.Ephemeral), len(next.Ephemeral))
	}
	if d.fails {
		return errors.New("no space left on device")
	}
	if d.content[next.UID] = next; w.Durable {
		d.synced++
	} else {
		d.lazy++
	}
	return nil
}

// store carries out the writes in the outputs of the last changes.
func (d *disk) store(m *memory) {
	for _, w := range m.writes {
		s, _ := m.ApplyWrite(w.Record.UID, w.Durable, d.write(w), false, time.Now())
		m.State = s
	}
	m.writes = nil
}

// TestWrite_Durable makes changes in any order, with any failures. It checks that a journal with
// the end of the pod is synced, and that the journal that replaces it is synced, too.
func TestWrite_Durable(t *testing.T) {
	synced, lazy := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := &disk{t: t, content: map[types.UID]Record{}}
		versions := []*manifest.Pod{versionOf("v1:a"), versionOf("v1:b")}
		m := newMemory(versions[0])
		m.HasObserved = true
		steps := journalSteps(t, m, d, versions)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			steps[rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(t, "step")]()
			d.store(m)
		}
		synced, lazy = synced+d.synced, lazy+d.lazy
	})
	if synced == 0 || lazy == 0 {
		t.Errorf("got %d writes with a sync and %d without, want at least one of each", synced, lazy)
	}
}

// versionOf returns a version of the pod "job" with this hash.
func versionOf(hash string) *manifest.Pod {
	p := podOf("app")
	p.Key = types.NamespacedName{Namespace: "default", Name: "job"}
	p.Hash = hash
	return p
}

// journalSteps returns the changes after which a worker writes the journal of its pod.
func journalSteps(t *rapid.T, m *memory, d *disk, versions []*manifest.Pod) map[string]func() {
	change := func(f func(*transition)) func() { return func() { m.change(f) } }
	write := func(t *transition) { t.addWrite(t.PlanInput.Desired.UID, t.PlanInput.Desired.Hash) }
	return map[string]func(){
		"finish": func() {
			p := m.PlanInput.Desired
			decision := plan.Decision{Finished: &plan.PodEnd{UID: p.UID, Hash: p.Hash, At: time.Now()}, RecordFirst: rapid.Bool().Draw(t, "first")}
			m.set(m.RecordDecision(decision, time.Now()))
			d.store(m)
			next, err := m.ConfirmEnd(decision)
			if m.State = next; err == nil {
				m.set(m.RecordUrgentEnd(decision, time.Now()))
			}
		},
		"release volumes": change(func(t *transition) {
			t.applyRemoval(result.Result{Action: plan.ReleaseResources{UID: t.PlanInput.Desired.UID}})
		}),
		"record a probe":       change(write),
		"record a hook":        change(func(t *transition) { t.setPostStart("app", plan.PostStartState{Due: true}) }),
		"record a termination": change(func(t *transition) { t.setTermination("c", plan.Termination{Why: "restart requested"}); write(t) }),
		"record a size":        change(func(t *transition) { t.recordSize("c", plan.Size{Value: "1"}) }),
		"resume":               func() { m.set(m.Resume(time.Now())) },
		"edit": func() {
			p := rapid.SampledFrom(versions).Draw(t, "version")
			m.change(func(t *transition) { t.setVersion(p); write(t) })
		},
		"add an ephemeral container": func() {
			c := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}}
			before := m.State
			next, out, err := m.AddEphemeral(m.PlanInput.Desired.UID, []v1.EphemeralContainer{c}, false, time.Now())
			m.set(next, out)
			d.store(m)
			if err == nil && len(out.Writes) > 0 && m.WriteError(m.PlanInput.Desired.UID) != nil {
				m.set(m.WithdrawEphemeral(before, time.Now()))
			}
		},
		"create the ephemeral container": change(func(t *transition) {
			t.changeContainer("debug", func(h *plan.ContainerHistory) { h.EphemeralCreated = true })
			write(t)
		}),
		"disk fails": func() { d.fails = true },
		"disk works": func() { d.fails = false },
		"retry":      func() { m.set(m.RetryWrites(time.Now().Add(time.Hour))) },
	}
}

// TestNextRetry checks that the worker wakes for the retry of a write, unless the directory is
// being removed. In that case the result of the removal wakes the worker.
func TestNextRetry(t *testing.T) {
	m := newMemory(podOf("app"))
	past, later := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	m.FailedWrites = withKey(m.FailedWrites, "u", FailedWrite{Failure: plan.Failure{Count: 1, RetryAt: past}})
	if at := m.NextRetry(later); !at.Equal(past) {
		t.Errorf("got the next write at %s, want %s", at, past)
	}
	remove := plan.RemoveDir{UID: "u"}
	m.PlanInput.InFlight = map[string]plan.Action{remove.Subject(): remove}
	if at := m.NextRetry(later); !at.Equal(later) {
		t.Errorf("during the removal: got the next write at %s, want none before %s", at, later)
	}
}
