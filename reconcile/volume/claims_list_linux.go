package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/beneath"
)

// Kept is a claim of which something is kept.
type Kept struct {
	types.NamespacedName
	// Path is where its data is, "" for that of a PersistentVolume, which is
	// Volume.
	Path, Volume string
	// Users are the pods that use it, by the directories they have.
	Users []types.UID
}

// List tells what is kept, by namespace and name. pods are the directories of
// all pods that may use claims.
func (c Claims) List(pods ...string) ([]Kept, error) {
	namespaces, err := beneath.Names(filepath.Join(c.Root, boundDir))
	if err != nil {
		return nil, fmt.Errorf("looking for claims: %w", err)
	}
	users, err := usersOf(pods)
	if err != nil {
		return nil, fmt.Errorf("looking who uses claims: %w", err)
	}
	var all []Kept
	for _, namespace := range namespaces {
		claims, err := beneath.Names(filepath.Join(c.Root, boundDir, namespace))
		if err != nil {
			return nil, fmt.Errorf("looking for claims: %w", err)
		}
		for _, name := range claims {
			k := Kept{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, Path: filepath.Join(c.Root, namespace, name)}
			text, err := os.Readlink(filepath.Join(c.Root, boundDir, namespace, name))
			if err != nil {
				continue // going
			}
			if volume := parseRecord(text).volume; volume != unbound {
				k.Path, k.Volume = "", volume
			}
			k.Users = users[k.NamespacedName]
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Kept are the claims whose data is in a directory here.
func (c Claims) Kept() (map[types.NamespacedName]bool, error) {
	all, err := c.List()
	kept := map[types.NamespacedName]bool{}
	for _, k := range all {
		if k.Volume == "" {
			kept[k.NamespacedName] = true
		}
	}
	return kept, err
}

// ErrInUse is within the error of a removal: pods use the claim.
var ErrInUse = errors.New("pods use it")

// ErrNoClaim likewise: nothing is kept of it.
var ErrNoClaim = errors.New("nothing is kept of it; podd volume ls lists what is")

// ErrLeft likewise: the claim is removed, and something of an earlier one is not.
var ErrLeft = errors.New("the claim is removed, but not all that earlier removals left")

// Remove removes the data of a claim that no pod uses, and what it was bound to
// is forgotten. What a removal before left goes with it.
func (c Claims) Remove(ctx context.Context, name types.NamespacedName, pods ...string) error {
	dir, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("removing claim %s: %w", name, err)
	}
	defer dir.Close()
	kept, err := c.List(pods...)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(kept, func(k Kept) bool { return k.NamespacedName == name })
	switch {
	case at < 0:
		return fmt.Errorf("removing claim %s: %w", name, ErrNoClaim)
	case len(kept[at].Users) > 0:
		return fmt.Errorf("removing claim %s: %w", name, ErrInUse)
	}
	if err := c.remove(ctx, dir, name); err != nil {
		return fmt.Errorf("removing claim %s: %w", name, err)
	}
	return nil
}

// remove gives the lock on dir back once the data is away: it may be much.
func (c Claims) remove(ctx context.Context, dir *beneath.Dir, name types.NamespacedName) error {
	mounts, err := Dir{Root: c.Root}.mountsBelow(filepath.Join(name.Namespace, name.Name))
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is mounted in it; umount %s first", mounts[0].what, mounts[0].path)
	}
	away := fmt.Sprint(time.Now().UnixNano())
	removed, err := forget(dir, name, away)
	dir.Close()
	if err != nil {
		return err
	}
	defer removed.Close()
	if err := removed.RemoveAll(ctx, away); err != nil {
		return err
	}
	if err := removed.Empty(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrLeft, err)
	}
	return nil
}

// forget takes the data away under another name at first, so that a claim is
// there whole or not at all, and gives the directory of what is away.
func forget(dir *beneath.Dir, name types.NamespacedName, away string) (*beneath.Dir, error) {
	if _, err := dir.Mkdir(removedDir, dirMode, -1); err != nil {
		return nil, err
	}
	err := unix.Renameat(dir.Fd(), filepath.Join(name.Namespace, name.Name), dir.Fd(), filepath.Join(removedDir, away))
	if err != nil && err != unix.ENOENT {
		return nil, err
	}
	if err := dir.Remove(filepath.Join(boundDir, name.Namespace, name.Name)); err != nil {
		return nil, err
	}
	return dir.Sub(removedDir)
}

// usersOf has the pods that use each claim.
func usersOf(pods []string) (map[types.NamespacedName][]types.UID, error) {
	users := map[types.NamespacedName][]types.UID{}
	for _, root := range pods {
		uids, err := beneath.Names(root)
		if err != nil {
			return nil, err
		}
		for _, uid := range uids {
			dir := filepath.Join(root, uid, volumesDir, claimPlugin)
			links, err := beneath.Names(dir)
			if err != nil {
				return nil, err
			}
			for _, link := range links {
				text, _ := os.Readlink(filepath.Join(dir, link))
				namespace, name, isClaim := strings.Cut(text, "/")
				key := types.NamespacedName{Namespace: namespace, Name: name}
				if isClaim && !slices.Contains(users[key], types.UID(uid)) {
					users[key] = append(users[key], types.UID(uid))
				}
			}
		}
	}
	return users, nil
}
