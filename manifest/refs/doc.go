// Package refs lists the objects to which a pod refers, such as ConfigMaps, Secrets and claims, and
// looks them up. It finds them in the manifests of the pod's source, or in the objects that an API
// server has returned.
//
//	List ──▶ []Ref ── Resolve ──▶ Resolved: the objects, or the reason why the pod must wait
//
// ResolveSet does this for all pods of a Set. Claims binds claims of manifests to
// PersistentVolumes, as the controllers of a cluster do.
package refs
