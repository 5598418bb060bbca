// Package disk attaches iSCSI and Fibre Channel disks to this node for the volumes of pods, mounts
// their filesystems, and detaches them when no pod uses them any more.
//
//	volume.Dir ─▶ Attach ─ link in the pod's directory
//	                     ─ iSCSI: iscsiadm logs in to the target, then the LUN is scanned
//	                     ─ Fibre Channel: a link in /dev/disk, and a scan of the adapters
//	                     ─ dm-multipath device, if multipathd created one
//	                     ─ mkfs if the disk is empty, otherwise fsck; then mount
//	           ─▶ Release ─ if no other pod has a link: unmount, flush, delete the SCSI devices;
//	                       after the last disk of an iSCSI target: log out
//
// The commands, their order and the rules for mkfs and fsck are those of the kubelet (pkg/volume/iscsi,
// pkg/volume/fc and k8s.io/mount-utils). The state is on the host, not in memory:
//
//	<root>/disks/<target>/target.json   what podd must undo: logins, scanned LUNs, an interface
//	<root>/disks/<target>/<disk>/mount  the mount point of the filesystem
//	<root>/disks/<target>/<disk>/volumes
//	                                    the names of the disk's volumes in volumesInUse of the Node
//	<root>/pods/<uid>/volumes/podd~disk/<volume>
//	                                    a link with <target>/<disk>: the pod uses the disk
//
// Sessions, devices and multipath maps are read from /sys, and mounts from the mount table. A link
// exists before podd logs in, and is removed after podd has logged out. Therefore, if podd is
// killed in between, the removal of the pod continues where it was interrupted.
//
// A filesystem may be mounted with an SELinux label (package selinux). If a pod needs another
// label, podd mounts the filesystem again, unless other pods use it. A pod that waits for another
// label has no link, so the disk is detached when the last pod with the first label is removed.
//
// podd does not log out of a session that existed before its own login. If the target of such a
// session already had a LUN before podd scanned for it, podd does not delete the LUN, either.
//
// All operations on one target are serialized by a lock on its directory. Programs and accesses to
// devices may hang if a target does not respond, so all of them have timeouts.
package disk
