package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/journal"
	"podd/reconcile/state"
	"podd/runtime"
)

// An Orphan is a pod directory that podd keeps although its pod is unknown.
type Orphan struct {
	UID    types.UID
	Path   string // path of the directory
	Reason string // why the directory is kept
}

// orphanState contains the pod directories without a valid journal.
type orphanState struct {
	// dirs are the directories that belong to no desired or observed pod, or whose pod podd cannot
	// determine yet. unreadableInUse are the directories of desired and observed pods with
	// unreadable journals.
	dirs, unreadableInUse []journal.Orphan

	problems []manifest.Problem                  // problems of pod directories
	toRemove []types.UID                         // orphans that a user requested to remove
	waiters  map[types.NamespacedName]chan error // channels on which calls of RemoveOrphan wait for their results
}

// An ownerKind describes the pod to which a directory without a valid journal belongs.
type ownerKind int

const (
	ownerNone    ownerKind = iota
	ownerUnknown           // podd can determine the pod only when all sources are read
	ownerDesired
	ownerObserved
	ownerForeign
)

// classifyOwner returns the ownerKind for a UID; ownerNone if no pod in desired or observed has the UID.
func classifyOwner(uid types.UID, desired map[types.NamespacedName]*manifest.Pod, observed map[types.NamespacedName]*runtime.Pod) ownerKind {
	for _, p := range desired {
		if p.UID == uid {
			return ownerDesired
		}
	}
	for _, p := range observed {
		if p == nil {
			continue
		}
		for i := range p.Incarnations {
			switch inc := &p.Incarnations[i]; {
			case inc.UID != uid:
			case inc.Foreign:
				return ownerForeign
			default:
				return ownerObserved
			}
		}
	}
	return ownerNone
}

// orphanKey returns the key of the worker that removes the directory of an unknown pod.
func orphanKey(uid types.UID) types.NamespacedName { return types.NamespacedName{Name: string(uid)} }

// knowsOwners reports whether every source was read and the runtime was observed. If so, a UID that
// is neither in a source nor in the runtime belongs to no pod.
func (r *Router) knowsOwners() bool {
	if !r.hasFullSnapshot || r.desired == nil {
		return false
	}
	for name := range r.o.SourceKinds {
		if !r.desired.Set.CompleteSources[name] {
			return false
		}
	}
	return true
}

// handleOrphans decides about each directory without a valid journal:
//
//   - If its pod is desired or observed, the worker of the pod manages the directory.
//   - If its pod belongs to another agent, or cannot be determined yet, the directory is kept.
//   - If it belongs to no pod, it is kept if it may contain data, and removed otherwise.
//
// Unreadable journals are always reported.
func (r *Router) handleOrphans(ctx context.Context) {
	if len(r.orphans.dirs) == 0 {
		return
	}
	var dirs []journal.Orphan
	for _, o := range r.orphans.dirs {
		switch r.ownerOf(o.UID) {
		case ownerDesired, ownerObserved:
			if o.ReadError != nil {
				r.orphans.unreadableInUse = append(r.orphans.unreadableInUse, o)
			}
		case ownerNone:
			if !o.MustKeep() {
				o = r.o.Journals.CheckData(ctx, o)
			}
			if o.MustKeep() {
				dirs = append(dirs, o)
			} else {
				r.removeOrphan(ctx, o.UID)
			}
		default:
			dirs = append(dirs, o)
		}
	}
	r.orphans.dirs = dirs
	r.reportOrphans()
}

// ownerOf returns which kind of pod owns the pod directory with the name uid. It returns ownerUnknown
// until the first set of desired pods was received and the runtime was observed. Before that, the UIDs
// of the desired pods on this node are not final. It returns ownerNone only if knowsOwners returns true.
func (r *Router) ownerOf(uid types.UID) ownerKind {
	if !r.hasFullSnapshot || r.desired == nil {
		return ownerUnknown
	}
	owner := classifyOwner(uid, r.desired.Set.Pods, r.observed)
	if owner == ownerNone && !r.knowsOwners() {
		return ownerUnknown
	}
	return owner
}

// removeOrphan starts a worker that removes the directory of an unknown pod.
func (r *Router) removeOrphan(ctx context.Context, uid types.UID) {
	key := orphanKey(uid)
	r.ensureEntry(ctx, key, []state.Record{{Key: key, UID: uid, HasVolumes: true}})
}

