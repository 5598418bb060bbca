package claim

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime/safepath"
)

// pathSuffix is the suffix of a link that records which local volume a pod uses through a claim.
// The target of the link is a path without symbolic links.
const pathSuffix = ".path"

// RecordPath records that a volume of a pod uses the local PersistentVolume at path. links is the
// open LinksDir of the pod, and name is the name of the volume. path must not contain symbolic
// links. If a path is already recorded for the volume, RecordPath does not replace it.
func RecordPath(links *safepath.Dir, name, path string) error {
	err := unix.Symlinkat(path, links.Fd(), name+pathSuffix)
	if err == unix.EEXIST { // keep the recorded path, because the volume of a claim does not change
		return nil
	}
	return err
}

// NestedVolumes returns the paths of the local volumes below path that pods other than uid use. The
// paths are relative to path, which must not contain symbolic links. pods is the directory of all
// pod directories.
func NestedVolumes(path, pods string, uid types.UID) ([]string, error) {
	uids, err := safepath.Names(pods)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, podUID := range uids {
		dir := filepath.Join(pods, podUID, LinksDir)
		links, err := safepath.Names(dir)
		if err != nil {
			return nil, err
		}
		for _, link := range links {
			if types.UID(podUID) == uid || !strings.HasSuffix(link, pathSuffix) {
				continue
			}
			volume, err := os.Readlink(filepath.Join(dir, link))
			if err != nil {
				continue // ignore the link, because the pod is being removed
			}
			if rel, err := filepath.Rel(path, volume); err == nil && rel != "." && filepath.IsLocal(rel) {
				paths = append(paths, rel)
			}
		}
	}
	return paths, nil
}
