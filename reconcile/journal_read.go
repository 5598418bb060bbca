package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/checksum"
)

// journalVersion is the version of the journals that podd writes. It is incremented with
// each change that makes an older podd misread a journal; an older podd then rejects it.
const journalVersion = 1

// orphan is a pod directory that does not name its pod.
type orphan struct {
	uid types.UID
	// unreadable is why its journal cannot be used; nil if it has none.
	unreadable error
	// data is why it is kept without a journal; "" if that is not known yet, or if it need
	// not be kept.
	data string
}

// kept reports whether only a user may remove o: its journal may record that a pod needs
// it, or its data may be another agent's.
func (o orphan) kept() bool { return o.unreadable != nil || o.data != "" }

// reason returns why o is an orphan.
func (o orphan) reason() string {
	if o.unreadable != nil {
		return "journal cannot be read: " + o.unreadable.Error()
	}
	return "no journal, " + o.data
}

// readAll returns the journals of all pod directories, by pod name, and the directories
// without a valid journal.
func (s Journals) readAll() (found map[types.NamespacedName][]journal, orphans []orphan, err error) {
	entries, err := os.ReadDir(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("looking for pod directories: %w", err)
	}
	found = map[types.NamespacedName][]journal{}
	for _, e := range entries {
		uid := types.UID(e.Name())
		if !e.IsDir() || !manifest.SafeUID(uid) {
			continue
		}
		j, err := s.read(uid)
		switch {
		case err == nil:
			found[j.Key] = append(found[j.Key], j)
		case errors.Is(err, fs.ErrNotExist):
			orphans = append(orphans, orphan{uid: uid})
		default:
			orphans = append(orphans, orphan{uid: uid, unreadable: err})
		}
	}
	return found, orphans, nil
}

// read returns the journal of a pod directory. If there is none, the error is
// fs.ErrNotExist; after any other error there is one that cannot be used. An empty file
// counts as none, because a power cut can leave one if a journal was replaced without
// waiting for the disk (see lasting). If an unreadable journal was set aside, the journal
// must be there.
func (s Journals) read(uid types.UID) (journal, error) {
	root, err := os.OpenRoot(s.path(uid))
	if err != nil {
		return journal{}, err
	}
	defer root.Close()
	f, err := root.OpenFile(journalName, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return journal{}, unlessKept(root, unlessLink(root, err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return journal{}, err
	}
	if !info.Mode().IsRegular() {
		return journal{}, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, journalLimit+1))
	if err != nil {
		return journal{}, err
	}
	if len(data) == 0 {
		return journal{}, unlessKept(root, errEmpty)
	}
	j, err := decodeJournal(uid, data)
	if err != nil {
		return journal{}, err
	}
	return j.anchored(s.clock()), nil
}

var (
	errNotRegular = errors.New("not a regular file")
	errReplaced   = errors.New("it is missing, and " + journalName + unreadableSuffix + " beside it could not be read earlier")
	errEmpty      = fmt.Errorf("the file is empty: %w", fs.ErrNotExist)
)

// unlessLink returns err, or errNotRegular if the journal is a symbolic link, which may be
// dangling.
func unlessLink(root *os.Root, err error) error {
	if info, lerr := root.Lstat(journalName); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errNotRegular
	}
	return err
}

// unlessKept returns err, or errReplaced if there is no journal although an unreadable one
// was to be replaced.
func unlessKept(root *os.Root, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, lerr := root.Lstat(journalName + unreadableSuffix); lerr == nil {
		return errReplaced
	}
	return err
}

// decodeJournal verifies the checksum because a byte that changed on the disk could turn a
// journal into that of another pod, and podd would remove that pod's directory. The journals of older
// versions of podd have no checksum.
func decodeJournal(uid types.UID, data []byte) (journal, error) {
	if len(data) > journalLimit {
		return journal{}, fmt.Errorf("more than %d bytes", journalLimit)
	}
	if err := checksum.CheckVersion(data, journalVersion); err != nil {
		return journal{}, err
	}
	if err := checksum.Verify(data); err != nil && !errors.Is(err, checksum.ErrMissing) {
		return journal{}, err
	}
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		return journal{}, fmt.Errorf("invalid JSON: %w", err)
	}
	if j.UID != uid || j.Key.Name == "" {
		return journal{}, fmt.Errorf("it is the journal of pod %q with UID %q", j.Key, j.UID)
	}
	return j, nil
}

// unreadableSuffix is appended to the name of an unreadable journal that podd kept when it
// wrote a new one.
const unreadableSuffix = ".unreadable"

// supersede replaces an unreadable journal by j, and keeps the unreadable one unless an
// earlier one is kept. If writing fails, the next read finds the journal unreadable again.
func (s Journals) supersede(j journal, durable bool) error {
	if err := s.setAside(j.UID); err != nil {
		return fmt.Errorf("remembering pod %s: keeping its unreadable journal: %w", j.Key, err)
	}
	return s.write(j, durable)
}

// setAside gives an unreadable journal a second name. If it is not a file, or the file
// system has no hard links, it is renamed.
func (s Journals) setAside(uid types.UID) error {
	root, err := os.OpenRoot(s.path(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(journalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	kept := journalName + unreadableSuffix
	if _, err := root.Lstat(kept); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory and %s exists; remove or rename it", journalName, kept)
		}
		return nil
	}
	if !info.IsDir() && root.Link(journalName, kept) == nil {
		return nil
	}
	return root.Rename(journalName, kept)
}

// checkData sets whether a directory without a journal must be kept. It must if that cannot
// be found out.
func (s Journals) checkData(ctx context.Context, o orphan) orphan {
	if o.unreadable != nil || s.HasData == nil {
		return o
	}
	switch has, err := s.HasData(ctx, o.uid); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		o.data = "and its volumes cannot be read: " + err.Error()
	case has:
		o.data = "and data in its volumes"
	}
	return o
}

// has reports whether a pod has a directory.
func (s Journals) has(uid types.UID) bool {
	if !manifest.SafeUID(uid) {
		return false
	}
	info, err := os.Lstat(s.path(uid))
	return err == nil && info.IsDir()
}

// path returns the directory of a pod.
func (s Journals) path(uid types.UID) string { return filepath.Join(s.Root, string(uid)) }
