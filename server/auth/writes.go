package auth

import (
	"context"
	"slices"

	rbac "k8s.io/api/rbac/v1"
)

// Writes asks more of who wants to change what runs: to create a pod, or a container
// in one, is to be root on the node, whatever a policy says, so it takes root's own
// credential. To all else it says what its Authorizer says.
type Writes struct{ Authorizer }

// written are the resources that are written, of the core group, and the verbs that
// do it.
var (
	writtenResources = []string{"configmaps", "persistentvolumeclaims", "persistentvolumes", "pods", "secrets"}
	writingVerbs     = []string{"create", "update", "patch", "delete", "deletecollection"}
	writtenParts     = []string{"", "resize", "ephemeralcontainers"}
)

// Allows implements Authorizer.
func (w Writes) Allows(ctx context.Context, u User, a Attributes) (bool, error) {
	if a.writes() && !slices.Contains(u.Groups, Masters) {
		return false, nil
	}
	return w.Authorizer.Allows(ctx, u, a)
}

func (a *Attributes) writes() bool {
	return (a.Group == "" || a.Group == rbac.APIGroupAll) && (slices.Contains(writtenResources, a.Resource) || a.Resource == rbac.ResourceAll) &&
		(slices.Contains(writingVerbs, a.Verb) || a.Verb == rbac.VerbAll) &&
		slices.ContainsFunc(a.Subresources, func(part string) bool { return slices.Contains(writtenParts, part) })
}