// describeUnreadable returns a message for each journal that cannot be read, by UID.
func describeUnreadable(s journal.Store, orphans []journal.Orphan) map[types.UID]string {
	messages := map[types.UID]string{}
	for _, o := range orphans {
		if o.ReadError != nil {
			messages[o.UID] = fmt.Sprintf("%s cannot be read: %v", filepath.Join(s.Dir(o.UID), journal.FileName), o.ReadError)
		}
	}
	return messages
}

// rereadUnreadable reads the unreadable journals of desired and observed pods again. If a user has
// repaired or removed a journal, rereadUnreadable informs the worker of the pod, because the worker
// may wait for a readable journal.
func (r *Router) rereadUnreadable() {
	if len(r.orphans.unreadableInUse) == 0 {
		return
	}
	r.orphans.unreadableInUse = slices.DeleteFunc(r.orphans.unreadableInUse, func(o journal.Orphan) bool {
		j, err := r.o.Journals.Read(o.UID)
		switch {
		case err == nil:
			r.postReread(state.JournalReread{UID: o.UID, Record: &j})
		case errors.Is(err, fs.ErrNotExist):
			r.postReread(state.JournalReread{UID: o.UID})
		default:
			return false
		}
		return true
	})
	r.reportOrphans()
}

// postReread sends reread, the result of another attempt to read a journal, to the worker of the
// desired pod with the UID of the journal.
func (r *Router) postReread(reread state.JournalReread) {
	for _, e := range r.entries {
		if e.memory.Order.Desired != nil && e.memory.Order.Desired.UID == reread.UID {
			r.postRequests(e, state.Requests{Reread: &reread})
		}
	}
}

// keptOrphans returns the directories that belong to no pod and that only a user may remove.
func (r *Router) keptOrphans() []journal.Orphan {
	return slices.DeleteFunc(slices.Clone(r.orphans.dirs), func(o journal.Orphan) bool { return !o.MustKeep() || r.ownerOf(o.UID) != ownerNone })
}

// undecidedOrphans returns the directories with unreadable journals whose pods belong to another
// agent or cannot be determined yet.
func (r *Router) undecidedOrphans() []journal.Orphan {
	return slices.DeleteFunc(slices.Clone(r.orphans.dirs), func(o journal.Orphan) bool {
		owner := r.ownerOf(o.UID)
		return o.ReadError == nil || owner != ownerUnknown && owner != ownerForeign
	})
}

// reportOrphans publishes the problems of pod directories if they changed, and logs new problems.
func (r *Router) reportOrphans() {
	problems := orphanProblems(r.o.Journals, r.keptOrphans(), r.undecidedOrphans(), r.orphans.unreadableInUse)
	if slices.Equal(problems, r.orphans.problems) {
		return
	}
	for _, p := range problems {
		if !slices.Contains(r.orphans.problems, p) {
			r.o.Log.Warn("a pod directory has no valid journal", "path", p.Path, "why", p.Message)
		}
	}
	r.orphans.problems, r.unpublished.hasState = problems, true
}

// maxNamesInMessage is the maximum number of directories or pods that one message names.
const maxNamesInMessage = 10

// orphanProblems returns one problem for each unreadable journal, and a single problem for all
// directories without a journal.
func orphanProblems(s journal.Store, orphans, undecided, inUse []journal.Orphan) []manifest.Problem {
	var problems []manifest.Problem
	warn := func(path, format string, args ...any) {
		problems = append(problems, manifest.Problem{Severity: manifest.Warning, Path: path, Message: fmt.Sprintf(format, args...)})
	}
	for _, o := range inUse {
		warn(filepath.Join(s.Dir(o.UID), journal.FileName), "the journal of a pod cannot be read: %v; podd uses the state that the runtime reports, and at the next change of the pod it renames this file to %s and writes a new journal; if the runtime lists no container of the pod and a container must not run twice, the pod waits until the journal is repaired or removed", o.ReadError, journal.FileName+journal.UnreadableSuffix)
	}
	for _, o := range undecided {
		warn(filepath.Join(s.Dir(o.UID), journal.FileName), "the journal cannot be read: %v; the directory is kept because podd has not read every source yet, or because its pod belongs to another agent; repair the journal and restart podd", o.ReadError)
	}
	var withoutJournal []string
	for _, o := range orphans {
		if o.ReadError == nil {
			withoutJournal = append(withoutJournal, string(o.UID))
			continue
		}
		warn(filepath.Join(s.Dir(o.UID), journal.FileName), "the journal cannot be read: %v; the directory is kept because it belongs to no known pod; repair the journal and restart podd, or remove the directory with its data: podd orphans rm %s", o.ReadError, o.UID)
	}
	if len(withoutJournal) > 0 {
		list := strings.Join(withoutJournal[:min(len(withoutJournal), maxNamesInMessage)], ", ")
		if n := len(withoutJournal) - maxNamesInMessage; n > 0 {
			list += fmt.Sprintf(" and %d more", n)
		}
		warn(s.Root, "podd keeps pod directories that have no journal, but contain data, and belong to no known pod: %s; \"podd orphans\" lists them, and \"podd orphans rm\" removes them with their data", list)
	}
	return problems
}

