package volume

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
	"podd/runtime/beneath"
)

// Claims is the directory <root-dir>/claims:
//
//	<namespace>/<name>/          the data of a claim that podd keeps
//	.bound/<namespace>/<name>    a link that says whose claim it is and to what it is bound
//	.removed/…                   what is being removed
//
// A claim stays with what it was bound to first: a volume that comes, goes or
// leads elsewhere with an edit must not put other data, or none, in the place of
// what is there.
// Whoever begins to use or to remove a claim holds a lock on the directory, and
// reaches for nothing outside of it meanwhile: a volume may hang.
type Claims struct{ Root string }

const boundDir, removedDir = ".bound", ".removed"

// unbound stands for podd's own directory in a record.
const unbound = "-"

// open makes the directory and locks it; closing it ends that.
func (c Claims) open(ctx context.Context) (*beneath.Dir, error) {
	if err := os.MkdirAll(c.Root, dirMode); err != nil {
		return nil, err
	}
	dir, err := beneath.Open(c.Root)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, dir); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// lockWait is between two looks at a lock that another has.
const lockWait = 10 * time.Millisecond

func lock(ctx context.Context, dir *beneath.Dir) error {
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
		case <-time.After(lockWait):
		}
	}
}

// take makes what a claim needs of podd and notes in links that the pod uses it.
func (c Claims) take(ctx context.Context, claim *manifest.Claim, pods string, pod *v1.Pod, links *beneath.Dir, volume string) error {
	dir, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := c.verify(claim); err != nil {
		return err
	}
	name := filepath.Join(claim.Namespace, claim.Name)
	// The note comes first: no claim is removed that a pod may use.
	if have, err := links.Readlink(volume); err != nil || have != name {
		// Pods that have the volume already, of a version that asked for less, keep it.
		if err := c.alone(claim, pods, nil); err != nil {
			return err
		}
		if err := links.Remove(volume); err != nil {
			return err
		}
		if err := unix.Symlinkat(name, links.Fd(), volume); err != nil {
			return err
		}
	}
	if err := record(dir, claim); err != nil || claim.Volume != nil {
		return err
	}
	if _, err := dir.Mkdir(claim.Namespace, dirMode, -1); err != nil {
		return err
	}
	mode, gid := emptyDirMode(pod)
	_, err = dir.Mkdir(name, mode, gid)
	return err
}

// verify refuses a claim that is another's or was bound to something else.
func (c Claims) verify(claim *manifest.Claim) error {
	have, err := os.Readlink(filepath.Join(c.Root, boundDir, claim.Namespace, claim.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was, is := parseRecord(have), recordOf(claim)
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
		return fmt.Errorf("claim %q was bound to the PersistentVolume %q, which is not there or does not fit any more; bring it back%s", claim.Name, was.volume, remove)
	}
	return fmt.Errorf("claim %q was bound to the PersistentVolume %q, and would now be to %q%s", claim.Name, was.volume, is.volume, remove)
}

// alone refuses a volume that pods, whose directories are in pods, use through
// another claim, of another source: it is one claim's, as a PersistentVolume is.
// Pods that end before count for none.
func (c Claims) alone(claim *manifest.Claim, pods string, ended []types.UID) error {
	if claim.Volume == nil {
		return nil
	}
	kept, err := c.List(pods)
	if err != nil {
		return err
	}
	is := recordOf(claim)
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

// boundTo is a record. The path of a volume is a hash, and "" in the records of
// versions that kept none.
type boundTo struct{ owner, volume, path string }

func recordOf(claim *manifest.Claim) boundTo {
	b := boundTo{owner: claim.Owner, volume: unbound}
	if claim.Owner != manifest.KindFile { // a URL may be long, and is nobody's business
		b.owner = shortHash(claim.Owner)
	}
	if claim.Volume != nil {
		b.volume, b.path = claim.Volume.Name, shortHash(pathOf(claim.Volume))
	}
	return b
}

// pathOf is where the data of a volume is. All else of its source may change: it
// puts no other data there.
func pathOf(pv *v1.PersistentVolume) string {
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

func (b boundTo) String() string {
	return strings.TrimSuffix(b.owner+" "+b.volume+" "+b.path, " ")
}

func parseRecord(text string) boundTo {
	owner, rest, _ := strings.Cut(text, " ")
	volume, path, _ := strings.Cut(rest, " ")
	return boundTo{owner, volume, path}
}

// record remembers to what a claim is bound; one that is there was verified.
func record(dir *beneath.Dir, claim *manifest.Claim) error {
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
	err = unix.Symlinkat(recordOf(claim).String(), records.Fd(), claim.Name)
	if err == unix.EEXIST {
		return nil
	}
	return err
}
