package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"podd/server"
	"podd/server/kube/request"
)

// Guard lets requests through to a handler that their sender may make, or who that
// is to be taken for, with the User in their context. Others are answered 401 or 403, and their connections
// closed: an idle one would keep others out. So are, with 500, those of whom the
// Authorizer cannot tell; why is for the node's log and not for them.
type Guard struct {
	Authenticator *Authenticator // required
	Authorizer    Authorizer     // required
	Node          string
	// OfCluster says that the node's cluster has an API of its own: what the
	// Kubernetes API shows here is the node's then, for who may proxy to it, and
	// grants in the objects' namespaces do not count.
	OfCluster bool
	Handler   http.Handler // required
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, known := g.Authenticator.User(r)
	if !known {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, r, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if user.Name != anonymous {
		server.Admit(r)
	}
	user, err := g.impersonated(r.Context(), user, r.Header)
	if err != nil {
		refuse(w, r, server.StatusOf(err), err.Error())
		return
	}
	a := Of(r, g.Node)
	if g.OfCluster && request.Is(r.URL.Path) {
		a = a.proxied(g.Node)
	}
	switch may, err := g.Authorizer.Allows(r.Context(), user, a); {
	case err != nil:
		refuse(w, r, http.StatusInternalServerError, undecided(user, a))
		return
	case !may:
		refuse(w, r, http.StatusForbidden, forbidden(user, a, request.Is(r.URL.Path)))
		return
	}
	g.Handler.ServeHTTP(w, r.WithContext(With(r.Context(), user)))
}

// refuse speaks to clients of each API in its own way.
func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	w.Header().Set("Connection", "close")
	if request.Is(r.URL.Path) {
		server.ReplyStatus(w, &server.Error{Status: status, Message: message})
		return
	}
	http.Error(w, message, status)
}

func undecided(u User, a Attributes) string {
	return fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s)", u.Name, a.Verb, a.Resource, strings.Join(a.Subresources, ","))
}

func forbidden(u User, a Attributes, kube bool) string {
	switch {
	case !kube:
		return fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", u.Name, a.Verb, a.Subresources)
	case a.Resource == "":
		return fmt.Sprintf("forbidden: User %q cannot %s path %q", u.Name, a.Verb, a.Path)
	}
	resource, name, where := a.Resource, "", "at the cluster scope"
	if a.Subresources[0] != "" {
		resource += "/" + a.Subresources[0]
	}
	if a.Name != "" {
		name = fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return fmt.Sprintf("%s%s is forbidden: User %q cannot %s resource %q in API group %q %s", a.Resource, name, u.Name, a.Verb, resource, a.Group, where)
}

// userKey is that of the context's User.
type userKey struct{}

// With says in a context who asks.
func With(ctx context.Context, u User) context.Context { return context.WithValue(ctx, userKey{}, u) }

// From is who asks; the zero User where nobody said.
func From(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}

// As has a handler serve everyone as one user, who may do everything. To be taken
// for somebody else, who may less, is refused rather than overlooked.
func As(u User, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, err := wish(r.Header); err != nil || name != "" {
			refuse(w, r, http.StatusBadRequest, "who asks here is "+u.Name+", and is taken for nobody else; ask the kubelet's port")
			return
		}
		h.ServeHTTP(w, r.WithContext(With(r.Context(), u)))
	})
}
