package manifest

import "time"

// A FileState describes which content of a file or URL is in use. It is immutable and
// comparable with ==; its times are UTC without a monotonic reading.
type FileState struct {
	Path string // as in Origin.Path
	// Digest is "sha256:<hex>" of the content in use, "" if there is none.
	Digest string
	// Version is the time of that content: a file's mtime, or when a URL first returned it.
	// Zero if there is none.
	Version time.Time
	// Behind is the reason why the current content is not in use: "edit refused", "write
	// begun", "reading failed", "gone" or "fetch failed". It is "" if the content is in
	// use, or if its valid documents are and no valid content was ever read. It is printed
	// before "4s ago". Problems with this Path have the details.
	Behind string
	// Since is when the content fell Behind; zero if it has not.
	Since time.Time
}
