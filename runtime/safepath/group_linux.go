package safepath

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Own changes the group of a tree within its mount (fsGroup). The group can then read and
// write the files and enter the directories, and new files in them get the group. If
// mismatch is true, nothing is done if d already has the group; d is changed last, so that
// an interrupted call is repeated. Own skips the directories below d with the names in
// except, and everything below them.
func (d *Dir) Own(ctx context.Context, gid int, mismatch bool, except ...string) error {
	o := &owner{gid: uint32(gid), except: map[[2]uint64]bool{}}
	for _, name := range except {
		if err := o.skip(d, name); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(d.Fd(), &st); err != nil {
		return d.pathError("stat", "", err)
	}
	if mismatch && o.has(&st) {
		return nil
	}
	if err := walkBelow(ctx, d, o, 0); err != nil {
		return err
	}
	if o.partial {
		return d.pathError("change the group of", "", errors.New("the tree is too deep or has too many directories at once"))
	}
	if err := o.changeGroup(d.Fd(), &st); err != nil {
		return d.pathError("change the group of", "", err)
	}
	return nil
}

type owner struct {
	gid     uint32
	partial bool
	except  map[[2]uint64]bool // by device and inode
}

// skip records a directory below d to skip. A missing one, or one on another file system,
// is not visited anyway.
func (o *owner) skip(d *Dir, name string) error {
	held, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_NO_XDEV)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return d.pathError("stat", name, err)
	}
	defer unix.Close(held)
	var st unix.Stat_t
	if err := unix.Fstat(held, &st); err != nil {
		return d.pathError("stat", name, err)
	}
	o.except[idOf(&st)] = true
	return nil
}

func idOf(st *unix.Stat_t) [2]uint64 { return [2]uint64{uint64(st.Dev), st.Ino} }

// mode returns the permissions that the group needs in addition.
func (o *owner) mode(st *unix.Stat_t) uint32 {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return 0o770 | unix.S_ISGID
	}
	return 0o660
}

func (o *owner) has(st *unix.Stat_t) bool {
	return st.Gid == o.gid && st.Mode&o.mode(st) == o.mode(st)
}

func (o *owner) entry(fd int, name string, _ int) (dir bool, err error) {
	held, err := openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_NO_XDEV)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EXDEV) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(held)
	var st unix.Stat_t
	if err := unix.Fstat(held, &st); err != nil {
		return false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK: // has an owner, but no mode
		return false, unix.Fchownat(held, "", -1, int(o.gid), unix.AT_EMPTY_PATH)
	case unix.S_IFDIR:
		if o.except[idOf(&st)] {
			return false, nil
		}
		dir = true
	}
	return dir, o.changeGroup(held, &st)
}

// changeGroup changes the file of a descriptor, which may be O_PATH.
func (o *owner) changeGroup(fd int, st *unix.Stat_t) error {
	if o.has(st) {
		return nil
	}
	if err := unix.Fchownat(fd, "", -1, int(o.gid), unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o7777|o.mode(st)) // after chown, which may clear bits
}

func (o *owner) left(int, string) error { return nil }

func (o *owner) skipped(_ int, _ string, err error) error {
	if errors.Is(err, errDeep) || errors.Is(err, errMany) {
		o.partial = true
	}
	return nil
}
