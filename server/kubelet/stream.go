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

// maxPorts limits the number of ports of a port-forward request.
const maxPorts = 100

func (a *API) exec(w http.ResponseWriter, r *http.Request) {
	if p := a.findPod(w, r); p != nil {
		Exec(w, r, replyError, a.Runtime, p, r.PathValue("container"), parseStreams(r.URL.Query()))
	}
}

func (a *API) attach(w http.ResponseWriter, r *http.Request) {
	if p := a.findPod(w, r); p != nil {
		Attach(w, r, replyError, a.Runtime, p, r.PathValue("container"), parseStreams(r.URL.Query()))
	}
}

// Exec connects the client to a command in a container. The query has the command's arguments.
// Errors are passed to handleError.
func Exec(w http.ResponseWriter, r *http.Request, handleError ErrorHandler, target Runtime, p *server.PodView, container string, s Streams) {
	command := r.URL.Query()["command"]
	s, err := s.normalize()
	if err == nil && len(command) == 0 {
		err = newError(http.StatusBadRequest, "no command; pass the parameter command once for each argument")
	}
	var id string
	if err == nil {
		id, err = containerID(p, container)
	}
	if err != nil {
		handleError(w, err)
		return
	}
	proxyStream(w, r, handleError, func(ctx context.Context) (string, error) { return target.Exec(ctx, id, command, s) })
}

// Attach connects the client to the streams of a container's main process.
func Attach(w http.ResponseWriter, r *http.Request, handleError ErrorHandler, target Runtime, p *server.PodView, container string, s Streams) {
	s, err := s.normalize()
	var id string
	if err == nil {
		id, err = containerID(p, container)
	}
	if err != nil {
		handleError(w, err)
		return
	}
	proxyStream(w, r, handleError, func(ctx context.Context) (string, error) { return target.Attach(ctx, id, s) })
}

func (a *API) portForward(w http.ResponseWriter, r *http.Request) {
	if p := a.findPod(w, r); p != nil {
		PortForward(w, r, replyError, a.Runtime, p)
	}
}

// PortForward connects the client to ports of a pod.
func PortForward(w http.ResponseWriter, r *http.Request, handleError ErrorHandler, target Runtime, p *server.PodView) {
	ports, err := parsePorts(r.URL.Query())
	switch {
	case err != nil:
		handleError(w, err)
	case p.SandboxID == "":
		handleError(w, server.NewNotFoundError(fmt.Sprintf("pod %q is not running", p.Pod.Name)))
	default:
		proxyStream(w, r, handleError, func(ctx context.Context) (string, error) { return target.PortForward(ctx, p.SandboxID, ports) })
	}
}

func parseStreams(q url.Values) Streams {
	return Streams{Stdin: q.Get("input") == "1", Stdout: q.Get("output") == "1", Stderr: q.Get("error") == "1", TTY: q.Get("tty") == "1"}
}

// normalize returns s without stderr if TTY is set, because a terminal has a single output
// stream. It returns an error if s has no stream.
func (s Streams) normalize() (Streams, error) {
	if s.TTY {
		s.Stderr = false
	}
	if !s.Stdin && !s.Stdout && !s.Stderr {
		return s, newError(http.StatusBadRequest, "you must specify at least 1 of stdin, stdout, stderr")
	}
	return s, nil
}

// parsePorts returns the ports in the query of a WebSocket client. SPDY clients send the
// ports in the stream instead.
func parsePorts(q url.Values) ([]int32, error) {
	if len(q["port"]) > maxPorts {
		return nil, newError(http.StatusBadRequest, "too many ports: %d (limit %d)", len(q["port"]), maxPorts)
	}
	var ports []int32
	for _, text := range q["port"] {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, newError(http.StatusBadRequest, "%.20q is not a port number", text)
		}
		ports = append(ports, int32(n))
	}
	return ports, nil
}

// proxyStream connects the client to the runtime's streaming server at the URL that streamURL
// returns. The client and the runtime negotiate the protocol. Errors are passed to handleError.
func proxyStream(w http.ResponseWriter, r *http.Request, handleError ErrorHandler, streamURL func(context.Context) (string, error)) {
	text, err := streamURL(r.Context())
	if err != nil {
		handleError(w, err)
		return
	}
	target, err := url.Parse(text)
	if err != nil || target.Host == "" {
		handleError(w, newError(http.StatusInternalServerError, "the runtime returned no valid URL of its streaming server"))
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, target.Host
			p.Out.Header.Del("Authorization") // the header contains a credential for podd, which must not be sent to the runtime
		},
		Transport: newTransport(target), ModifyResponse: keepReading,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			handleError(w, newError(http.StatusBadGateway, "connecting to the runtime's streaming server: %v", err))
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // do not log errors, because they occur whenever a client disconnects
	}
	proxy.ServeHTTP(w, r)
}

// dialTimeout limits the time to connect to the runtime's streaming server. It is short because the
// server is on the same host.
const dialTimeout = 10 * time.Second

// newTransport returns a Transport for one request. It does not verify the server's certificate on
// loopback addresses, because the runtime uses a self-signed certificate.
func newTransport(target *url.URL) *http.Transport {
	ip, err := netip.ParseAddr(target.Hostname())
	isLoopback := target.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return &http.Transport{
		DialContext:       (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: isLoopback},
		DisableKeepAlives: true, DisableCompression: true,
	}
}
