package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"podd/server"
)

// Headers with which a client impersonates a user, as kubectl does for --as and
// --as-group.
const (
	userHeader              = "Impersonate-User"
	groupHeader             = "Impersonate-Group"
	impersonateHeaderPrefix = "Impersonate-" // podd rejects the other headers with this prefix, which set a UID or extra values
)

// impersonatedUser returns the user whose permissions apply to a request of u: the user that the
// headers name, or u if there are no impersonation headers. u needs permission for RBAC's verb
// impersonate for the name and for each group. The caller checks the permissions of the returned
// user. If impersonatedUser returns an error, the caller must send it as the response to the
// request.
func (g *Guard) impersonatedUser(ctx context.Context, u User, h http.Header) (User, error) {
	name, groups, err := parseImpersonation(h)
	if err != nil || name == "" {
		return u, err
	}
	for _, a := range impersonationAttributes(name, groups) {
		switch isAllowed, err := g.Authorizer.Allows(ctx, u, a); {
		case err != nil:
			return User{}, &server.Error{Status: http.StatusInternalServerError, Message: undecidedMessage(u, a)}
		case !isAllowed:
			return User{}, &server.Error{Status: http.StatusForbidden, Message: forbiddenMessage(u, a, true)}
		}
	}
	return User{Name: name, Groups: withImplicitGroups(name, groups), IsForwarded: u.IsForwarded}, nil
}

// parseImpersonation returns the user name and the groups in the impersonation headers.
// The name is empty if there are no such headers.
func parseImpersonation(h http.Header) (name string, groups []string, err error) {
	newBadRequest := func(message string) (string, []string, error) {
		return "", nil, &server.Error{Status: http.StatusBadRequest, Message: message}
	}
	for header := range h {
		if strings.HasPrefix(header, impersonateHeaderPrefix) && header != userHeader && header != groupHeader {
			return newBadRequest(header + ": unsupported header; podd supports impersonation of a user name and groups only")
		}
	}
	users, groups := h.Values(userHeader), h.Values(groupHeader)
	switch {
	case len(users) == 0 && len(groups) == 0:
		return "", nil, nil
	case len(users) != 1 || users[0] == "":
		return newBadRequest("impersonation needs exactly one user name, in the header " + userHeader)
	}
	return users[0], groups, nil
}

// impersonationAttributes returns the requests that a client must be allowed to make in order to
// impersonate a user with this name and these groups.
func impersonationAttributes(name string, groups []string) []Attributes {
	attributes := []Attributes{{Verb: impersonateVerb, Resource: "users", Name: name, Subresources: []string{""}}}
	if namespace, account, isServiceAccount := parseServiceAccount(name); isServiceAccount {
		attributes[0].Resource, attributes[0].Namespace, attributes[0].Name = "serviceaccounts", namespace, account
	}
	for _, group := range groups {
		attributes = append(attributes, Attributes{Verb: impersonateVerb, Resource: "groups", Name: group, Subresources: []string{""}})
	}
	return attributes
}

// withImplicitGroups adds the groups that the API server adds to every
// authenticated user, to service accounts and to system:anonymous.
func withImplicitGroups(name string, groups []string) []string {
	groups = slices.Clone(groups)
	if namespace, _, isServiceAccount := parseServiceAccount(name); isServiceAccount && len(groups) == 0 {
		groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	switch hasGroup := slices.Contains(groups, unauthenticatedGroup); {
	case hasGroup:
	case name == anonymousUser:
		groups = append(groups, unauthenticatedGroup)
	case !slices.Contains(groups, authenticatedGroup):
		groups = append(groups, authenticatedGroup)
	}
	return groups
}

// parseServiceAccount parses a user name. If it is the user name of a service account,
// parseServiceAccount returns the namespace and the name of the service account. Otherwise ok is
// false.
func parseServiceAccount(user string) (namespace, name string, ok bool) {
	namespaceAndName, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(namespaceAndName, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