// Orphans returns the directories that podd keeps although their pods are unknown. It returns an
// error until every source was read and the runtime was observed.
func (r *Router) Orphans(ctx context.Context) (orphans []Orphan, err error) {
	err = r.call(ctx, func() error {
		if !r.knowsOwners() {
			return errors.New("listing orphaned pod directories: podd has not read every source or has not observed the runtime yet; try again")
		}
		for _, o := range r.keptOrphans() {
			orphans = append(orphans, Orphan{UID: o.UID, Path: r.o.Journals.Dir(o.UID), Reason: o.Reason()})
		}
		return nil
	})
	return orphans, err
}

// UnknownUIDs returns the UIDs in uids that belong to no pod: no source, no sandbox or container in the
// runtime, and no worker has a pod with this UID. It returns an error until every source was read and the
// runtime was observed. Because the last observation of the runtime may be old, the runtime may have a pod
// that UnknownUIDs returns.
func (r *Router) UnknownUIDs(ctx context.Context, uids []types.UID) (unknown []types.UID, err error) {
	err = r.call(ctx, func() error {
		if !r.knowsOwners() {
			return errors.New("determining the UIDs of unknown pods: podd has not read every source or has not observed the runtime yet; try again")
		}
		inUse := r.uidsInUse()
		unknown = slices.DeleteFunc(slices.Clone(uids), func(uid types.UID) bool { return inUse[uid] || r.ownerOf(uid) != ownerNone })
		return nil
	})
	return unknown, err
}

// uidsInUse returns the UIDs of pods that are being deleted at their source, and of pods for which a worker
// is responsible. The runtime may no longer list these pods.
func (r *Router) uidsInUse() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, p := range r.desired.Set.TerminatingPods {
		uids[p.UID] = true
	}
	for _, e := range r.entries {
		for i := range e.pastRecords {
			uids[e.pastRecords[i].UID] = true
		}
		if p := e.memory.Order.Desired; p != nil {
			uids[p.UID] = true
		}
		if e.report == nil {
			continue
		}
		if e.report.Version != nil {
			uids[e.report.Version.UID] = true
		}
		for _, uid := range e.report.UIDs {
			uids[uid] = true
		}
	}
	return uids
}

// RemoveOrphan removes a directory that Orphans has returned, with its data. It returns when
// the directory was removed, when removing it has failed, or when ctx is done. After a
// failure podd continues to try. Only mounts that podd made are unmounted.
func (r *Router) RemoveOrphan(ctx context.Context, uid types.UID) error {
	result := make(chan error, 1)
	err := r.call(ctx, func() error {
		i := slices.IndexFunc(r.keptOrphans(), func(o journal.Orphan) bool { return o.UID == uid })
		if i < 0 {
			return fmt.Errorf("removing pod directory %s: the directory is not orphaned; \"podd orphans\" lists all orphaned directories", uid)
		}
		r.orphans.dirs = slices.DeleteFunc(r.orphans.dirs, func(o journal.Orphan) bool { return o.UID == uid })
		r.orphans.waiters[orphanKey(uid)] = result
		r.orphans.toRemove = append(r.orphans.toRemove, uid)
		r.reportOrphans()
		return nil
	})
	if err != nil {
		return err
	}
	return r.await(ctx, result, "removing pod directory "+string(uid))
}

// removeRequestedOrphans starts the removal of the directories for which RemoveOrphan was called.
func (r *Router) removeRequestedOrphans(ctx context.Context) {
	if len(r.orphans.toRemove) == 0 {
		return
	}
	for _, uid := range r.orphans.toRemove {
		r.removeOrphan(ctx, uid)
	}
	r.orphans.toRemove = nil
	r.postOrders()
}

// endRemoval sends the result err of a removal to the call of RemoveOrphan that waits for it, if
// there is one.
func (r *Router) endRemoval(key types.NamespacedName, err error) {
	result, isWaiting := r.orphans.waiters[key]
	if !isWaiting {
		return
	}
	result <- err
	delete(r.orphans.waiters, key)
}
