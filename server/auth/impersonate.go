package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"podd/server"
)

// The headers by which a client asks to be taken for somebody else, as with
// kubectl --as and --as-group.
const (
	asUser  = "Impersonate-User"
	asGroup = "Impersonate-Group"
	as      = "Impersonate-" // others are of what podd's users do not have
)

// impersonated is the user that u is to be taken for in a request: u, where it
// asks for nobody else. For each name that it takes on u needs RBAC's verb
// impersonate; the error is an answer.
func (g *Guard) impersonated(ctx context.Context, u User, h http.Header) (User, error) {
	name, groups, err := wish(h)
	if err != nil || name == "" {
		return u, err
	}
	for _, a := range taking(name, groups) {
		switch may, err := g.Authorizer.Allows(ctx, u, a); {
		case err != nil:
			return User{}, &server.Error{Status: http.StatusInternalServerError, Message: undecided(u, a)}
		case !may:
			return User{}, &server.Error{Status: http.StatusForbidden, Message: forbidden(u, a, true)}
		}
	}
	return User{Name: name, Groups: known(name, groups)}, nil
}

// wish is whom headers ask to be taken for; "" for nobody else.
func wish(h http.Header) (name string, groups []string, err error) {
	bad := func(what string) (string, []string, error) {
		return "", nil, &server.Error{Status: http.StatusBadRequest, Message: what}
	}
	for header := range h {
		if strings.HasPrefix(header, as) && header != asUser && header != asGroup {
			return bad(header + ": podd's users have a name and groups, and nothing else to be taken for")
		}
	}
	users, groups := h.Values(asUser), h.Values(asGroup)
	switch {
	case len(users) == 0 && len(groups) == 0:
		return "", nil, nil
	case len(users) != 1 || users[0] == "":
		return bad("to be taken for somebody else needs one name, in " + asUser)
	}
	return users[0], groups, nil
}

// taking is what a user must be allowed to be taken for somebody.
func taking(name string, groups []string) []Attributes {
	all := []Attributes{{Verb: "impersonate", Resource: "users", Name: name, Subresources: []string{""}}}
	if namespace, account, is := serviceAccount(name); is {
		all[0].Resource, all[0].Namespace, all[0].Name = "serviceaccounts", namespace, account
	}
	for _, group := range groups {
		all = append(all, Attributes{Verb: "impersonate", Resource: "groups", Name: group, Subresources: []string{""}})
	}
	return all
}

// known are the groups of who is so called: also those that nobody has to ask for.
func known(name string, groups []string) []string {
	groups = slices.Clone(groups)
	if namespace, _, is := serviceAccount(name); is && len(groups) == 0 {
		groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	switch told := slices.Contains(groups, unauthenticated); {
	case told:
	case name == anonymous:
		groups = append(groups, unauthenticated)
	case !slices.Contains(groups, authenticated):
		groups = append(groups, authenticated)
	}
	return groups
}

func serviceAccount(user string) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(user, "system:serviceaccount:")
	if !is {
		return "", "", false
	}
	namespace, name, is = strings.Cut(rest, ":")
	return namespace, name, is && namespace != "" && name != "" && !strings.Contains(name, ":")
}
