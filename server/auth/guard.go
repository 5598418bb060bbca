package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"podd/server"
	"podd/server/kube/request"
)

// A Guard passes a request to its Handler if the sender, or the user that the sender impersonates,
// is authorized. UserFrom returns the authorized user from the context of the request. A Guard
// responds to other requests with 401 or 403. It also closes their connection, because an idle
// connection occupies a slot that other clients need. If the Authorizer fails, the response is 500
// without the cause; the Authorizer logs the cause.
type Guard struct {
	Authenticator *Authenticator // required
	Authorizer    Authorizer     // required
	Node          string
	// InCluster is set if the node belongs to a cluster with its own API server. If it is set,
	// requests for the Kubernetes API require the permission to proxy to the node. Permissions in
	// the namespaces of the objects are not sufficient.
	InCluster bool
	Handler   http.Handler // required
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, ok := g.Authenticator.authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		replyError(w, r, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if user.Name != anonymousUser {
		server.MarkAuthenticated(r)
	}
	user.IsForwarded = g.InCluster && server.IsForwarded(r)
	user, err := g.impersonatedUser(r.Context(), user, r.Header)
	if err != nil {
		replyError(w, r, server.HTTPStatus(err), err.Error())
		return
	}
	a := RequestAttributes(r, g.Node)
	if g.InCluster && request.IsAPI(r.URL.Path) {
		a = a.proxyAttributes(g.Node)
		if a.needsRoot() && user.IsForwarded {
			// Reject the request, because the user is the API server, which forwards the request,
			// and the original client is unknown.
			replyError(w, r, http.StatusForbidden, forbiddenMessage(user, a, true))
			return
		}
	}
	switch isAllowed, err := g.Authorizer.Allows(r.Context(), user, a); {
	case err != nil:
		replyError(w, r, http.StatusInternalServerError, undecidedMessage(user, a))
		return
	case !isAllowed:
		replyError(w, r, http.StatusForbidden, forbiddenMessage(user, a, request.IsAPI(r.URL.Path)))
		return
	}
	g.Handler.ServeHTTP(w, r.WithContext(WithUser(r.Context(), user)))
}

// replyError responds with an error in the format of the requested API: a Status object for the
// Kubernetes API, and plain text for the kubelet's API.
func replyError(w http.ResponseWriter, r *http.Request, status int, message string) {
	w.Header().Set("Connection", "close")
	if request.IsAPI(r.URL.Path) {
		server.ReplyStatus(w, &server.Error{Status: status, Message: message})
		return
	}
	http.Error(w, message, status)
}

// undecidedMessage returns the kubelet's message for a request about which the Authorizer
// could not decide.
func undecidedMessage(u User, a Attributes) string {
	return fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s)", u.Name, a.Verb, a.Resource, strings.Join(a.Subresources, ","))
}

// forbiddenMessage returns the message for a request that is not allowed. If isKubernetesAPI is set,
// it is the message of the API server, and otherwise the message of the kubelet.
func forbiddenMessage(u User, a Attributes, isKubernetesAPI bool) string {
	switch {
	case !isKubernetesAPI:
		return fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", u.Name, a.Verb, a.Subresources)
	case a.Resource == "":
		return fmt.Sprintf("forbidden: User %q cannot %s path %q", u.Name, a.Verb, a.Path)
	}
	resource, name, scope := a.Resource, "", "at the cluster scope"
	if a.Subresources[0] != "" {
		resource += "/" + a.Subresources[0]
	}
	if a.Name != "" {
		name = fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return fmt.Sprintf("%s%s is forbidden: User %q cannot %s resource %q in API group %q %s", a.Resource, name, u.Name, a.Verb, resource, a.Group, scope)
}

// userKey is the context key of the User.
type userKey struct{}

// WithUser returns a context that carries the user of a request.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns the user that WithUser added to ctx, or the zero User.
func UserFrom(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}

// ServeAs returns a handler that serves every request as u. It rejects requests
// with impersonation headers, because ignoring them would give a client more rights
// than it requested.
func ServeAs(u User, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, err := parseImpersonation(r.Header); err != nil || name != "" {
			replyError(w, r, http.StatusBadRequest, "impersonation is not supported on this socket, where every request has the permissions of "+u.Name+"; use the kubelet's port")
			return
		}
		h.ServeHTTP(w, r.WithContext(WithUser(r.Context(), u)))
	})
}
