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
	"podd/runtime/flock"
	"podd/runtime/safepath"
)

// A Store is the directory <root-dir>/claims:
//
//	<namespace>/<name>/          the data of a claim that is bound to no PersistentVolume
//	.bound/<namespace>/<name>    a link with the owner and the binding of the claim
//	.removed/…                   data that is being removed
//
// A claim keeps its first binding, because its data must not be replaced if a user adds, removes or
// changes a PersistentVolume in a manifest.
//
// The directory is locked while a claim is acquired or removed. A Store does not access volumes
// while it has the lock, because the access may hang. The methods of a Store may be called
// concurrently.
type Store struct{ Root string }

const boundDir, trashDir = ".bound", ".removed"

// storedByPodd is the value of binding.volume for a claim with data in a directory of podd.
const storedByPodd = "-"

// openLocked opens Root and locks it until the caller closes the result. If Root does not exist,
// openLocked creates it. openLocked waits for the lock until ctx is done.
func (c Store) openLocked(ctx context.Context) (*safepath.Dir, error) {
	if err := os.MkdirAll(c.Root, dirMode); err != nil {
		return nil, err
	}
	dir, err := safepath.Open(c.Root)
	if err != nil {
		return nil, err
	}
	if err := flock.Lock(ctx, dir.Fd(), lockRetryInterval, nil); err != nil {
		dir.Close()
		return nil, fmt.Errorf("locking %s: %w", dir.Path(), err)
	}
	return dir, nil
}

// lockRetryInterval is the interval between attempts to lock the directory.
const lockRetryInterval = 10 * time.Millisecond

// A Consumer is a volume of a pod that uses a claim.
type Consumer struct {
	// Links is the open LinksDir of the pod, and Volume the name of the volume.
	Links  *safepath.Dir
	Volume string
	// Pods is the directory of all pod directories.
	Pods string
	// Mode and GID are the mode and the group ID of the claim's directory if Acquire creates the
	// directory. A GID of -1 means no group.
	Mode uint32
	GID  int
}

