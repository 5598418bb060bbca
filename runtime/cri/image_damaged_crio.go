package cri

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podd/manifest/lazyregexp"
	"podd/runtime"
)

// isImageDamagedCRIO reports whether text is the error of CRI-O for a container that cannot be created
// because the config or manifest of its image or a layer is missing in the storage (containers/storage,
// driver overlay). Directory ID/diff of a layer contains its files, and file ID/link contains the name of
// a symbolic link to this directory. The links are in directory l. CRI-O reports:
//
//   - a lost directory of the topmost layer: Stat ID/diff; for an image volume: faccessat ID, readlink ID/diff
//   - a lost directory of another layer: "correcting link for layer"
//   - a lost ID/diff of another layer: "creating overlay mount", with the links of all layers
//   - a lost ID/link with its symbolic link: "reading name of symlink"
//   - a truncated ID/link: readlink l, because the name of the symbolic link is empty
//
// CRI-O does not report a layer whose files are lost if its directory still exists, or a lost list of the
// lower layers. The error of a truncated manifest, "unexpected end of JSON input", does not match, because
// another truncated file can cause it. If CRI-O restarts after a power cut, it checks its storage and
// removes most damaged images itself.
func isImageDamagedCRIO(text string) bool {
	if crioMetadataPattern().MatchString(text) {
		return true
	}
	m := crioCreatePattern().FindStringSubmatch(text)
	return m != nil && isMountCauseDamaged(m[1])
}

// isMountCauseDamaged reports whether cause is the error of CRI-O for a mount of an image of which a layer
// is missing.
func isMountCauseDamaged(cause string) bool {
	if m := crioStatPattern().FindStringSubmatch(cause); m != nil {
		return isLayerFileLost(filepath.Join(m[1], "diff"))
	}
	if m := crioReadlinkPattern().FindStringSubmatch(cause); m != nil {
		info, err := os.Lstat(m[1])
		return err == nil && info.IsDir() && hasOtherLayer(filepath.Dir(m[1]), "")
	}
	if m := crioMountPattern().FindStringSubmatch(cause); m != nil {
		return isLowerLayerLost(m[1], strings.Split(m[2], ":"))
	}
	cause, isLinkError := cutAnyPrefix(cause, "recreating the links: ", "recreating the missing symlinks: ")
	return isLinkError && isLinkLost(strings.Split(cause, "\n"))
}

var (
	crioCreatePattern   = lazyregexp.New(`(?s)^(?:creating read-write layer with ID "[0-9a-f]{64}"|failed to mount container k8s_[A-Za-z0-9._-]+\([0-9a-f]{64}\)): (.*)$`)
	crioStatPattern     = lazyregexp.New(`^(?:Stat|readlink|faccessat) (/.+/[0-9a-f]{64})(?:/diff)?: no such file or directory$`)
	crioReadlinkPattern = lazyregexp.New(`^readlink (/.+/l): invalid argument$`)
	crioMountPattern    = lazyregexp.New(`^creating overlay mount to (/.+)/[0-9a-f]{64}/merged, mount_data="lowerdir=([^,"]+),[^"]*": no such file or directory$`)
	crioLinkPattern     = lazyregexp.New(`^(?:correcting link for layer [0-9a-f]{64}|reading name of symlink for "[0-9a-f]{64}"): open (/.+/link): no such file or directory$`)
	crioLayerPattern    = lazyregexp.New(`^[0-9a-f]{64}$`)
)

// cutAnyPrefix returns text without the first prefix that it begins with.
func cutAnyPrefix(text string, prefixes ...string) (after string, found bool) {
	for _, prefix := range prefixes {
		if after, found = strings.CutPrefix(text, prefix); found {
			return after, true
		}
	}
	return text, false
}

// isLinkLost reports whether lines are CRI-O's errors of links that cannot be created again. CRI-O
// tries to create the links of all layers again, but only if a link of the container's image is
// missing.
func isLinkLost(lines []string) bool {
	hasLost := false
	for _, line := range lines {
		m := crioLinkPattern().FindStringSubmatch(line)
		if m == nil && !strings.HasSuffix(line, " iterations in overlay graph driver’s recreateSymlink, giving up") {
			return false
		}
		hasLost = hasLost || m != nil && isLayerFileLost(m[1])
	}
	return hasLost
}

// isLayerFileLost reports whether a file in the directory of a layer does not exist, but the storage
// contains other layers.
func isLayerFileLost(path string) bool {
	dir := filepath.Dir(path)
	id := filepath.Base(dir)
	return crioLayerPattern().MatchString(id) && isAbsent(path) && hasOtherLayer(filepath.Dir(dir), id)
}

// isLowerLayerLost reports whether one of the links to the layers of a mount leads to a missing
// directory, but the storage contains other layers.
func isLowerLayerLost(storage string, links []string) bool {
	return hasOtherLayer(storage, "") && slices.ContainsFunc(links, func(link string) bool {
		if !filepath.IsAbs(link) { // the kernel limits the length of mount options
			link = filepath.Join(storage, link)
		}
		return filepath.Dir(link) == filepath.Join(storage, "l") && isAbsent(link)
	})
}

// isAbsent reports whether path, or the target of a symbolic link at path, does not exist.
func isAbsent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// hasOtherLayer reports whether the storage contains the files of a layer other than id.
func hasOtherLayer(storage, id string) bool {
	entries, err := os.ReadDir(storage)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != id && crioLayerPattern().MatchString(e.Name()) && !isAbsent(filepath.Join(storage, e.Name(), "diff"))
	})
}

// crioMetadataPattern matches the errors of CRI-O for an image whose manifest is missing, or whose config
// is missing or truncated. A call that inspects the signatures of the image begins with the manifest.
var crioMetadataPattern = lazyregexp.New(`^(?:(?:checking signature of "[^"]*": get top level manifest: )?` +
	`locating item named "(?:manifest|sha256:[0-9a-f]{64})" for image with ID "[0-9a-f]{64}" \(consider removing the image to resolve the issue\): file does not exist` +
	`|Download config\.json digest sha256:[0-9a-f]{64} does not match expected sha256:[0-9a-f]{64})$`)

// markUnreadable returns an error that matches runtime.ErrImageDamaged if err is the error of CRI-O's
// ImageStatus for an image with a truncated manifest. Otherwise it returns err. The error "layer not
// known" does not match, because it is also the error for all images if the list of the layers is on a
// file system that is not mounted.
func markUnreadable(err error) error {
	if isFileTruncated(err) {
		return &callError{err.Error(), []error{runtime.ErrImageDamaged}}
	}
	return err
}

// isFileTruncated reports whether err is the error of CRI-O for a truncated file in its storage, such as
// the manifest of an image or the list of all images. The error does not name the file.
func isFileTruncated(err error) bool {
	call, ok := errors.AsType[*callError](err)
	return ok && call.text == "unexpected end of JSON input"
}
