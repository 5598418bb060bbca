// Package subpath opens a path inside a volume and bind-mounts it for one container
// (volumeMounts[].subPath). A container that changes the volume at the same time cannot redirect the
// mount to another path of the host (CVE-2017-1002101, CVE-2021-25741).
package subpath

// DirName is the directory of the bind mounts in a pod's directory, with the kubelet's name. It
// contains <volume>/<container>/<index of the volumeMount>.
const DirName = "volume-subpaths"
