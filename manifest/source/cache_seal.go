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

// A file of the cache is a line with the digest and size of the rest, and the
// rest. What was cut off, mixed up or decayed is told from what was written.
const sealMark = "podd-cache 1 "

var errSeal = errors.New("its checksum is wrong")

// seal puts the line in front of the payload.
func seal(payload []byte) []byte {
	line := fmt.Sprintf("%s%s %d\n", sealMark, digestOf(payload), len(payload))
	return append([]byte(line), payload...)
}

// unseal checks the line and returns the payload with its digest. The input may
// be anything.
func unseal(data []byte) (payload []byte, digest string, err error) {
	line, payload, ok := bytes.Cut(data, []byte("\n"))
	rest, marked := strings.CutPrefix(string(line), sealMark)
	digest, size, spaced := strings.Cut(rest, " ")
	if !ok || !marked || !spaced || size != strconv.Itoa(len(payload)) || digest != digestOf(payload) {
		return nil, "", errSeal
	}
	return payload, digest, nil
}

// index says what of one source is in the cache.
type index struct {
	Source  []byte    `json:"source"` // bytes, since paths need not be UTF-8
	Saved   time.Time `json:"saved"`
	Entries []record  `json:"entries"`
}

// record is one file, or the URL.
type record struct {
	Path    []byte    `json:"path"`
	Digest  string    `json:"digest"` // of the content
	Version time.Time `json:"version"`
	// ETag and Modified are what the server sent with a URL's content.
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// parseIndex reads the payload of an index of the named source. The input may
// be anything; nothing in it becomes part of a path on disk.
func parseIndex(payload []byte, source string) (map[string]record, error) {
	var x index
	if err := json.Unmarshal(payload, &x); err != nil {
		return nil, fmt.Errorf("it is no index: %w", err)
	}
	if string(x.Source) != source {
		return nil, errors.New("it is of another source")
	}
	if len(x.Entries) > maxNames {
		return nil, fmt.Errorf("it has %d entries", len(x.Entries))
	}
	records := map[string]record{}
	for _, r := range x.Entries {
		if !isDigest(r.Digest) {
			return nil, errors.New("it has a digest that is none")
		}
		records[string(r.Path)] = r
	}
	if len(records) != len(x.Entries) {
		return nil, errors.New("it has a path twice")
	}
	return records, nil
}

// isDigest says that s is "sha256:" and 64 hexadecimal digits.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
