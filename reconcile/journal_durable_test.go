package reconcile

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
)

// recordedDisk replaces the file system. It keeps the last journal of each pod and fails
// the test if a journal that must survive a power cut is replaced without a sync.
type recordedDisk struct {
	t       *rapid.T
	fails   bool
	content map[string]journal
	synced  int // writes that waited for the disk
	lazy    int // writes that did not
}

func (d *recordedDisk) replace(dir string, data []byte, durable bool) error {
	var next journal
	if err := json.Unmarshal(data, &next); err != nil {
		d.t.Fatal(err)
	}
	before := d.content[dir]
	if !durable && (next.Finished != nil || before.Finished != nil) {
		d.t.Fatalf("written without a sync: finished before %v, now %v", before.Finished != nil, next.Finished != nil)
	}
	if !durable && len(next.Ephemeral)+len(before.Ephemeral) > 0 {
		d.t.Fatalf("written without a sync: ephemeral containers before %d, now %d", len(before.Ephemeral), len(next.Ephemeral))
	}
	if d.fails {
		return errDiskFull
	}
	if d.content[dir] = next; durable {
		d.synced++
	} else {
		d.lazy++
	}
	return nil
}

var errDiskFull = &json.UnsupportedValueError{Str: "no space left on device"}

// TestFinishedIsAlwaysSynced checks, for writes in any order and after any failures, that a
// journal with an end is on disk when its write returns, and so is the journal that
// replaces it.
func TestFinishedIsAlwaysSynced(t *testing.T) {
	root := t.TempDir()
	synced, lazy := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		disk := &recordedDisk{t: t, content: map[string]journal{}}
		versions := []*manifest.Pod{version("v1:a"), version("v1:b")}
		w, _ := bare(versions[0])
		w.key, w.hasObserved = versions[0].Key, true
		w.journals = Journals{Root: root, replace: disk.replace}
		step := journalSteps(t, w, disk, versions)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step[rapid.SampledFrom(stepNames).Draw(t, "step")]()
		}
		synced, lazy = synced+disk.synced, lazy+disk.lazy
	})
	if synced == 0 || lazy == 0 {
		t.Errorf("%d writes were synced and %d were not; want some of both", synced, lazy)
	}
}

var stepNames = []string{"finish", "release volumes", "a probe", "a hook", "an ending", "a size", "resume", "edit", "add", "made", "disk fails", "disk works", "retry"}

func version(hash string) *manifest.Pod {
	p := barePod("app")
	p.Key = types.NamespacedName{Namespace: "default", Name: "job"}
	p.Hash = hash
	return p
}

// journalSteps returns the ways in which a worker writes the journal of its pod.
func journalSteps(t *rapid.T, w *worker, disk *recordedDisk, versions []*manifest.Pod) map[string]func() {
	soon := func() { w.tryWriteJournal(w.in.Desired.UID, w.in.Desired.Hash) }
	return map[string]func(){
		"finish": func() {
			p := w.in.Desired
			d := plan.Decision{Finished: &plan.Finished{UID: p.UID, Hash: p.Hash, At: time.Now()}, RecordFirst: rapid.Bool().Draw(t, "first")}
			if w.commit(d) == nil {
				w.commitLate(d)
			}
		},
		"release volumes": func() { w.applyRemoval(effect.Result{Action: plan.ReleaseVolumes{UID: w.in.Desired.UID}}) },
		"a probe":         soon,
		"a hook":          func() { w.setPostStart("app", plan.Hook{Owed: true}) },
		"an ending":       func() { w.setEnding("c", plan.Termination{Why: "restart requested"}); soon() },
		"a size":          func() { w.recordSize("c", plan.Size{Value: "1"}) },
		"resume":          w.resumeAfterShutdown,
		"edit":            func() { w.setVersion(rapid.SampledFrom(versions).Draw(t, "version")); soon() },
		"add": func() {
			c := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "i:1"}}
			_ = w.add(addition{uid: w.in.Desired.UID, containers: []v1.EphemeralContainer{c}})
		},
		"made": func() {
			w.container("debug", func(h *plan.ContainerHistory) { h.Created = true })
			soon()
		},
		"disk fails": func() { disk.fails = true },
		"disk works": func() { disk.fails = false },
		"retry":      func() { w.retryWrites(time.Now().Add(time.Hour)) },
	}
}

// TestDurableWrite checks the code that recordedDisk replaces.
func TestDurableWrite(t *testing.T) {
	var got []bool
	s := Journals{Root: t.TempDir(), replace: func(dir string, _ []byte, durable bool) error {
		if filepath.Base(dir) != "u" {
			t.Errorf("written to %s", dir)
		}
		got = append(got, durable)
		return nil
	}}
	for _, durable := range []bool{true, false} {
		if err := s.write(journal{UID: "u"}, durable); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || !got[0] || got[1] {
		t.Errorf("got durable %v, want true and false", got)
	}
}
