package runtime

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// An Image is an image that is present on the node.
type Image struct {
	// ID is the runtime's ID of the image, usually the digest of the image's config. podd
	// creates containers from this ID.
	ID string
	// Tags and Digests are the names of the image, including the repository:
	// "docker.io/library/busybox:1.36" and "docker.io/library/busybox@sha256:…".
	Tags      []string
	Digests   []string
	SizeBytes uint64
	// User is the user of containers that specify no user.
	User ImageUser
	// Pinned reports whether the image must not be removed. The sandbox image is pinned.
	Pinned bool
}

// An ImageUser is the user in an image's config, as a number or a name. If UID is nil and
// Name is empty, the user is root.
type ImageUser struct {
	UID  *int64
	Name string
}

// A ContainerImage is a container with the image from which it was created.
type ContainerImage struct {
	// ID is the ID of the container.
	ID string
	// Pod is the pod in the labels of the container. Its name is "" if the container has no such
	// labels.
	Pod types.NamespacedName
	// Image is the ID or a name of the image.
	Image string
}

// A Filesystem is the disk usage of images or containers on one file system.
type Filesystem struct {
	Mountpoint string
	UsedBytes  uint64
	InodesUsed uint64
}

// An ExecResult is the result of a command that was run in a container.
type ExecResult struct {
	ExitCode int32
	// Stdout and Stderr are the beginnings of the two streams. The caller specifies the
	// maximum length.
	Stdout, Stderr []byte
	// Truncated reports whether one of the streams was longer than the maximum.
	Truncated bool
}

// Usage is the resource usage of a container as reported by the runtime.
type Usage struct {
	PodUID types.UID
	// At is the time at which the CPU time and the memory were measured. If At is zero, the runtime
	// reports neither.
	At time.Time
	// CPUNanoseconds is the total CPU time in nanoseconds.
	CPUNanoseconds uint64
	// MemoryBytes is the memory charged to the container. WorkingSetBytes is the part that the
	// kernel cannot reclaim, and RSSBytes is the anonymous part.
	MemoryBytes, WorkingSetBytes, RSSBytes uint64
	// WritableLayer is the disk usage of the container's writable layer, or nil if the
	// runtime does not report it. Runtimes measure the layer periodically. WritableLayerAt
	// is the time of the last measurement.
	WritableLayer   *Filesystem
	WritableLayerAt time.Time
}
