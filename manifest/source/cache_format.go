package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A file of the cache starts with a line that contains the digest and size of the payload. podd
// detects truncated, replaced and corrupted files by this line.
const (
	formatName   = "podd-cache "
	headerPrefix = formatName + "1 "
)

var (
	errChecksum = errors.New("checksum mismatch")
	errVersion  = errors.New("written by an incompatible version of podd")
)

// addChecksum returns payload, preceded by the line with its digest and size.
func addChecksum(payload []byte) []byte {
	line := fmt.Sprintf("%s%s %d\n", headerPrefix, digestOf(payload), len(payload))
	return append([]byte(line), payload...)
}

// removeChecksum verifies the first line of data and returns the payload and its digest. data may
// contain any bytes.
func removeChecksum(data []byte) (payload []byte, digest string, err error) {
	line, payload, ok := bytes.Cut(data, []byte("\n"))
	if bytes.HasPrefix(line, []byte(formatName)) && !bytes.HasPrefix(line, []byte(headerPrefix)) {
		return nil, "", errVersion
	}
	digestAndSize, hasPrefix := strings.CutPrefix(string(line), headerPrefix)
	digest, size, hasSize := strings.Cut(digestAndSize, " ")
	if !ok || !hasPrefix || !hasSize || size != strconv.Itoa(len(payload)) || digest != digestOf(payload) {
		return nil, "", errChecksum
	}
	return payload, digest, nil
}

// index lists the cached contents of one source.
type index struct {
	Source  []byte    `json:"source"` // bytes, because a path need not be UTF-8
	Saved   time.Time `json:"saved"`
	Entries []record  `json:"entries"`
	// ManifestDir is the directory from which the entries were read. It is nil for a URL, and
	// in an index of an older podd, because older versions did not write this field.
	ManifestDir *identity `json:"place,omitempty"`
}

// record is the index entry of one file, or of the URL.
type record struct {
	Path        []byte    `json:"path"`
	Digest      string    `json:"digest"` // digest of the content
	ContentTime time.Time `json:"version"`
	// ETag and LastModified are the validators that the server sent with the content of a URL.
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"modified,omitempty"`
}

// parseIndex parses the payload of an index of the named source. It returns the entries by path,
// and ManifestDir. payload may contain any bytes. No part of it becomes part of a path on disk.
func parseIndex(payload []byte, source string) (entries map[string]record, dir *identity, err error) {
	var x index
	if err := json.Unmarshal(payload, &x); err != nil {
		return nil, nil, fmt.Errorf("invalid index: %w", err)
	}
	if string(x.Source) != source {
		return nil, nil, errors.New("the index belongs to another source")
	}
	if len(x.Entries) > maxEntries {
		return nil, nil, fmt.Errorf("too many entries in the index: %d (limit %d)", len(x.Entries), maxEntries)
	}
	records := map[string]record{}
	for _, r := range x.Entries {
		if !isDigest(r.Digest) {
			return nil, nil, errors.New("invalid digest in the index")
		}
		records[string(r.Path)] = r
	}
	if len(records) != len(x.Entries) {
		return nil, nil, errors.New("duplicate path in the index")
	}
	return records, x.ManifestDir, nil
}

// isDigest reports whether s is "sha256:" followed by 64 hexadecimal digits.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
