package manifest

import "time"

// A FileState describes which content of a file or URL is in use. It is immutable and
// comparable with ==; its times are UTC without a monotonic reading.
type FileState struct {
	Path string // as in Origin.Path
	// Digest is "sha256:<hex>" of the content in use; "" if no content is in use.
	Digest string
	// ContentTime is the time of the content in use. For a file it is the modification time (mtime)
	// that the file had when podd read this content. For a URL it is the time at which the URL
	// first returned this content. It is zero if no content is in use.
	ContentTime time.Time
	// OutdatedReason is the reason why the content in use is older than the current content of the
	// file or URL: "edit refused", "write begun", "reading failed", "gone" or "fetch failed".
	// Problems with the same Path have the details. OutdatedReason is "" if the current content is in
	// use. An invalid content is in use if podd has never read a valid one: podd then uses its valid
	// documents.
	OutdatedReason string
	// OutdatedSince is the time since which the current content differs from the content in use;
	// zero if OutdatedReason is "".
	OutdatedSince time.Time
	// RefusedDigest is the digest of the current content if podd refused a document in it; otherwise
	// "".
	RefusedDigest string
	// IsMissing reports whether the file is missing from its directory. Its content stays in use for
	// a short time, because the file may have been renamed or may be written again.
	IsMissing bool
}
