package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"podd/server"
)

// maxPorts bounds the ports of one forward.
const maxPorts = 100

func (a *API) exec(w http.ResponseWriter, r *http.Request) {
	if p := a.podOf(w, r); p != nil {
		Exec(w, r, fail, a.Runtime, p, r.PathValue("container"), streams(r.URL.Query()))
	}
}

func (a *API) attach(w http.ResponseWriter, r *http.Request) {
	if p := a.podOf(w, r); p != nil {
		Attach(w, r, fail, a.Runtime, p, r.PathValue("container"), streams(r.URL.Query()))
	}
}

// Exec hands the client over to a command in a container, whose words the query
// has; fail answers with an error.
func Exec(w http.ResponseWriter, r *http.Request, fail Fail, to Runtime, p *server.PodView, container string, s Streams) {
	command := r.URL.Query()["command"]
	s, err := s.valid()
	if err == nil && len(command) == 0 {
		err = bad(http.StatusBadRequest, "no command: give the parameter command once for every word")
	}
	var id string
	if err == nil {
		id, err = containerID(p, container)
	}
	if err != nil {
		fail(w, err)
		return
	}
	pass(w, r, fail, func(ctx context.Context) (string, error) { return to.Exec(ctx, id, command, s) })
}

// Attach hands the client over to a container's own streams.
func Attach(w http.ResponseWriter, r *http.Request, fail Fail, to Runtime, p *server.PodView, container string, s Streams) {
	s, err := s.valid()
	var id string
	if err == nil {
		id, err = containerID(p, container)
	}
	if err != nil {
		fail(w, err)
		return
	}
	pass(w, r, fail, func(ctx context.Context) (string, error) { return to.Attach(ctx, id, s) })
}

func (a *API) portForward(w http.ResponseWriter, r *http.Request) {
	if p := a.podOf(w, r); p != nil {
		Forward(w, r, fail, a.Runtime, p)
	}
}

// Forward hands the client over to ports of a pod.
func Forward(w http.ResponseWriter, r *http.Request, fail Fail, to Runtime, p *server.PodView) {
	ports, err := ports(r.URL.Query())
	switch {
	case err != nil:
		fail(w, err)
	case p.Sandbox == "":
		fail(w, server.NotFound(fmt.Sprintf("pod %q does not run", p.Pod.Name)))
	default:
		pass(w, r, fail, func(ctx context.Context) (string, error) { return to.PortForward(ctx, p.Sandbox, ports) })
	}
}

func streams(q url.Values) Streams {
	return Streams{Stdin: q.Get("input") == "1", Stdout: q.Get("output") == "1", Stderr: q.Get("error") == "1", TTY: q.Get("tty") == "1"}
}

// valid is s as a client can take part in it: a terminal has one output.
func (s Streams) valid() (Streams, error) {
	if s.TTY {
		s.Stderr = false
	}
	if !s.Stdin && !s.Stdout && !s.Stderr {
		return s, bad(http.StatusBadRequest, "you must specify at least 1 of stdin, stdout, stderr")
	}
	return s, nil
}

// ports are those that WebSocket clients name; SPDY ones do it in the stream.
func ports(q url.Values) ([]int32, error) {
	if len(q["port"]) > maxPorts {
		return nil, bad(http.StatusBadRequest, "%d ports are more than %d", len(q["port"]), maxPorts)
	}
	var all []int32
	for _, text := range q["port"] {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, bad(http.StatusBadRequest, "%.20q is no port", text)
		}
		all = append(all, int32(n))
	}
	return all, nil
}

// pass hands the client over to the runtime's own server of streams, at the URL
// that ask gets, whatever protocol they agree on. fail answers with an error.
func pass(w http.ResponseWriter, r *http.Request, fail Fail, ask func(context.Context) (string, error)) {
	text, err := ask(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	to, err := url.Parse(text)
	if err != nil || to.Host == "" {
		fail(w, bad(http.StatusInternalServerError, "the runtime named no address for the stream"))
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = to, to.Host
			p.Out.Header.Del("Authorization") // meant for podd
		},
		Transport: transportTo(to), ModifyResponse: hearOut,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			fail(w, bad(http.StatusBadGateway, "the runtime's server of streams: %v", err))
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // that one side went is no news
	}
	proxy.ServeHTTP(w, r)
}

// streamDial bounds the way to the runtime's server, which is on this machine.
const streamDial = 10 * time.Second

// transportTo is good for one request. On this machine's own addresses the
// runtime's certificate, which it made for itself, is nobody's to check.
func transportTo(to *url.URL) *http.Transport {
	ip, err := netip.ParseAddr(to.Hostname())
	local := to.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return &http.Transport{
		DialContext:       (&net.Dialer{Timeout: streamDial}).DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: local},
		DisableKeepAlives: true, DisableCompression: true,
	}
}
