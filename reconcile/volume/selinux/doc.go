// Package selinux decides with which SELinux label the volumes of pods are mounted.
//
// With the mount option context, all files of a filesystem have one label, and the container runtime
// need not label each file. The rules are those of KEP-1710 and of the kubelet (pkg/volume/util/selinux.go
// and pkg/kubelet/volumemanager/cache). podd uses the option for a PersistentVolume if all of the
// following apply:
//
//   - The volume is a disk (iscsi or fc), or the CSIDriver of the volume has seLinuxMount: true.
//   - The pod has no seLinuxChangePolicy, or MountOption.
//   - The containers that mount the volume have seLinuxOptions, and these result in the same label.
//   - The feature gate SELinuxMount is enabled, or ReadWriteOncePod is the only access mode.
//
// All pods that use such a volume at the same time must need the same label, or all of them none.
//
// podd and the container runtime must compute the same label. Therefore Label computes the label of a
// container's files as github.com/opencontainers/selinux does, which containerd and CRI-O use. podd does
// not import this library, because a label is four words, and the library adds code for files, processes
// and keys.
//
// podd differs from the kubelet in the following cases:
//
//   - If seLinuxOptions contain no level, the runtime draws a level for each container. The kubelet mounts
//     the volume with another level, which it draws itself. podd mounts the volume without a label, and
//     the runtime labels the files.
//   - If containers need different labels, the kubelet refuses the pod even if it would mount the volume
//     without a label. podd refuses the pod only if it would mount the volume with a label.
//   - Labels that only differ in the notation of categories, such as c1,c0 and c0,c1, are equal.
package selinux
