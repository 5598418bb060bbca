package apiserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

// TestCountingTransport checks that all clients of a connection call OnRequest for each response and
// for each error.
func TestCountingTransport(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	o := &Options{
		ContentType: "application/json", QPS: 100, Burst: 100,
		OnRequest: func(code, method, host string) { got = append(got, code+" "+method+" "+host) },
	}
	c, err := New(&rest.Config{Host: s.URL}, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseConnections()
	if err := c.Core.Get().Resource("pods").Do(t.Context()).Error(); err == nil {
		t.Error("GET of missing pods: got no error, want one")
	}
	c.CloseConnections()
	s.Close()
	if err := c.Heartbeats.Patch("application/json").Resource("nodes").Name("n1").Do(t.Context()).Error(); err == nil {
		t.Error("PATCH after the server was closed: got no error, want one")
	}
	if want := []string{"404 GET " + u.Host, "<error> PATCH " + u.Host}; !slices.Equal(got, want) {
		t.Errorf("OnRequest: got calls %q, want %q", got, want)
	}
}
