// Package volume creates and removes pod directories and the volumes in them.
//
//	<root-dir>/claims/<namespace>/<name>/           a claim's directory; outlives its pods
//	<root-dir>/pods/<uid>/                          0750, all files of a pod
//	    volumes/kubernetes.io~empty-dir/<volume>/   emptyDir: a directory, a tmpfs or a hugetlbfs
//	    volumes/kubernetes.io~secret/<volume>/      0700 above it; a tmpfs: Secrets reach no disk
//	    volumes/kubernetes.io~nfs/<volume>/         nfs, a claim's too: mounted from a server
//	    volumes/kubernetes.io~csi/<volume>/mount    a CSI driver's, also below volumeDevices/
//	    volumes/podd~claim/<volume>                 a link with the name of the claim that the pod uses
//	    volumes/podd~claim/<volume>.path            a link to the local volume of that claim
//	    volumes/podd~ephemeral/<volume>/            an ephemeral volume's directory
//	    containers/<container>/<8 hex digits>       0666: termination messages
//	    etc-hosts                                   0644: /etc/hosts of the containers
//	    volume-subpaths/<volume>/<container>/<n>    a part of a volume, bind-mounted for one volumeMount
//	    journal.json …                              files of other packages; removed last
//
// State is read from the file system and the mount table, never from memory, so calls can
// be repeated at any time and after a crash. Containers can write below the volumes, so
// nothing there is opened through a symbolic link, and removal never crosses a mount point
// (package runtime/safepath).
//
// Access to a network file system hangs if its server does not respond. Such a volume is
// opened only for a subPath, with a timeout and one attempt at a time (see Attempts).
// mount.nfs and umount mount and unmount it, and are killed after a timeout (see NFS).
// k8s.io/mount-utils runs the same programs, but cannot kill them. File systems of CSI
// drivers may be network file systems, too; only the drivers mount and unmount them
// (package csi).
//
// To add a kind of volume, add a file with a type that implements kind, and an entry in
// kinds.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/volume/csi"
	"podd/runtime/safepath"
)

// A Dir is the directory of all pod directories. Its methods may be called concurrently for
// different pods. Those that change a pod's directory must not overlap for the same UID.
type Dir struct {
	// Root is the absolute path of <root-dir>/pods; required. Prepare creates it.
	Root string
	// Memory is the maximum size in bytes of memory-backed volumes of pods without a
	// memory limit: the memory that is allocatable to pods. 0 means no limit but the
	// kernel's.
	Memory int64
	// Claims is <root-dir>/claims, the directory of claims; "" means that claims are not
	// supported. See Claims.
	Claims string
	// NFS configures how NFS volumes are mounted. Only tests need a non-zero value.
	NFS NFS
	// CSI manages CSI volumes in the pod directories in Root; nil means that they are not
	// supported.
	CSI *csi.Drivers
	// Attempts has the attempts in progress to access volumes of servers. Copies of a Dir
	// share it. If it is nil, attempts do not know of each other.
	Attempts *Attempts
}

const (
	dirMode = 0o750
	// privateMode is the mode of directories with data of API objects.
	privateMode = 0o700
	// volumesDir and the directories below it have the kubelet's names, because backup
	// and monitoring tools depend on them.
	volumesDir = "volumes"
	// journal identifies the directory of a pod; it is removed last.
	journal = "journal.json"
)

// checkUID returns an error if a UID, which is untrusted, is not valid in paths.
func checkUID(uid types.UID) error {
	if !manifest.IsSafeUID(uid) {
		return fmt.Errorf("pod uid %q cannot be a directory name; it may have letters, digits and '-', at most 63", uid)
	}
	return nil
}

// make opens the directory of a pod and creates it if it is missing. The caller must close
// the result.
func (d Dir) make(uid types.UID) (*safepath.Dir, error) {
	if err := os.MkdirAll(d.Root, dirMode); err != nil {
		return nil, err
	}
	pods, err := safepath.Open(d.Root)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	if _, err := pods.Mkdir(string(uid), dirMode, -1); err != nil {
		return nil, err
	}
	return pods.Sub(string(uid))
}

// open opens Root. It returns nil and no error if Root does not exist.
func (d Dir) open() (*safepath.Dir, error) {
	pods, err := safepath.Open(d.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return pods, err
}
