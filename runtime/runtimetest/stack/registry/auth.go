package registry

import (
	"crypto/subtle"
	"net/http"
)

func (r *Registry) needsPassword() bool { return r.options.User != "" || r.options.Password != "" }

// authorize rejects requests without the password, if the registry requires a password.
func (r *Registry) authorize(next http.Handler) http.Handler {
	if !r.needsPassword() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if !equalConstantTime(user, r.options.User) || !equalConstantTime(password, r.options.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="podd.test"`)
			writeError(w, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func equalConstantTime(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
