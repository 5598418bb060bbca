package claim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime/safepath"
)

// A Store is the directory <root-dir>/claims:
//
//	<namespace>/<name>/          the data of a claim that podd keeps
//	.bound/<namespace>/<name>    a link with the owner and the binding of the claim
//	.removed/…                   data that is being removed
//
// A claim keeps its first binding. A PersistentVolume that is added, removed or changed
// with an edit must not replace the data of the claim.
//
// The directory is locked while a claim is acquired or removed. Volumes are not accessed
// while the lock is held, because the access may hang. Its methods may be called
// concurrently.
type Store struct{ Root string }

const boundDir, removedDir = ".bound", ".removed"

// unbound stands for podd's own directory in a record.
const unbound = "-"

// open creates the directory and locks it until the result is closed.
func (c Store) open(ctx context.Context) (*safepath.Dir, error) {
	if err := os.MkdirAll(c.Root, dirMode); err != nil {
		return nil, err
	}
	dir, err := safepath.Open(c.Root)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, dir); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// lockRetry is the interval of attempts to get the lock.
const lockRetry = 10 * time.Millisecond

func lock(ctx context.Context, dir *safepath.Dir) error {
	for {
		err := unix.Flock(dir.Fd(), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			return nil
		case unix.EWOULDBLOCK, unix.EINTR:
		default:
			return fmt.Errorf("locking %s: %w", dir.Path(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("locking %s: %w", dir.Path(), ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}

// A User is a pod volume that uses a claim.
type User struct {
	// Links is the open LinksDir of the pod, and Volume the name of the volume.
	Links  *safepath.Dir
	Volume string
	// Pods is the directory of all pod directories.
	Pods string
	// Mode and GID are the mode and the group of a new directory; -1: no group.
	Mode uint32
	GID  int
}

// Acquire records the binding of a claim and, in u.Links, that the pod uses the claim. It
// creates the directory of a claim that is not bound to a PersistentVolume. It returns an
// error if the claim has another owner or another binding, or if pods use its volume through
// another claim.
func (c Store) Acquire(ctx context.Context, claim *refs.Claim, u User) error {
	dir, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := c.Verify(claim); err != nil {
		return err
	}
	name := filepath.Join(claim.Namespace, claim.Name)
	// The link is created first, so that a claim that a pod may use is not removed.
	if have, err := u.Links.Readlink(u.Volume); err != nil || have != name {
		// Only new users are checked, so that a pod keeps a volume that it has.
		if err := c.CheckExclusive(claim, u.Pods, nil); err != nil {
			return err
		}
		if err := u.Links.Remove(u.Volume); err != nil {
			return err
		}
		if err := unix.Symlinkat(name, u.Links.Fd(), u.Volume); err != nil {
			return err
		}
	}
	if err := record(dir, claim); err != nil || claim.Volume != nil {
		return err
	}
	if _, err := dir.Mkdir(claim.Namespace, dirMode, -1); err != nil {
		return err
	}
	_, err = dir.Mkdir(name, u.Mode, u.GID)
	return err
}

// Verify returns an error if the record of a claim has another owner or another binding.
// It returns nil if there is no record.
func (c Store) Verify(claim *refs.Claim) error {
	have, err := os.Readlink(filepath.Join(c.Root, boundDir, claim.Namespace, claim.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was, is := parseRecord(have), bindingOf(claim)
	remove := fmt.Sprintf("; podd volume rm %s/%s removes what is there", claim.Namespace, claim.Name)
	switch {
	case was.owner != is.owner:
		return fmt.Errorf("claim %q is that of another source of manifests, whose data is for its own pods alone%s", claim.Name, remove)
	case was.volume == is.volume && was.path != "" && was.path != is.path:
		return fmt.Errorf("claim %q was bound to the PersistentVolume %q when that led to another path; write the former%s", claim.Name, is.volume, remove)
	case was.volume == is.volume:
		return nil
	case was.volume == unbound:
		return fmt.Errorf("claim %q has its data in a directory of podd's, and would now be bound to the PersistentVolume %q%s", claim.Name, is.volume, remove)
	case is.volume == unbound:
		return fmt.Errorf("claim %q was bound to the PersistentVolume %q, which no longer exists or no longer matches the claim; restore it%s", claim.Name, was.volume, remove)
	}
	return fmt.Errorf("claim %q was bound to the PersistentVolume %q, and would now be to %q%s", claim.Name, was.volume, is.volume, remove)
}

// CheckExclusive returns an error if pods, whose directories are in pods, use the volume of
// a claim through another claim, because a PersistentVolume belongs to one claim. The pods
// in ended are ignored.
func (c Store) CheckExclusive(claim *refs.Claim, pods string, ended []types.UID) error {
	if claim.Volume == nil {
		return nil
	}
	kept, err := c.List(pods)
	if err != nil {
		return err
	}
	is := bindingOf(claim)
	for _, k := range kept {
		gone := func(user types.UID) bool { return slices.Contains(ended, user) }
		if k.Volume != is.volume || len(slices.DeleteFunc(k.Users, gone)) == 0 || k.Namespace == claim.Namespace && k.Name == claim.Name {
			continue
		}
		text, err := os.Readlink(filepath.Join(c.Root, boundDir, k.Namespace, k.Name))
		if err == nil && parseRecord(text).path == is.path {
			return fmt.Errorf("the PersistentVolume %q of claim %q is the one that pods use through the claim %s; give each claim a volume of its own", is.volume, claim.Name, k.NamespacedName)
		}
	}
	return nil
}

// A binding is the target of a link in boundDir. path is a hash of the path of the volume;
// it is "" in bindings of older versions.
type binding struct{ owner, volume, path string }

func bindingOf(claim *refs.Claim) binding {
	b := binding{owner: claim.Owner, volume: unbound}
	if claim.Owner != manifest.KindFile { // a URL may be long or confidential
		b.owner = shortHash(claim.Owner)
	}
	if claim.Volume != nil {
		b.volume, b.path = claim.Volume.Name, shortHash(volumePath(claim.Volume))
	}
	return b
}

// volumePath returns the location of the data of a volume. Other fields of its source may
// change, because they do not change the data.
func volumePath(pv *v1.PersistentVolume) string {
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		return filepath.Clean(s.HostPath.Path)
	case s.Local != nil:
		return filepath.Clean(s.Local.Path)
	case s.NFS != nil:
		return s.NFS.Server + ":" + filepath.Clean(s.NFS.Path)
	}
	return ""
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (b binding) String() string {
	return strings.TrimSuffix(b.owner+" "+b.volume+" "+b.path, " ")
}

func parseRecord(text string) binding {
	owner, rest, _ := strings.Cut(text, " ")
	volume, path, _ := strings.Cut(rest, " ")
	return binding{owner, volume, path}
}

// record creates the link with the binding of a claim. An existing link was checked by
// Verify.
func record(dir *safepath.Dir, claim *refs.Claim) error {
	at := filepath.Join(boundDir, claim.Namespace)
	for _, d := range []string{boundDir, at} {
		if _, err := dir.Mkdir(d, dirMode, -1); err != nil {
			return err
		}
	}
	records, err := dir.Sub(at)
	if err != nil {
		return err
	}
	defer records.Close()
	err = unix.Symlinkat(bindingOf(claim).String(), records.Fd(), claim.Name)
	if err == unix.EEXIST {
		return nil
	}
	return err
}
