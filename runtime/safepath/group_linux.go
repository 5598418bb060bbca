package safepath

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ChangeGroup changes the group of d and of everything below d within the mount, as fsGroup
// of a pod requires. The group can then read and write the files and enter the directories,
// and new files get the group.
//
// If onlyIfDifferent is true, ChangeGroup does nothing if d already has the group. ChangeGroup
// changes d last, so that the next call repeats the work of an interrupted call. excludedNames
// contains names of directories below d. ChangeGroup skips these directories and everything below
// them. It adds the number of visited files and directories to visitedCount.
func (d *Dir) ChangeGroup(ctx context.Context, gid int, onlyIfDifferent bool, visitedCount *atomic.Int64, excludedNames ...string) error {
	o := &groupChanger{gid: uint32(gid), visitedCount: visitedCount, excludedDirs: map[[2]uint64]bool{}}
	for _, name := range excludedNames {
		if err := o.addException(d, name); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(d.Fd(), &st); err != nil {
		return d.pathError("stat", "", err)
	}
	if onlyIfDifferent && o.hasGroup(&st) {
		return nil
	}
	if err := walkBelow(ctx, d, o, 0); err != nil {
		return err
	}
	if o.isIncomplete {
		return d.pathError("change the group of", "", errors.New("the directory contains directories that are nested too deeply, or too many directories"))
	}
	if err := o.setGroupAndMode(d.Fd(), &st); err != nil {
		return d.pathError("change the group of", "", err)
	}
	return nil
}

// A groupChanger is a visitor that changes the group of files.
type groupChanger struct {
	gid          uint32
	visitedCount *atomic.Int64
	isIncomplete bool               // whether a part of the tree was not visited
	excludedDirs map[[2]uint64]bool // directories to skip, by device and inode
}

// addException records a directory below d that the walk must skip. A directory that is missing or
// on another file system need not be recorded, because the walk does not visit it.
func (o *groupChanger) addException(d *Dir, name string) error {
	pathFD, err := openat(d.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_NO_XDEV)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return d.pathError("stat", name, err)
	}
	defer unix.Close(pathFD)
	var st unix.Stat_t
	if err := unix.Fstat(pathFD, &st); err != nil {
		return d.pathError("stat", name, err)
	}
	o.excludedDirs[deviceAndInode(&st)] = true
	return nil
}

// deviceAndInode returns the numbers of the device and of the inode, which together identify a file of
// the host.
func deviceAndInode(st *unix.Stat_t) [2]uint64 { return [2]uint64{uint64(st.Dev), st.Ino} }

// desiredMode returns the permissions that a file must have so that the group can use it.
func (o *groupChanger) desiredMode(st *unix.Stat_t) uint32 {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return 0o770 | unix.S_ISGID
	}
	return 0o660
}

// hasGroup reports whether the file has the group and the permissions for the group.
func (o *groupChanger) hasGroup(st *unix.Stat_t) bool {
	return st.Gid == o.gid && st.Mode&o.desiredMode(st) == o.desiredMode(st)
}

func (o *groupChanger) entry(fd int, name string, _ int) (dir bool, err error) {
	pathFD, err := openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_NO_XDEV)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EXDEV) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(pathFD)
	o.visitedCount.Add(1)
	var st unix.Stat_t
	if err := unix.Fstat(pathFD, &st); err != nil {
		return false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK: // change only the group, because chmod cannot change the mode of a symbolic link
		return false, unix.Fchownat(pathFD, "", -1, int(o.gid), unix.AT_EMPTY_PATH)
	case unix.S_IFDIR:
		if o.excludedDirs[deviceAndInode(&st)] {
			return false, nil
		}
		dir = true
	}
	return dir, o.setGroupAndMode(pathFD, &st)
}

// setGroupAndMode changes the group and mode of the file with a descriptor, which may be
// O_PATH. st is the file's present state.
func (o *groupChanger) setGroupAndMode(fd int, st *unix.Stat_t) error {
	if o.hasGroup(st) {
		return nil
	}
	if err := unix.Fchownat(fd, "", -1, int(o.gid), unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	// Chmod must follow chown, which may clear mode bits.
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o7777|o.desiredMode(st))
}

func (o *groupChanger) afterDir(int, string) error { return nil }

func (o *groupChanger) skipped(_ int, _ string, err error) error {
	if errors.Is(err, errTooDeep) || errors.Is(err, errTooMany) {
		o.isIncomplete = true
	}
	return nil
}
