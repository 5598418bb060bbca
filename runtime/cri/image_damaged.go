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
	unpack, isUnpack := strings.CutPrefix(cause, "error unpacking image: ")
	// The first text is the complete error of a truncated config. For a truncated file that does not
	// belong to the image, the error contains more text.
	return cause == "unexpected end of JSON input" || isUnpack && strings.Contains(unpack, "wrong diff id") ||
		isUnpack && isBlobLost(unpack) || isLayerLost(cause)
}

// isBlobLost reports whether the text ends with the error of containerd for a blob that does not
// exist, and the other blobs exist.
func isBlobLost(text string) bool {
	text, isLost := strings.CutSuffix(text, ": blob not found: not found")
	_, path, hasPath := strings.Cut(text, " expected at ")
	return isLost && hasPath && isOnlyPartLost(path, filepath.Dir(path))
}

// isLayerLost reports whether text is the error of containerd for the directory of an unpacked layer
// that does not exist, and the directories of other layers exist.
func isLayerLost(text string) bool {
	text, isLost := strings.CutSuffix(text, ": no such file or directory")
	path, isParent := strings.CutPrefix(text, "failed to stat parent: stat ")
	return isLost && isParent && isOnlyPartLost(path, filepath.Dir(filepath.Dir(path)))
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
