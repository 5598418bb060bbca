package journal

import (
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
	"podd/reconcile/state"
)

// formatVersion is the version of the journals that podd writes. It must be incremented with each
// change of the format that an older podd would misread. podd rejects journals with a higher
// version.
const formatVersion = 1

// ReadAll returns the journals of all pod directories, by pod name, and the directories
// without a valid journal.
func (s Store) ReadAll() (journals map[types.NamespacedName][]state.Record, orphans []Orphan, err error) {
	entries, err := os.ReadDir(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing pod directories: %w", err)
	}
	journals = map[types.NamespacedName][]state.Record{}
	for _, e := range entries {
		uid := types.UID(e.Name())
		if !e.IsDir() || !manifest.IsSafeUID(uid) {
			continue
		}
		r, err := s.Read(uid)
		switch {
		case err == nil:
			journals[r.Key] = append(journals[r.Key], r)
		case errors.Is(err, fs.ErrNotExist):
			orphans = append(orphans, Orphan{UID: uid})
		default:
			orphans = append(orphans, Orphan{UID: uid, ReadError: err})
		}
	}
	return journals, orphans, nil
}

// Read returns the journal of a pod directory. The error is fs.ErrNotExist if there is no journal.
// Any other error means that there is a journal that cannot be used.
//
// An empty file counts as no journal, because a power failure can leave an empty file if the
// journal was not written durably (see Write). If podd has kept an unreadable journal under another
// name and there is no new journal, the error is not fs.ErrNotExist. If the first attempt to read
// the journal fails, Read tries once more, because podd may have overwritten the journal in the
// meantime.
func (s Store) Read(uid types.UID) (state.Record, error) {
	root, err := os.OpenRoot(s.Dir(uid))
	if err != nil {
		return state.Record{}, err
	}
	defer root.Close()
	r, err := readJournal(root, uid)
	if err != nil {
		r, err = readJournal(root, uid)
	}
	if err != nil {
		return state.Record{}, err
	}
	return r.WithMonotonicTimes(s.Now()), nil
}

// readJournal reads the journal in the pod directory root once; see Read.
func readJournal(root *os.Root, uid types.UID) (state.Record, error) {
	f, err := root.OpenFile(FileName, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return state.Record{}, replacedError(root, linkError(root, err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return state.Record{}, err
	}
	if !info.Mode().IsRegular() {
		return state.Record{}, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return state.Record{}, err
	}
	if len(data) == 0 {
		return state.Record{}, replacedError(root, errEmpty)
	}
	return decode(uid, data)
}

var (
	errNotRegular = errors.New("not a regular file")
	errReplaced   = errors.New("the file is missing; an earlier journal could not be read, and podd kept it as " + FileName + UnreadableSuffix)
	errEmpty      = fmt.Errorf("the file is empty: %w", fs.ErrNotExist)
)

// linkError converts err, the error of opening the journal. It returns errNotRegular if the journal
// is a symbolic link, even if the target does not exist. Otherwise it returns err.
func linkError(root *os.Root, err error) error {
	if info, lerr := root.Lstat(FileName); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errNotRegular
	}
	return err
}

// replacedError converts err, the error of reading the journal. It returns errReplaced if there is
// no journal, but podd has kept an unreadable journal under another name. Otherwise it returns err.
func replacedError(root *os.Root, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, lerr := root.Lstat(FileName + UnreadableSuffix); lerr == nil {
		return errReplaced
	}
	return err
}

// decode decodes the journal of the pod with this UID. It verifies the checksum, because a changed
// byte on the disk could change the name of the pod. podd could then remove the directory of a
// different pod. The journals of older versions of podd have no checksum.
func decode(uid types.UID, data []byte) (state.Record, error) {
	if len(data) > maxBytes {
		return state.Record{}, fmt.Errorf("more than %d bytes", maxBytes)
	}
	if err := checksum.CheckVersion(data, formatVersion); err != nil {
		return state.Record{}, err
	}
	if err := checksum.Verify(data); err != nil && !errors.Is(err, checksum.ErrMissing) {
		return state.Record{}, err
	}
	var r state.Record
	if err := json.Unmarshal(data, &r); err != nil {
		return state.Record{}, fmt.Errorf("invalid JSON: %w", err)
	}
	if r.UID != uid || r.Key.Name == "" {
		return state.Record{}, fmt.Errorf("the file is the journal of another pod, %q with UID %q", r.Key, r.UID)
	}
	return r, nil
}

// UnreadableSuffix is appended to the name of an unreadable journal that is kept when podd
// writes a new journal.
const UnreadableSuffix = ".unreadable"

// ReplaceUnreadable writes r in place of an unreadable journal. It keeps the unreadable journal
// under a name with UnreadableSuffix, unless a file with that name exists. If writing fails, Read
// still reports an unreadable journal. If durable is set, r is on disk when ReplaceUnreadable
// returns.
func (s Store) ReplaceUnreadable(r state.Record, durable bool) error {
	if err := s.keepUnreadable(r.UID); err != nil {
		return fmt.Errorf("writing the journal of pod %s: keeping the unreadable journal under another name: %w", r.Key, err)
	}
	return s.Write(r, durable)
}

// keepUnreadable adds a hard link with UnreadableSuffix to an unreadable journal, unless a file
// with that name exists. If the journal is a directory, or the file system does not support hard
// links, keepUnreadable renames the journal instead.
func (s Store) keepUnreadable(uid types.UID) error {
	root, err := os.OpenRoot(s.Dir(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	keptName := FileName + UnreadableSuffix
	if _, err := root.Lstat(keptName); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory and %s exists; remove or rename %[2]s", FileName, keptName)
		}
		return nil
	}
	if !info.IsDir() && root.Link(FileName, keptName) == nil {
		return nil
	}
	return root.Rename(FileName, keptName)
}

// Has reports whether there is a directory for the pod with this UID.
func (s Store) Has(uid types.UID) bool {
	if !manifest.IsSafeUID(uid) {
		return false
	}
	info, err := os.Lstat(s.Dir(uid))
	return err == nil && info.IsDir()
}

// Dir returns the directory of a pod.
func (s Store) Dir(uid types.UID) string { return filepath.Join(s.Root, string(uid)) }
