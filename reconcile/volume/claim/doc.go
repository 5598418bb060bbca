// Package claim manages the PersistentVolumeClaims of pods that do not belong to a cluster. It
// stores the data and the bindings of the claims, and records which pods use which claim.
package claim

const (
	// PluginDir is the name of a directory in the volumes directory of a pod. It contains, for each
	// volume with a claim, a link with the name of the claim. The pod uses the claim while the link
	// exists.
	PluginDir = "podd~claim"
	// LinksDir is the path of PluginDir, relative to the directory of the pod.
	LinksDir = "volumes/" + PluginDir

	dirMode = 0o750
)
