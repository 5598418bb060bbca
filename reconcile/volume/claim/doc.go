// Package claim stores the data and the bindings of the PersistentVolumeClaims of pods that
// do not belong to a cluster, and records which pods use which claim.
package claim

const (
	// Plugin is the directory, in the volumes directory of a pod, with a link to the claim of
	// each volume. The pod uses the claim while the link exists.
	Plugin = "podd~claim"
	// LinksDir is the path of that directory in the directory of the pod.
	LinksDir = "volumes/" + Plugin

	dirMode = 0o750
)
