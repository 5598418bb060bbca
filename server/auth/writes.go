package auth

import (
	"context"
	"slices"

	rbac "k8s.io/api/rbac/v1"
)

// Writes is an Authorizer that reserves two kinds of requests for system:masters. Each kind makes a
// user root on the node, so Writes rejects them even if the wrapped Authorizer allows them:
//
//   - changes to what runs on the node, because a pod or a container can be privileged;
//   - impersonation of system:masters. Members of this group may change the pods on the node.
//
// The wrapped Authorizer must allow reserved requests, too. It alone decides about all other
// requests.
type Writes struct{ Authorizer }

// writtenResources are the resources of the core group that can be written. writingVerbs are the
// verbs that write them. writtenParts are the subresources that can be written; "" is the resource
// itself.
var (
	writtenResources = []string{"configmaps", "persistentvolumeclaims", "persistentvolumes", "pods", "secrets"}
	writingVerbs     = []string{"create", "update", "patch", "delete", "deletecollection"}
	writtenParts     = []string{"", "resize", "ephemeralcontainers"}
)

// impersonates is the RBAC verb for impersonation.
const impersonates = "impersonate"

// Allows implements Authorizer.
func (w Writes) Allows(ctx context.Context, u User, a Attributes) (bool, error) {
	if a.needsRoot() && !u.mayWrite() {
		return false, nil
	}
	return w.Authorizer.Allows(ctx, u, a)
}

// isRoot reports whether the user is a member of system:masters. No user name, UID or
// extra value has permissions that a policy does not grant.
func (u *User) isRoot() bool { return slices.Contains(u.Groups, Masters) }

// mayWrite reports whether the user may make the requests that Writes reserves.
func (u *User) mayWrite() bool { return u.isRoot() && !u.Forwarded }

// needsRoot reports whether a includes a request that Writes reserves. A wildcard includes
// every verb or resource, an empty name every object.
func (a *Attributes) needsRoot() bool { return a.writes() || a.impersonatesRoot() }

func (a *Attributes) writes() bool {
	return a.inCore() && (slices.Contains(writtenResources, a.Resource) || a.Resource == rbac.ResourceAll) &&
		(slices.Contains(writingVerbs, a.Verb) || a.Verb == rbac.VerbAll) &&
		slices.ContainsFunc(a.Subresources, func(part string) bool { return part == rbac.ResourceAll || slices.Contains(writtenParts, part) })
}

func (a *Attributes) impersonatesRoot() bool {
	return a.inCore() && (a.Resource == "groups" || a.Resource == rbac.ResourceAll) &&
		(a.Verb == impersonates || a.Verb == rbac.VerbAll) &&
		(a.Name == "" || a.Name == Masters)
}

func (a *Attributes) inCore() bool { return a.Group == "" || a.Group == rbac.APIGroupAll }
