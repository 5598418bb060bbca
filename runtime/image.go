package runtime

// Image is one image present on the machine.
type Image struct {
	// ID is the runtime's own name of the image, as a rule the digest of its
	// config; containers are created from it.
	ID string
	// Tags and Digests are the names it goes by, with their repository.
	Tags    []string
	Digests []string
	Size    uint64
	// UID is the numeric user that the image runs as; nil when it names one or
	// says nothing.
	UID *int64
	// Username is the user's name where the image gives a name, else "".
	Username string
	// Pinned images are never to be removed; the sandbox image is one.
	Pinned bool
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
