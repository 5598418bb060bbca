package apiserver

import (
	"net/http"
	"strconv"
)

// A countingTransport calls onRequest after each request.
type countingTransport struct {
	next http.RoundTripper
	// onRequest has the meaning of Options.OnRequest.
	onRequest func(code, method, host string)
}

// RoundTrip implements http.RoundTripper.
func (t *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	code := "<error>" // client-go's value
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	t.onRequest(code, r.Method, r.URL.Host)
	return response, err
}
