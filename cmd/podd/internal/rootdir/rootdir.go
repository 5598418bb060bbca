// Package rootdir returns the paths of the directories in podd's root directory. The parameter
// root is the path of the root directory.
package rootdir

import (
	"path/filepath"

	"podd/reconcile/journal"
	"podd/reconcile/volume"
)

// SourcesPath returns the path of the directory with the last valid content of the sources.
func SourcesPath(root string) string { return filepath.Join(root, "sources") }

// ClaimsPath returns the path of the directory with the data of PersistentVolumeClaims. This data
// is kept when pods are removed. The daemon and "podd run --runonce" share the directory.
func ClaimsPath(root string) string { return filepath.Join(root, "claims") }

// ImagesPath returns the path of the file with the last use of images.
func ImagesPath(root string) string { return filepath.Join(root, "images.json") }

// DevicesPath returns the path of the file with the devices that are allocated to pods.
func DevicesPath(root string) string { return filepath.Join(root, "devices.json") }

// DevicePluginsPath returns the path of the directory with the sockets of device plugins.
func DevicePluginsPath(root string) string { return filepath.Join(root, "device-plugins") }

// NodeSyncedPath returns the path of the file that exists if podd has synced the Node of this host.
func NodeSyncedPath(root string) string { return filepath.Join(root, "node-synced") }

// PodsPath returns the path of the directory that contains a directory for each pod.
func PodsPath(root string) string { return filepath.Join(root, "pods") }

// RunsPath returns the path of the directory that contains the root directories of runs, which are processes
// of "podd run --runonce".
func RunsPath(root string) string { return filepath.Join(root, "once") }

// PodDirs returns a volume.Dir for callers that only read the directories of pods.
func PodDirs(root string) volume.Dir { return volume.Dir{Root: PodsPath(root)} }

// Journals returns the store of the journals of pods.
func Journals(root string) journal.Store {
	return journal.Store{Root: PodsPath(root), HasData: PodDirs(root).HasData}
}
