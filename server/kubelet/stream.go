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
)

// maxPorts bounds the ports of one forward.
const maxPorts = 100

func (a *API) exec(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	command := q["command"]
	s, err := streams(q)
	if err == nil && len(command) == 0 {
		err = fmt.Errorf("no command: give the parameter command once for every word")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if id := a.containerOf(w, r); id != "" {
		pass(w, r, func(ctx context.Context) (string, error) { return a.Runtime.Exec(ctx, id, command, s) })
	}
}

func (a *API) attach(w http.ResponseWriter, r *http.Request) {
	s, err := streams(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if id := a.containerOf(w, r); id != "" {
		pass(w, r, func(ctx context.Context) (string, error) { return a.Runtime.Attach(ctx, id, s) })
	}
}

func (a *API) portForward(w http.ResponseWriter, r *http.Request) {
	ports, err := ports(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := a.podOf(w, r)
	if p == nil {
		return
	}
	if p.Sandbox == "" {
		http.Error(w, fmt.Sprintf("pod %q does not run", p.Pod.Name), http.StatusNotFound)
		return
	}
	pass(w, r, func(ctx context.Context) (string, error) { return a.Runtime.PortForward(ctx, p.Sandbox, ports) })
}

// streams reads which of them a client takes part in. A terminal has one output.
func streams(q url.Values) (Streams, error) {
	s := Streams{Stdin: q.Get("input") == "1", Stdout: q.Get("output") == "1", Stderr: q.Get("error") == "1", TTY: q.Get("tty") == "1"}
	if s.TTY {
		s.Stderr = false
	}
	if !s.Stdin && !s.Stdout && !s.Stderr {
		return s, fmt.Errorf("you must specify at least 1 of stdin, stdout, stderr")
	}
	return s, nil
}

// ports are those that WebSocket clients name; SPDY ones do it in the stream.
func ports(q url.Values) ([]int32, error) {
	if len(q["port"]) > maxPorts {
		return nil, fmt.Errorf("%d ports are more than %d", len(q["port"]), maxPorts)
	}
	var all []int32
	for _, text := range q["port"] {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%.20q is no port", text)
		}
		all = append(all, int32(n))
	}
	return all, nil
}

// pass hands the client over to the runtime's own server of streams, whatever
// protocol they agree on.
func pass(w http.ResponseWriter, r *http.Request, ask func(context.Context) (string, error)) {
	text, err := ask(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	to, err := url.Parse(text)
	if err != nil || to.Host == "" {
		http.Error(w, "the runtime named no address for the stream", http.StatusInternalServerError)
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = to, to.Host
			p.Out.Header.Del("Authorization") // meant for podd
		},
		Transport: transportTo(to),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the runtime's server of streams: "+err.Error(), http.StatusBadGateway)
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
