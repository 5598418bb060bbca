package source

import (
	"errors"
	"testing"
)

// TestIndexFormats checks that the index formats of all podd versions can be read.
func TestIndexFormats(t *testing.T) {
	const entries = `"source":"L20=","saved":"2026-11-01T12:00:00Z","entries":[{"path":"L20vYS55YW1s","digest":"sha256:` +
		`e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","version":"2026-11-01T12:00:00Z"}]`
	for name, test := range map[string]struct {
		text   string
		hasDir bool
	}{
		"first":              {`{` + entries + `}`, false},
		"with its directory": {`{` + entries + `,"place":{}}`, true},
	} {
		payload, _, err := removeChecksum(addChecksum([]byte(test.text)))
		if err != nil {
			t.Errorf("removing the checksum, index %s: got error %v, want none", name, err)
		}
		records, dir, err := parseIndex(payload, "/m")
		if err != nil || len(records) != 1 || records["/m/a.yaml"].Digest == "" || (dir != nil) != test.hasDir {
			t.Errorf("%s: got entries %v, directory %v and error %v, want one entry and directory: %v", name, records, dir, err, test.hasDir)
		}
	}
}

// TestRemoveChecksum_Damaged checks that truncated and changed files are detected, and that a file of a
// newer version has its own error.
func TestRemoveChecksum_Damaged(t *testing.T) {
	data := addChecksum([]byte("kind: Pod\n"))
	for n := range data {
		if _, _, err := removeChecksum(data[:n]); err == nil {
			t.Errorf("removing the checksum of the first %d bytes: got no error, want one", n)
		}
		for bit := range 8 {
			data[n] ^= 1 << bit
			if _, _, err := removeChecksum(data); err == nil {
				t.Errorf("removing the checksum of the damaged file %q: got no error, want one", data)
			}
			data[n] ^= 1 << bit
		}
	}
	if _, _, err := removeChecksum([]byte("podd-cache 2 anything\n")); !errors.Is(err, errVersion) {
		t.Errorf("removing the checksum of a newer version: got error %v, want %v", err, errVersion)
	}
}
