// Package volume creates and removes pod directories and the volumes in them.
//
//	<root-dir>/claims/<namespace>/<name>/           a claim's directory; outlives its pods
//	<root-dir>/disks/                               attached iSCSI and Fibre Channel disks (package disk)
//	<root-dir>/pods/<uid>/                          0750, all files of a pod
//	    volumes/kubernetes.io~empty-dir/<volume>/   emptyDir: a directory, a tmpfs or a hugetlbfs
//	    volumes/kubernetes.io~secret/<volume>/      a tmpfs, so that no Secret is written to disk; parent 0700
//	    volumes/kubernetes.io~nfs/<volume>/         nfs, or a claim with an NFS PersistentVolume
//	    volumes/kubernetes.io~csi/<volume>/mount    a volume of a CSI driver; devices are in volumeDevices/
//	    volumes/kubernetes.io~iscsi/<volume>/       the filesystem on an iSCSI disk; kubernetes.io~fc: Fibre Channel
//	    volumes/podd~disk/<volume>                  a link with the name of the disk that the pod uses
//	    volumes/podd~claim/<volume>                 a link with the name of the claim that the pod uses
//	    volumes/podd~claim/<volume>.path            a link to the local volume of that claim
//	    volumes/podd~ephemeral/<volume>/            an ephemeral volume's directory
//	    containers/<container>/<8 hex digits>       0666: termination messages
//	    etc-hosts                                   0644: /etc/hosts of the containers
//	    volume-subpaths/<volume>/<container>/<n>    a subPath of a volume, bind-mounted for volumeMount n
//	    journal.json …                              files of other packages; removed last
//
// State is read from the file system and the mount table, never from memory, so calls can be
// repeated at any time and after a crash. Containers can write below the volumes, so nothing there
// is opened through a symbolic link, and removal never crosses a mount point (package
// runtime/safepath).
//
// Access to a network file system hangs if its server does not respond. So podd opens a network
// volume only for a subPath, with a timeout and one attempt at a time (see CallLimiter). podd
// mounts and unmounts NFS volumes with the programs mount.nfs and umount, and kills these programs
// after a timeout (see NFSOptions). k8s.io/mount-utils runs the same programs, but cannot kill
// them. Volumes of CSI drivers may be network file systems, too. Only the drivers mount and unmount
// them (package csi).
//
// To add a volume type, add a file with a Go type that implements volumeType, and an entry in
// volumeTypes.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/volume/csi"
	"podd/reconcile/volume/selinux"
	"podd/runtime/safepath"
)

// A Dir is the directory of all pod directories. Its methods may be called concurrently for
// different pods. Calls that change the directory of the same pod must not overlap.
type Dir struct {
	// Root is the absolute path of <root-dir>/pods; required. Prepare creates it.
	Root string
	// MemoryVolumeLimit is the maximum size in bytes of memory-backed volumes of pods without a
	// memory limit: the memory that is allocatable to pods. 0 means the default limit of
	// the kernel.
	MemoryVolumeLimit int64
	// ClaimsDir is <root-dir>/claims, the directory of claims; "" means that claims are not
	// supported. See package claim.
	ClaimsDir string
	// NFS configures how NFS volumes are mounted. The zero value is valid, and only tests use
	// another value.
	NFS NFSOptions
	// CSI manages the CSI volumes of pods in Root; nil means that CSI volumes are not
	// supported.
	CSI *csi.Drivers
	// SELinux determines the labels of mounts. The zero value is valid, and mounts have no labels.
	SELinux selinux.Policy
	// CallLimiter limits the accesses to network volumes. Copies of a Dir share this pointer. If it
	// is nil, several accesses to the same volume may hang at the same time.
	CallLimiter *CallLimiter
	// OnOperation is called after each operation on a volume. It must not block. It may be nil.
	OnOperation func(Operation)
	// OnLabel is called after mounting a volume with an SELinux label has succeeded, or has failed because of
	// the label. It must not block. It may be nil.
	OnLabel func(LabelResult)
	// OnGroupProgress is called while the change of the group of a volume takes long. It must not
	// block. It may be nil.
	OnGroupProgress func(GroupProgress)
}

const (
	dirMode = 0o750
	// privateMode is the mode of directories with data of API objects.
	privateMode = 0o700
	// volumesDir and the directories below it have the kubelet's names, because backup
	// and monitoring tools depend on them.
	volumesDir = "volumes"
	// journalName is the file that identifies the directory of a pod. It is removed last.
	journalName = "journal.json"
)

// checkUID returns an error if a UID, which is untrusted, is not valid in paths.
func checkUID(uid types.UID) error {
	if !manifest.IsSafeUID(uid) {
		return fmt.Errorf("pod uid %q cannot be a directory name; it may have at most 63 letters, digits and '-'", uid)
	}
	return nil
}

// openPodDir opens the directory of a pod and creates it if it is missing. The caller must close
// the result.
func (d Dir) openPodDir(uid types.UID) (*safepath.Dir, error) {
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

// openRoot opens Root. It returns nil and no error if Root does not exist.
func (d Dir) openRoot() (*safepath.Dir, error) {
	pods, err := safepath.Open(d.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return pods, err
}
