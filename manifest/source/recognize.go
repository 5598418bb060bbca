package source

import (
	"fmt"
	"slices"
	"time"
)

// settleDelay is how long a directory in the place of another one must be unchanged before
// the manifests that are missing from it are removed. Its manifests may be copied into it one
// after the other.
const settleDelay = 10 * time.Second

// placeError is the error for a directory from which manifests are missing although users may
// not have removed them, because it is not the directory that had them.
type placeError struct {
	path string
	// known reports whether podd has recorded the identity of the directory that had the
	// manifests. mounted reports whether that directory was a mount point and this one is not.
	known, mounted bool
	// unread is the field unread of the cache.
	unread bool
	// present is the number of manifests in the directory, missing the number of manifests
	// that it no longer contains.
	present, missing int
}

// settles reports whether podd accepts the directory when it has not changed for settleDelay.
func (e *placeError) settles() bool { return e.known && !e.mounted && e.present > 0 }

func (e *placeError) Error() string {
	why := "podd did not record which directory had its manifests"
	switch {
	case e.mounted:
		why = "the file system with its manifests is not mounted"
	case e.known:
		why = "it is not the directory from which its manifests were read"
	case e.unread:
		why = "podd cannot read the list of its manifests"
	}
	if e.present == 0 {
		return fmt.Sprintf("it is empty, and %s; restore the manifests, or stop their pods with: podd accept empty %s", why, e.path)
	}
	missing := fmt.Sprintf("%d of its manifests are missing", e.missing)
	if e.missing == 1 {
		missing = "1 of its manifests is missing"
	}
	remedy := fmt.Sprintf("restore them, or stop their pods with: podd accept empty %s", e.path)
	if e.settles() {
		remedy = fmt.Sprintf("podd stops their pods when the directory has not changed for %v, or with: podd accept empty %s", settleDelay, e.path)
	}
	return fmt.Sprintf("%s, and %s; %s", why, missing, remedy)
}

// settling is what a directory contained when it last changed.
type settling struct {
	id    identity
	files []found
	since time.Time // when podd first saw it so
}

// recognize returns a placeError if manifests are missing from a place that is not the
// directory which had them. Otherwise it returns nil and records a place with manifests:
//
//   - if a user accepts it, or no manifest is missing from it;
//   - if it is not the mount point of a filesystem that is not mounted, and has been unchanged
//     for settleDelay;
//   - if podd does not know which directory had the missing ones.
//
// If the cache cannot be read, manifests may be missing from an empty place. The same is true
// if the filesystem is not mounted: its identity is stored before the contents of its files,
// so the host may have stopped between the two.
func (f *follower) recognize(p *place, l *listing, there map[string]bool, now time.Time) *placeError {
	same, known := f.cache.isRecordedPlace(p.id)
	e := &placeError{
		path: f.path, known: known != nil, mounted: known != nil && known.Mount && !p.id.Mount,
		unread: f.cache.unread, present: len(there), missing: f.countMissing(there, p.id),
	}
	switch {
	case f.accepting:
		f.cache.accept(&p.id)
	case same:
		f.cache.setPlace(&p.id) // the number of its device may be another one since a reboot
	case e.present == 0 && (e.missing > 0 || e.unread || e.mounted):
		return e
	case e.present == 0:
	case e.known && e.missing > 0 && (e.mounted || !f.isSettled(p, l, now)):
		return e
	default:
		f.cache.setPlace(&p.id)
	}
	f.settling = settling{}
	return nil
}

// countMissing returns the number of files that are not there and that podd did not read from
// the directory with this identity.
func (f *follower) countMissing(there map[string]bool, id identity) int {
	n := 0
	for path, it := range f.files {
		hasContent := it.inUse != nil && hasObjects(it.inUse) || it.inUse == nil && f.cache.has(path)
		if hasContent && !there[path] && it.seenIn != id {
			n++
		}
	}
	return n
}

// isSettled reports whether the manifests in the place have been unchanged for settleDelay.
func (f *follower) isSettled(p *place, l *listing, now time.Time) bool {
	unchanged := f.settling.id == p.id && slices.EqualFunc(f.settling.files, l.files, func(a, b found) bool {
		return a.name == b.name && a.stamp == b.stamp
	})
	if !unchanged {
		f.settling = settling{p.id, l.files, now}
	}
	return now.Sub(f.settling.since) >= f.settleDelay
}
