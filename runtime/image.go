package runtime

import "time"

// An Image is an image that is present on the node.
type Image struct {
	// ID is the runtime's ID of the image, usually the digest of its config. Containers are
	// created from it.
	ID string
	// Tags and Digests are the names of the image, including the repository.
	Tags    []string
	Digests []string
	Size    uint64
	// User is the user that containers of the image run as.
	User ImageUser
	// Pinned images must not be removed; the sandbox image is one.
	Pinned bool
}

// An ImageUser is the user in an image's config: a number or a name. If it has neither, it
// is root.
type ImageUser struct {
	UID  *int64
	Name string
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
	// Stdout and Stderr are the beginnings of the streams, up to the length that the caller
	// requested.
	Stdout, Stderr []byte
	// Truncated reports that one of the streams was longer.
	Truncated bool
}

// Usage is the resource usage of a container as reported by the runtime.
type Usage struct {
	// At is when CPU and memory were read; zero: they are not reported.
	At time.Time
	// CPU is the total CPU time in nanoseconds.
	CPU uint64
	// Memory is the charged memory, WorkingSet the part that the kernel cannot reclaim, RSS
	// the anonymous part. In bytes.
	Memory, WorkingSet, RSS uint64
	// Layer is the usage of the writable layer; nil: not reported. Runtimes measure it
	// periodically; LayerAt is when.
	Layer   *Filesystem
	LayerAt time.Time
}
