package registry

import (
	"crypto/subtle"
	"net/http"
)

func (r *Registry) private() bool { return r.options.User != "" || r.options.Password != "" }

// authorized rejects requests without the password, if there is one.
func (r *Registry) authorized(next http.Handler) http.Handler {
	if !r.private() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if !same(user, r.options.User) || !same(password, r.options.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="podd.test"`)
			refuse(w, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
