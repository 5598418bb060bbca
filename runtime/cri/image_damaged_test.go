package cri

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"podd/runtime"
)

// TestIsImageDamaged checks that isImageDamaged reports true only for errors of containerd about a
// part of an image. An error about a missing file must count as damage only if containerd's other
// files exist.
func TestIsImageDamaged(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"blobs/other", "snapshots/1", "snapshots/2/fs", "empty", "new/new-1", "new/3", "io.containerd.snapshotter.v1.overlayfs/snapshots/2/fs"} {
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
		"truncated manifest":             {create + "manifest: invalid desc sha256:" + id64 + ": unexpected end of JSON input", true},
		"lost directory of lower layer":  {create + "open " + root + "/io.containerd.snapshotter.v1.overlayfs/snapshots/3/fs: no such file or directory", true},
		"lower layer exists":             {create + "open " + root + "/io.containerd.snapshotter.v1.overlayfs/snapshots/2/fs: no such file or directory", false},
		"lower layers not mounted":       {create + "open " + root + "/unmounted/snapshots/2/fs: no such file or directory", false},
		"missing profile":                {create + "open " + root + "/snapshots/3/profile.json: no such file or directory", false},
		"profile named like a layer":     {create + `cannot load seccomp profile "x": open ` + root + "/snapshots/3/fs: no such file or directory", false},
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

// TestIsImageDamaged_CRIO checks that isImageDamaged reports true for the errors of CRI-O about a lost
// layer, but only if the layer is missing in the storage and the storage contains other layers.
func TestIsImageDamaged_CRIO(t *testing.T) {
	root := t.TempDir()
	present, lost, noDiff := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	for _, dir := range []string{"overlay/" + present + "/diff", "overlay/" + strings.Repeat("d", 64) + "/diff", "overlay/" + noDiff, "overlay/l", "unmounted/l", "unmounted/" + noDiff} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, id := range map[string]string{"OK": present, "LOST": lost} {
		if err := os.Symlink("../"+id+"/diff", filepath.Join(root, "overlay/l", link)); err != nil {
			t.Fatal(err)
		}
	}
	const (
		create = `creating read-write layer with ID "` + id64 + `": `
		mount  = "failed to mount container k8s_main_web.a_default_0a1b-2c_0(" + id64 + "): "
		absent = ": no such file or directory"
	)
	storage := root + "/overlay/"
	correct := func(id string) string {
		return "correcting link for layer " + id + ": open " + storage + id + "/link" + absent
	}
	name := func(id string) string {
		return `reading name of symlink for "` + id + `": open ` + storage + id + "/link" + absent
	}
	overlay := func(storage, lowers string) string {
		return mount + "creating overlay mount to " + storage + lost + `/merged, mount_data="lowerdir=` + lowers + ",upperdir=" + storage + lost + "/diff,workdir=" + storage + lost + `/work,volatile"` + absent
	}
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"lost topmost layer":                    {create + "Stat " + storage + lost + "/diff" + absent, true},
		"lost files of the topmost layer":       {create + "Stat " + storage + noDiff + "/diff" + absent, true},
		"topmost layer exists":                  {create + "Stat " + storage + present + "/diff" + absent, false},
		"storage not mounted":                   {create + "Stat " + root + "/unmounted/" + lost + "/diff" + absent, false},
		"missing storage":                       {create + "Stat " + root + "/none/" + lost + "/diff" + absent, false},
		"full disk":                             {create + "mkdir " + storage + lost + "/diff: no space left on device", false},
		"lost lower layer":                      {mount + "recreating the missing symlinks: " + correct(lost), true},
		"lost lower layers":                     {mount + "recreating the missing symlinks: " + correct(lost) + "\n" + correct(noDiff), true},
		"lost lower layer and too many links":   {mount + "recreating the missing symlinks: " + correct(lost) + "\nreached 10 iterations in overlay graph driver’s recreateSymlink, giving up", true},
		"lower layer without link":              {mount + "recreating the missing symlinks: " + correct(present), true},
		"too many links":                        {mount + "recreating the missing symlinks: reached 10 iterations in overlay graph driver’s recreateSymlink, giving up", false},
		"lost lower layer and full disk":        {mount + "recreating the missing symlinks: " + correct(lost) + "\nwrite /x: no space left on device", false},
		"lost link of the topmost layer":        {create + "recreating the links: " + name(present), true},
		"link of the topmost layer is readable": {create + "recreating the links: reading name of symlink for \"" + present + "\": open " + storage + present + "/link: permission denied", false},
		"truncated link":                        {mount + "readlink " + storage + "l: invalid argument", true},
		"truncated link, not mounted":           {mount + "readlink " + root + "/unmounted/l: invalid argument", false},
		"lost files of a lower layer":           {overlay(storage, storage+"l/OK:"+storage+"l/LOST"), true},
		"lost files, relative paths":            {overlay(storage, "l/OK:l/LOST"), true},
		"lower layers exist":                    {overlay(storage, storage+"l/OK"), false},
		"other missing lower directory":         {overlay(storage, storage+"l/OK:/none"), false},
		"lower layers not mounted":              {overlay(root+"/unmounted/", root+"/unmounted/l/LOST"), false},
		"path of a pod":                         {"failed to mount container k8s_main_(x): " + create + "Stat " + storage + lost + "/diff" + absent, false},
		"volume of a pod":                       {`failed to resolve symlink "/` + create + `": Stat ` + storage + lost + "/diff" + absent, false},
	} {
		if got := isImageDamaged(test.text); got != test.want {
			t.Errorf("%s: isImageDamaged(%q): got %t, want %t", name, strings.ReplaceAll(test.text, root, ""), got, test.want)
		}
	}
}

