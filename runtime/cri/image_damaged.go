package cri

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podd/manifest/lazyregexp"
)

// isImageDamaged reports whether text is the error of containerd or CRI-O for a container that cannot
// be created because its image is damaged.
//
// A damaged image is removed, so isImageDamaged returns false if another cause is possible: a full
// disk, a truncated seccomp profile, or a directory of the runtime that is not mounted. Text that a pod
// can choose, such as the name of a profile, must not match.
func isImageDamaged(text string) bool {
	return isImageDamagedContainerd(text) || isImageDamagedCRIO(text)
}

// isVolumeImageDamaged reports whether text is the error of containerd or CRI-O for a container that
// cannot be created because the image of one of its image volumes is damaged. The error does not name
// the image.
//
// A lost directory of an unpacked layer is not recognized on containerd. Its error contains the mount
// options, and after the failed mount, containerd keeps the layer even if the image is removed, so that
// another pull does not replace it.
func isVolumeImageDamaged(text string) bool {
	if cause, ok := strings.CutPrefix(text, "ImageVolumeMountFailed: mount storage: "); ok {
		return isMountCauseDamaged(cause)
	}
	cause, ok := strings.CutPrefix(text, "failed to mount image volume: ImageVolumeMountFailed: failed to unpack image volume: ")
	cause = strings.TrimPrefix(cause, "failed to resolve rootfs: ")
	return ok && (isMetadataTruncated(cause) || isBlobLost(cause))
}

// isImageDamagedContainerd reports whether text is the error of containerd for a container that cannot
// be created because a part of its image is missing or truncated on the disk: a layer, the manifest,
// the config or the directory of an unpacked layer. containerd tries to unpack the layers again first.
func isImageDamagedContainerd(text string) bool {
	cause, isCreate := strings.CutPrefix(text, "failed to create containerd container: ")
	if !isCreate {
		return false
	}
	unpackCause, isUnpackError := strings.CutPrefix(cause, "error unpacking image: ")
	return isMetadataTruncated(cause) || isUnpackError && strings.Contains(unpackCause, "wrong diff id") ||
		isUnpackError && isBlobLost(unpackCause) || isLayerLost(cause)
}

// isMetadataTruncated reports whether text is the complete error of containerd for a truncated config or
// manifest. For a truncated file that does not belong to the image, the error contains more text.
func isMetadataTruncated(text string) bool {
	return text == "unexpected end of JSON input" || truncatedManifestPattern().MatchString(text)
}

var truncatedManifestPattern = lazyregexp.New(`^manifest: invalid desc sha256:[0-9a-f]{64}: unexpected end of JSON input$`)

// isBlobLost reports whether text ends with containerd's error for a missing blob, and the
// directory of this blob contains other blobs.
func isBlobLost(text string) bool {
	text, isLost := strings.CutSuffix(text, ": blob not found: not found")
	_, path, hasPath := strings.Cut(text, " expected at ")
	return isLost && hasPath && isOnlyPartLost(path, filepath.Dir(path))
}

// isLayerLost reports whether text is containerd's error for a missing directory of an unpacked
// layer, and the directories of other layers exist.
func isLayerLost(text string) bool {
	m := lostLayerPattern().FindStringSubmatch(text)
	return m != nil && isOnlyPartLost(m[1], filepath.Dir(filepath.Dir(m[1])))
}

// lostLayerPattern matches the error for the topmost layer, or for another layer, which the snapshotter
// opens first.
var lostLayerPattern = lazyregexp.New(`^(?:failed to stat parent: stat|open) (/[^":]*/snapshots/[0-9]+/fs): no such file or directory$`)

// isOnlyPartLost reports whether path does not exist, but the directory store contains other files.
// If store is empty or does not exist, its file system is probably not mounted, or podd runs in
// another mount namespace than containerd.
func isOnlyPartLost(path, store string) bool {
	if _, err := os.Lstat(path); !filepath.IsAbs(path) || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	entries, err := os.ReadDir(store)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		isTemporary := strings.HasPrefix(e.Name(), "new-") // a layer that containerd creates now
		return !isTemporary && !strings.HasPrefix(path, filepath.Join(store, e.Name())+"/")
	})
}