// Acquire records the binding of a claim, and records in u.Links that the pod uses the claim. If
// the claim is not bound to a PersistentVolume, Acquire creates the directory of the claim. It
// returns an error if another owner or binding is already recorded for the claim. It also returns
// an error if pods use the PersistentVolume of the claim through another claim.
func (c Store) Acquire(ctx context.Context, claim *refs.Claim, u Consumer) error {
	dir, err := c.openLocked(ctx)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := c.Verify(claim); err != nil {
		return err
	}
	name := filepath.Join(claim.Namespace, claim.Name)
	// Create the link first, so that the claim is not removed while the pod may use it.
	if usedClaim, err := u.Links.Readlink(u.Volume); err != nil || usedClaim != name {
		// Check only new users, so that a pod that uses the volume already can continue to use it.
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
	if err := writeBinding(dir, claim); err != nil || claim.Volume != nil {
		return err
	}
	if _, err := dir.Mkdir(claim.Namespace, dirMode, -1); err != nil {
		return err
	}
	_, err = dir.Mkdir(name, u.Mode, u.GID)
	return err
}

// Verify returns an error if another owner or another binding is recorded for a claim. It returns
// nil if nothing is recorded.
func (c Store) Verify(claim *refs.Claim) error {
	text, err := os.Readlink(filepath.Join(c.Root, boundDir, claim.Namespace, claim.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	recorded, desired := parseBinding(text), newBinding(claim)
	remove := fmt.Sprintf("; to delete the claim with its data, run \"podd volume rm %s/%s\"", claim.Namespace, claim.Name)
	switch {
	case recorded.owner != desired.owner:
		return fmt.Errorf("claim %q belongs to another manifest source, and only pods of that source can use it%s", claim.Name, remove)
	case recorded.volume == desired.volume && recorded.pathHash != "" && recorded.pathHash != desired.pathHash:
		return fmt.Errorf("claim %q is bound to the PersistentVolume %q, whose path or volumeHandle has changed; restore it%s", claim.Name, desired.volume, remove)
	case recorded.volume == desired.volume:
		return nil
	case recorded.volume == storedByPodd:
		return fmt.Errorf("claim %q has data in a directory of podd, so it cannot be bound to the PersistentVolume %q%s", claim.Name, desired.volume, remove)
	case desired.volume == storedByPodd:
		return fmt.Errorf("claim %q is bound to the PersistentVolume %q, which no longer exists or no longer matches the claim; restore the PersistentVolume%s", claim.Name, recorded.volume, remove)
	}
	return fmt.Errorf("claim %q is bound to the PersistentVolume %q, so it cannot be bound to %q%s", claim.Name, recorded.volume, desired.volume, remove)
}

// CheckExclusive returns an error if pods use the PersistentVolume of the given claim through
// another claim, because a PersistentVolume belongs to one claim only. pods is the directory of all
// pod directories. The pods in ignoredUIDs do not count as users.
func (c Store) CheckExclusive(claim *refs.Claim, pods string, ignoredUIDs []types.UID) error {
	if claim.Volume == nil {
		return nil
	}
	entries, err := c.List(pods)
	if err != nil {
		return err
	}
	desired := newBinding(claim)
	for _, e := range entries {
		isIgnored := func(user types.UID) bool { return slices.Contains(ignoredUIDs, user) }
		if e.Volume != desired.volume || len(slices.DeleteFunc(e.Users, isIgnored)) == 0 || e.Namespace == claim.Namespace && e.Name == claim.Name {
			continue
		}
		text, err := os.Readlink(filepath.Join(c.Root, boundDir, e.Namespace, e.Name))
		if err == nil && parseBinding(text).pathHash == desired.pathHash {
			return fmt.Errorf("pods use the PersistentVolume %q of claim %q through the claim %s; create a PersistentVolume for each claim", desired.volume, claim.Name, e.NamespacedName)
		}
	}
	return nil
}

// A binding is the recorded binding of a claim. It is stored as the target of a link in boundDir.
// owner is the source of the claim. volume is the name of the PersistentVolume, or storedByPodd.
// pathHash is a hash of the path of the PersistentVolume; "" in records of older versions.
type binding struct{ owner, volume, pathHash string }

func newBinding(claim *refs.Claim) binding {
	b := binding{owner: claim.Owner, volume: storedByPodd}
	if claim.Owner != manifest.KindFile { // hash a URL, because it may be long or confidential
		b.owner = shortHash(claim.Owner)
	}
	if claim.Volume != nil {
		b.volume, b.pathHash = claim.Volume.Name, shortHash(volumePath(claim.Volume))
	}
	return b
}

// volumePath returns a unique name of the data of a PersistentVolume, usually a path. Changes of
// other fields of the volume source are allowed, because they do not affect the data.
func volumePath(pv *v1.PersistentVolume) string {
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		return filepath.Clean(s.HostPath.Path)
	case s.Local != nil:
		return filepath.Clean(s.Local.Path)
	case s.NFS != nil:
		return s.NFS.Server + ":" + filepath.Clean(s.NFS.Path)
	case s.CSI != nil:
		return s.CSI.Driver + "^" + s.CSI.VolumeHandle
	case s.ISCSI != nil: // without the portals, which are only addresses of the target
		return fmt.Sprintf("%s:%d", s.ISCSI.IQN, s.ISCSI.Lun)
	case s.FC != nil && s.FC.Lun != nil:
		return fmt.Sprintf("%v:%d", s.FC.TargetWWNs, *s.FC.Lun)
	case s.FC != nil:
		return fmt.Sprint(s.FC.WWIDs)
	}
	return ""
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (b binding) String() string {
	return strings.TrimSuffix(b.owner+" "+b.volume+" "+b.pathHash, " ")
}

func parseBinding(text string) binding {
	owner, bindingText, _ := strings.Cut(text, " ")
	volume, path, _ := strings.Cut(bindingText, " ")
	return binding{owner, volume, path}
}

// writeBinding creates the link with the binding of a claim, unless the link exists. The caller
// must have checked an existing link with Verify.
func writeBinding(dir *safepath.Dir, claim *refs.Claim) error {
	boundNamespace := filepath.Join(boundDir, claim.Namespace)
	for _, d := range []string{boundDir, boundNamespace} {
		if _, err := dir.Mkdir(d, dirMode, -1); err != nil {
			return err
		}
	}
	records, err := dir.Sub(boundNamespace)
	if err != nil {
		return err
	}
	defer records.Close()
	err = unix.Symlinkat(newBinding(claim).String(), records.Fd(), claim.Name)
	if err == unix.EEXIST {
		return nil
	}
	return err
}
