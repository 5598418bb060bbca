// Package rootdir returns the paths of the directories in podd's root directory.
package rootdir

import (
	"path/filepath"

	"podd/reconcile/journal"
	"podd/reconcile/volume"
)

// Sources returns the directory with the last valid content of the sources.
func Sources(root string) string { return filepath.Join(root, "sources") }

// Claims returns the directory with the data of PersistentVolumeClaims, which outlives
// pods. The daemon and runs to completion share this directory.
func Claims(root string) string { return filepath.Join(root, "claims") }

// Pods returns the directory that contains the directories of pods.
func Pods(root string) string { return filepath.Join(root, "pods") }

// PodDirs returns the pod directories, for reading.
func PodDirs(root string) volume.Dir { return volume.Dir{Root: Pods(root)} }

// Journals returns the journals of the pods.
func Journals(root string) journal.Store {
	return journal.Store{Root: Pods(root), HasData: PodDirs(root).HasData}
}
