package manifest

import "time"

// FileState tells which content of a file or URL runs. Immutable; comparable
// by ==, its times are UTC without a monotonic part.
type FileState struct {
	Path string // as in Origin.Path
	// Digest is "sha256:<hex>" of the bytes that run, "" when none do.
	Digest string
	// Version is the time of those bytes: a file's mtime, or when a URL first
	// served them. Zero when none run.
	Version time.Time
	// Behind says why what is there now does not run: "edit refused", "write
	// begun", "reading failed", "gone", "fetch failed"; "" when it does, or
	// its good documents do where no good content was ever seen. It reads well
	// before "4s ago"; Problems with this Path tell the rest.
	Behind string
	// Since when it is Behind, zero when it is not.
	Since time.Time
}
