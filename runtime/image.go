package runtime

import "time"

// Image is one image present on the machine.
type Image struct {
	// ID is the runtime's own name of the image, as a rule the digest of its
	// config; containers are created from it.
	ID string
	// Tags and Digests are the names it goes by, with their repository.
	Tags    []string
	Digests []string
	Size    uint64
	// User is who it runs as.
	User ImageUser
	// Pinned images are never to be removed; the sandbox image is one.
	Pinned bool
}

// ImageUser is the user in an image's config: a number, else a name, else
// neither, which is root.
type ImageUser struct {
	UID  *int64
	Name string
}

// Filesystem is what images or containers take on one file system.
type Filesystem struct {
	Mountpoint string
	UsedBytes  uint64
	InodesUsed uint64
}

// ExecResult is what a command run in a container left behind.
type ExecResult struct {
	ExitCode int32
	// Stdout and Stderr are the beginnings of the streams, at most as long as
	// the caller asked for.
	Stdout, Stderr []byte
	// Truncated says that one of the streams was longer.
	Truncated bool
}

// Usage is what the runtime says that a container uses.
type Usage struct {
	// At is when processor and memory were read; zero: they are not told.
	At time.Time
	// CPU is the processor time so far, in nanoseconds.
	CPU uint64
	// Memory is what is charged to it, WorkingSet what of it the kernel cannot
	// take back, RSS what is no file's. In bytes.
	Memory, WorkingSet, RSS uint64
	// Layer is what it wrote to its own file system; nil: not told. Runtimes
	// measure it now and then, LayerAt is when.
	Layer   *Filesystem
	LayerAt time.Time
}
