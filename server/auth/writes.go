package auth

import (
	"context"
	"slices"

	rbac "k8s.io/api/rbac/v1"
)

// WriteAuthorizer is an Authorizer that reserves two kinds of requests for system:masters. With
// each kind, a user can become root on the node. Therefore WriteAuthorizer rejects these requests
// of other users even if the wrapped Authorizer allows them:
//
//   - changes to what runs on the node, because a pod or a container can be privileged;
//   - impersonation of system:masters. Members of this group may change the pods on the node.
//
// A reserved request is allowed only if the wrapped Authorizer also allows it. The wrapped
// Authorizer alone decides about all other requests.
type WriteAuthorizer struct{ Authorizer }

// writableResources are the resources that can be written, and writableGroups are their API groups.
// writeVerbs are the verbs that write them. writableSubresources are the subresources that can be
// written; "" is the resource itself.
var (
	writableGroups       = []string{"", "certificates.k8s.io", "storage.k8s.io"}
	writableResources    = []string{"clustertrustbundles", "configmaps", "csidrivers", "persistentvolumeclaims", "persistentvolumes", "pods", "secrets"}
	writeVerbs           = []string{"create", "update", "patch", "delete", "deletecollection"}
	writableSubresources = []string{"", "resize", "ephemeralcontainers"}
)

// impersonateVerb is the RBAC verb for impersonation.
const impersonateVerb = "impersonate"

// Allows implements Authorizer.
func (w WriteAuthorizer) Allows(ctx context.Context, u User, a Attributes) (bool, error) {
	if a.needsRoot() && !u.mayWrite() {
		return false, nil
	}
	return w.Authorizer.Allows(ctx, u, a)
}

// isRoot reports whether the user is a member of system:masters. Only the groups of a user matter.
func (u *User) isRoot() bool { return slices.Contains(u.Groups, MastersGroup) }

// mayWrite reports whether the user may make the requests that WriteAuthorizer reserves.
func (u *User) mayWrite() bool { return u.isRoot() && !u.IsForwarded }

// needsRoot reports whether the attributes include a request that WriteAuthorizer reserves. A
// wildcard includes every verb or resource, and an empty name includes every object.
func (a *Attributes) needsRoot() bool { return a.isWrite() || a.impersonatesRoot() }

func (a *Attributes) isWrite() bool {
	return isWritableGroup(a.Group) && (slices.Contains(writableResources, a.Resource) || a.Resource == rbac.ResourceAll) &&
		(slices.Contains(writeVerbs, a.Verb) || a.Verb == rbac.VerbAll) &&
		slices.ContainsFunc(a.Subresources, func(part string) bool { return part == rbac.ResourceAll || slices.Contains(writableSubresources, part) })
}

func (a *Attributes) impersonatesRoot() bool {
	return a.isInCoreGroup() && (a.Resource == "groups" || a.Resource == rbac.ResourceAll) &&
		(a.Verb == impersonateVerb || a.Verb == rbac.VerbAll) &&
		(a.Name == "" || a.Name == MastersGroup)
}

// isWritableGroup reports whether an API group, or "*", includes a group of writableResources.
func isWritableGroup(group string) bool {
	return group == rbac.APIGroupAll || slices.Contains(writableGroups, group)
}

func (a *Attributes) isInCoreGroup() bool { return a.Group == "" || a.Group == rbac.APIGroupAll }
