package beneath

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Own gives a tree, within its mount, to a group: files may then be read and
// written by it, directories entered too, and what is made in them is its. With
// mismatch nothing is done where d itself is the group's already; it comes last,
// so that what was interrupted is done again.
func (d *Dir) Own(ctx context.Context, gid int, mismatch bool) error {
	o := &owner{gid: uint32(gid)}
	var st unix.Stat_t
	if err := unix.Fstat(d.Fd(), &st); err != nil {
		return d.pathError("look at", "", err)
	}
	if mismatch && o.has(&st) {
		return nil
	}
	if err := walkBelow(ctx, d, o); err != nil {
		return err
	}
	if o.partial {
		return d.pathError("give away", "", errors.New("the tree is too deep or has too many directories at once"))
	}
	if err := o.give(d.Fd(), &st); err != nil {
		return d.pathError("give away", "", err)
	}
	return nil
}

type owner struct {
	gid     uint32
	partial bool
}

// mode is what the group needs, in addition.
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
	case unix.S_IFLNK: // has an owner, too, and no mode
		return false, unix.Fchownat(held, "", -1, int(o.gid), unix.AT_EMPTY_PATH)
	case unix.S_IFDIR:
		dir = true
	}
	return dir, o.give(held, &st)
}

// give changes what a descriptor, be it only a hold, stands for.
func (o *owner) give(fd int, st *unix.Stat_t) error {
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
