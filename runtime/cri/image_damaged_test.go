package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIsImageDamaged checks that isImageDamaged reports true only for errors of containerd about a
// part of an image. An error about a missing file must count as damage only if containerd's other
// files exist.
func TestIsImageDamaged(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"blobs/other", "snapshots/1", "snapshots/2/fs", "empty", "new/new-1", "new/3"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const create = "failed to create containerd container: "
	lostBlob := func(path string) string {
		return create + `error unpacking image: failed to extract layer (application/vnd.oci.image.layer.v1.tar+gzip sha256:1) to overlayfs as "extract-1": failed to get reader from content store: blob sha256:2 expected at ` + path + ": blob not found: not found"
	}
	lostLayer := func(path string) string {
		return create + "failed to stat parent: stat " + path + ": no such file or directory"
	}
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"truncated config":               {create + "unexpected end of JSON input", true},
		"truncated seccomp profile":      {create + `decoding seccomp profile failed "/var/lib/podd/seccomp/a.json": unexpected end of JSON input`, false},
		"truncated layer":                {create + `error unpacking image: wrong diff id "sha256:1" calculated on extraction "sha256:2", desc "sha256:3"`, true},
		"profile named after a damage":   {create + `cannot load seccomp profile "/x/error unpacking image: wrong diff id": permission denied`, false},
		"path named after a damage":      {`failed to mkdir "/x/failed to create containerd container: error unpacking image: wrong diff id"`, false},
		"full disk":                      {create + "error unpacking image: failed to extract layer sha256:1: write /x: no space left on device", false},
		"no snapshotter":                 {create + "error unpacking image: unable to initialize unpacker: snapshotter stargz was not found: not found", false},
		"lost blob":                      {lostBlob(root + "/blobs/1"), true},
		"blob exists":                    {lostBlob(root + "/blobs/other"), false},
		"all blobs lost":                 {lostBlob(root + "/empty/1"), false},
		"blobs not mounted":              {lostBlob(root + "/unmounted/1"), false},
		"relative path":                  {lostBlob("absent"), false},
		"lost directory":                 {lostLayer(root + "/snapshots/3/fs"), true},
		"lost content of a directory":    {lostLayer(root + "/snapshots/1/fs"), true},
		"directory exists":               {lostLayer(root + "/snapshots/2/fs"), false},
		"all directories lost":           {lostLayer(root + "/empty/1/fs"), false},
		"only new directories":           {lostLayer(root + "/new/3/fs"), false},
		"directories not mounted":        {lostLayer(root + "/unmounted/1/fs"), false},
		"other error about a directory":  {create + "failed to stat parent: stat " + root + "/snapshots/3/fs: permission denied", false},
		"other missing file of a create": {create + "stat " + root + "/snapshots/3/fs: no such file or directory", false},
	} {
		if got := isImageDamaged(test.text); got != test.want {
			t.Errorf("%s: isImageDamaged(%q): got %t, want %t", name, strings.ReplaceAll(test.text, root, ""), got, test.want)
		}
	}
}
