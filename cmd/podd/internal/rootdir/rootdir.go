// Package rootdir names the directories below podd's root directory.
package rootdir

import (
	"path/filepath"

	"podd/reconcile/journal"
	"podd/reconcile/volume"
)

// Sources returns the directory with the last valid content of the sources.
func Sources(root string) string { return filepath.Join(root, "sources") }

// Claims returns the directory with the data of claims, which outlives pods. Runs to
// completion share it.
func Claims(root string) string { return filepath.Join(root, "claims") }

// Pods returns the directory that contains the directories of pods.
func Pods(root string) string { return filepath.Join(root, "pods") }

// PodDirs returns the pod directories of a root directory, for reading.
func PodDirs(root string) volume.Dir { return volume.Dir{Root: Pods(root)} }

// Journals returns the journals of the pods.
func Journals(root string) journal.Store {
	return journal.Store{Root: Pods(root), HasData: PodDirs(root).HasData}
}
