package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// Guard lets requests through to a handler that their sender may make. Others
// are answered 401 or 403, and their connections closed: an idle one would keep
// others out.
type Guard struct {
	Authenticator *Authenticator // required
	Authorizer    Authorizer     // required
	Node          string
	Handler       http.Handler // required
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, known := g.Authenticator.User(r)
	if !known {
		w.Header().Set("Connection", "close")
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	a := Of(r, g.Node)
	if !g.Authorizer.Allows(user, a) {
		w.Header().Set("Connection", "close")
		http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=[%s])", user.Name, a.Verb, strings.Join(a.Subresources, ",")), http.StatusForbidden)
		return
	}
	g.Handler.ServeHTTP(w, r)
}
