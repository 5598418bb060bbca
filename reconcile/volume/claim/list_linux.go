package claim

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

	"podd/manifest/order"
	"podd/reconcile/volume/mounts"
	"podd/runtime/safepath"
)

// An Entry describes a claim that has data or a binding in a Store.
type Entry struct {
	types.NamespacedName
	// Path is the path of the claim's directory. It is "" if the claim is bound to a
	// PersistentVolume. In that case Volume is the name of the PersistentVolume, otherwise "".
	Path, Volume string
	// Users contains the pods that use the claim according to their directories.
	Users []types.UID
}

// List returns the claims, sorted by namespace and name. Each element of pods is the path of a
// directory that contains the pod directories of one podd. List searches these directories for the
// users of claims.
func (c Store) List(pods ...string) ([]Entry, error) {
	namespaces, err := safepath.Names(filepath.Join(c.Root, boundDir))
	if err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	users, err := claimUsers(pods)
	if err != nil {
		return nil, fmt.Errorf("listing the users of claims: %w", err)
	}
	var entries []Entry
	for _, namespace := range namespaces {
		claims, err := safepath.Names(filepath.Join(c.Root, boundDir, namespace))
		if err != nil {
			return nil, fmt.Errorf("listing claims: %w", err)
		}
		for _, name := range claims {
			e := Entry{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, Path: filepath.Join(c.Root, namespace, name)}
			text, err := os.Readlink(filepath.Join(c.Root, boundDir, namespace, name))
			if err != nil {
				continue // omit the claim, because it is being removed
			}
			if volume := parseBinding(text).volume; volume != storedByPodd {
				e.Path, e.Volume = "", volume
			}
			e.Users = users[e.NamespacedName]
			entries = append(entries, e)
		}
	}
	order.Slice(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return entries, nil
}

// ClaimsWithData returns the set of claims with data in a directory of the Store.
func (c Store) ClaimsWithData() (map[types.NamespacedName]bool, error) {
	entries, err := c.List()
	withData := map[types.NamespacedName]bool{}
	for _, e := range entries {
		if e.Volume == "" {
			withData[e.NamespacedName] = true
		}
	}
	return withData, err
}

// ErrInUse is wrapped by the error of Remove if pods use the claim.
var ErrInUse = errors.New("pods use the claim")

// ErrNotFound is wrapped by the error of Remove if the claim does not exist.
var ErrNotFound = errors.New("claim not found; \"podd volume ls\" lists all claims")

// ErrLeftovers is wrapped by the error of Remove if the claim was removed, but data of an earlier
// claim could not be removed.
var ErrLeftovers = errors.New("the claim was removed, but the data of a claim that was removed earlier could not be removed")

// Remove removes the data and the binding of a claim that no pod uses. pods has the same meaning as
// in List. Remove also removes data that earlier, interrupted removals left behind.
func (c Store) Remove(ctx context.Context, name types.NamespacedName, pods ...string) error {
	dir, err := c.openLocked(ctx)
	if err != nil {
		return fmt.Errorf("removing claim %s: %w", name, err)
	}
	defer dir.Close()
	entries, err := c.List(pods...)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.NamespacedName == name })
	switch {
	case i < 0:
		return fmt.Errorf("removing claim %s: %w", name, ErrNotFound)
	case len(entries[i].Users) > 0:
		return fmt.Errorf("removing claim %s: %w", name, ErrInUse)
	}
	if err := c.remove(ctx, dir, name); err != nil {
		return fmt.Errorf("removing claim %s: %w", name, err)
	}
	return nil
}

// remove removes a claim. dir is the locked Root. remove unlocks dir after it has moved the data to
// trashDir, because the removal of the data may take long.
func (c Store) remove(ctx context.Context, dir *safepath.Dir, name types.NamespacedName) error {
	below, err := mounts.Below(c.Root, filepath.Join(name.Namespace, name.Name))
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("%s is mounted in the directory of the claim; unmount %s first", below[0].Description, below[0].Path)
	}
	trashName := fmt.Sprint(time.Now().UnixNano())
	trash, err := moveToTrash(dir, name, trashName)
	dir.Close()
	if err != nil {
		return err
	}
	defer trash.Close()
	if err := trash.RemoveAll(ctx, trashName); err != nil {
		return err
	}
	if err := trash.RemoveContents(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrLeftovers, err)
	}
	return nil
}

// moveToTrash moves the data of a claim to trashDir/trashName, so that the removal is atomic, and
// removes the binding. It returns the open trashDir.
func moveToTrash(dir *safepath.Dir, name types.NamespacedName, trashName string) (*safepath.Dir, error) {
	if _, err := dir.Mkdir(trashDir, dirMode, -1); err != nil {
		return nil, err
	}
	err := unix.Renameat(dir.Fd(), filepath.Join(name.Namespace, name.Name), dir.Fd(), filepath.Join(trashDir, trashName))
	if err != nil && err != unix.ENOENT {
		return nil, err
	}
	if err := dir.Remove(filepath.Join(boundDir, name.Namespace, name.Name)); err != nil {
		return nil, err
	}
	return dir.Sub(trashDir)
}

// claimUsers returns the pods that use each claim.
func claimUsers(pods []string) (map[types.NamespacedName][]types.UID, error) {
	users := map[types.NamespacedName][]types.UID{}
	for _, root := range pods {
		uids, err := safepath.Names(root)
		if err != nil {
			return nil, err
		}
		for _, uid := range uids {
			dir := filepath.Join(root, uid, LinksDir)
			links, err := safepath.Names(dir)
			if err != nil {
				return nil, err
			}
			for _, link := range links {
				text, _ := os.Readlink(filepath.Join(dir, link))
				namespace, name, isClaim := strings.Cut(text, "/")
				key := types.NamespacedName{Namespace: namespace, Name: name}
				isClaim = isClaim && !filepath.IsAbs(text)
				if isClaim && !slices.Contains(users[key], types.UID(uid)) {
					users[key] = append(users[key], types.UID(uid))
				}
			}
		}
	}
	return users, nil
}