// TestIsVolumeImageDamaged checks the errors of containerd and CRI-O for an image volume.
func TestIsVolumeImageDamaged(t *testing.T) {
	root := t.TempDir()
	present, lost := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for _, dir := range []string{"blobs/other", "overlay/" + present + "/diff", "empty"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const (
		containerd = "failed to mount image volume: ImageVolumeMountFailed: failed to unpack image volume: "
		crio       = "ImageVolumeMountFailed: mount storage: "
		absent     = ": no such file or directory"
	)
	lostBlob := func(path string) string { return "blob sha256:2 expected at " + path + ": blob not found: not found" }
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"lost config":               {containerd + "failed to resolve rootfs: " + lostBlob(root+"/blobs/1"), true},
		"lost manifest":             {containerd + lostBlob(root+"/blobs/1"), true},
		"blobs not mounted":         {containerd + lostBlob(root+"/empty/1"), false},
		"truncated config":          {containerd + "failed to resolve rootfs: unexpected end of JSON input", true},
		"truncated manifest":        {containerd + "manifest: invalid desc sha256:" + id64 + ": unexpected end of JSON input", true},
		"full disk":                 {containerd + "write /x: no space left on device", false},
		"CRI-O, lost layer":         {crio + "faccessat " + root + "/overlay/" + lost + absent, true},
		"CRI-O, lost files":         {crio + "readlink " + root + "/overlay/" + lost + "/diff" + absent, true},
		"CRI-O, layer exists":       {crio + "faccessat " + root + "/overlay/" + present + absent, false},
		"CRI-O, not mounted":        {crio + "faccessat " + root + "/empty/" + lost + absent, false},
		"CRI-O, image of container": {`creating read-write layer with ID "` + id64 + `": Stat ` + root + "/overlay/" + lost + "/diff" + absent, false},
	} {
		if got := isVolumeImageDamaged(test.text); got != test.want {
			t.Errorf("%s: isVolumeImageDamaged(%q): got %t, want %t", name, strings.ReplaceAll(test.text, root, ""), got, test.want)
		}
	}
}

// TestMarkUnreadable checks which errors of CRI-O's ImageStatus match runtime.ErrImageDamaged, and which
// errors of its other calls.
func TestMarkUnreadable(t *testing.T) {
	const (
		remedy   = `" (consider removing the image to resolve the issue): file does not exist`
		manifest = `locating item named "manifest" for image with ID "` + id64 + remedy
	)
	for text, want := range map[string]struct{ status, other bool }{
		manifest: {true, true},
		`checking signature of "registry.example:5000/web:1": get top level manifest: ` + manifest: {true, true},
		`locating item named "sha256:` + id64 + `" for image with ID "` + id64 + remedy:            {true, true},
		"Download config.json digest sha256:" + id64 + " does not match expected sha256:" + id64:   {true, true},
		"unexpected end of JSON input":                                 {true, false},
		`loading "/x/images.json": unexpected end of JSON input`:       {},
		"layer not known":                                              {},
		"open /x: no space left on device":                             {},
		`locating item named "manifest" for image with ID "x` + remedy: {},
		`stat "/x/` + manifest:                                         {},
		manifest + `": permission denied`:                              {},
	} {
		err := (&Client{}).convertError(t.Context(), status.Error(codes.Unknown, text))
		if got := errors.Is(err, runtime.ErrImageDamaged); got != want.other {
			t.Errorf("%q: got %t, want %t", err, got, want.other)
		}
		if got := errors.Is(markUnreadable(err), runtime.ErrImageDamaged); got != want.status {
			t.Errorf("%q of ImageStatus: got %t, want %t", err, got, want.status)
		}
	}
}
