package cri

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isImageDamaged reports whether text is the error of containerd for a container that cannot be
// created because a part of its image is missing or truncated on the disk: a layer, the manifest, the
// config or the directory of an unpacked layer. containerd tries to unpack the layers again first.
//
// A damaged image is removed, so isImageDamaged returns false if another cause is possible: a full
// disk, a truncated seccomp profile, or a directory of containerd that is not mounted. Text that a pod
// can choose, such as the name of a profile, must not match.
func isImageDamaged(text string) bool {
	cause, isCreate := strings.CutPrefix(text, "failed to create containerd container: ")
	if !isCreate {
		return false
	}
	unpackCause, isUnpackError := strings.CutPrefix(cause, "error unpacking image: ")
	// The first text is the complete error of a truncated config. For a truncated file that does not
	// belong to the image, the error contains more text.
	return cause == "unexpected end of JSON input" || isUnpackError && strings.Contains(unpackCause, "wrong diff id") ||
		isUnpackError && isBlobLost(unpackCause) || isLayerLost(cause)
}

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
	text, isLost := strings.CutSuffix(text, ": no such file or directory")
	path, isStatError := strings.CutPrefix(text, "failed to stat parent: stat ")
	return isLost && isStatError && isOnlyPartLost(path, filepath.Dir(filepath.Dir(path)))
}

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
