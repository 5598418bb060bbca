// Package refs lists the objects to which a pod refers (ConfigMaps, Secrets, claims,
// ClusterTrustBundles, tokens and the objects for CSI drivers) and looks them up: in the manifests of
// the pod's source, or in the objects that an API server has returned.
//
//	List ──▶ []Ref ── Resolve ──▶ Resolved: the objects, or the reason why the pod must wait
//
// ResolveSet does this for all pods of a Set. Claims binds claims of manifests to
// PersistentVolumes, as the controllers of a cluster do.
package refs
