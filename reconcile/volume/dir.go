// Package volume makes and removes pod directories, and the volumes in them.
//
//	<root-dir>/claims/<namespace>/<name>/           a claim's directory; outlives its pods
//	<root-dir>/pods/<uid>/                          0750, everything podd keeps of a pod
//	    volumes/kubernetes.io~empty-dir/<volume>/   emptyDir: a directory, a tmpfs or a hugetlbfs
//	    volumes/kubernetes.io~secret/<volume>/      0700 above it; a tmpfs: Secrets reach no disk
//	    volumes/kubernetes.io~nfs/<volume>/         nfs, a claim's too: mounted from a server
//	    volumes/kubernetes.io~csi/<volume>/mount    a CSI driver's, also below volumeDevices/
//	    volumes/podd~claim/<volume>                 a link that names the claim the pod uses
//	    volumes/podd~ephemeral/<volume>/            an ephemeral volume's directory
//	    containers/<container>/<8 hex digits>       0666: termination messages
//	    volume-subpaths/<volume>/<container>/<n>    a part of a volume, bind-mounted for one volumeMount
//	    journal.json …                              other packages'; removed last
//
// The machine is the truth: what is prepared is read from the file system and
// the mount table, never from memory, so a call may be repeated at any time
// and after any crash. Containers write below the volumes: nothing there is
// reached through a symbolic link, and removal never crosses a mount point
// (package runtime/beneath).
//
// What is mounted from a server hangs whoever looks at it once that is silent:
// nothing here opens such a volume but for a subPath, and that for a time only
// and one at a time (see Attempts). mount.nfs and umount do the rest, and are given
// up (see NFS). k8s.io/mount-utils
// runs the same programs, and has no way to end them. What is below the mounts of CSI
// drivers may be a server's, too; they alone mount and unmount it (package csi).
//
// A new kind of volume is a file with a type that implements kind, and a line
// in kinds.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/volume/csi"
	"podd/runtime/beneath"
)

// Dir is the directory of all pod directories. Methods may be called
// concurrently for different pods; those that change a pod's directory must
// not overlap for one UID.
type Dir struct {
	// Root is <root-dir>/pods; required, absolute. Prepare makes it.
	Root string
	// Memory bounds, in bytes, memory-backed volumes of pods without a limit
	// of their own: what the node lets pods have. Zero: all of the machine's.
	Memory int64
	// Claims is <root-dir>/claims, where the directories of claims are; "" serves
	// no claim. See Claims.
	Claims string
	// NFS is how volumes of servers are mounted; the zero value is right but for
	// tests.
	NFS NFS
	// CSI are the drivers that have volumes in pods, whose directories are in Root;
	// nil serves no such volume.
	CSI *csi.Drivers
	// Attempts are those under way at volumes whose servers are silent, of all
	// copies of a Dir; nil remembers none.
	Attempts *Attempts
}

const (
	dirMode = 0o750
	// privateMode is for what holds objects' data.
	privateMode = 0o700
	// volumesDir and what is below it are named as the kubelet names them:
	// backup and monitoring tools look there.
	volumesDir = "volumes"
	// journal is what makes a directory known as a pod's; it goes last.
	journal = "journal.json"
)

// checkUID guards every path: a UID is a user's text.
func checkUID(uid types.UID) error {
	if !manifest.SafeUID(uid) {
		return fmt.Errorf("pod uid %q cannot be a directory name; it may have letters, digits and '-', at most 63", uid)
	}
	return nil
}

// Path is where the directory of a pod is or would be.
func (d Dir) Path(uid types.UID) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	return filepath.Join(d.Root, string(uid)), nil
}

// make opens the directory of a pod, which it makes when missing. The caller
// closes it.
func (d Dir) make(uid types.UID) (*beneath.Dir, error) {
	if err := os.MkdirAll(d.Root, dirMode); err != nil {
		return nil, err
	}
	pods, err := beneath.Open(d.Root)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	if _, err := pods.Mkdir(string(uid), dirMode, -1); err != nil {
		return nil, err
	}
	return pods.Sub(string(uid))
}

// open opens Root; nil without an error when there is none yet.
func (d Dir) open() (*beneath.Dir, error) {
	pods, err := beneath.Open(d.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return pods, err
}
