// Package probe runs one attempt of a container's network probe, and httpGet lifecycle hooks.
//
//	v1.ProbeHandler     + Target ─▶ Attempt      ─▶ Result | error
//	v1.LifecycleHandler + Target ─▶ CallHTTPHook ─▶ error
//
// A Result is a success or failure of the container; a missing response is a failure. If the probe
// could not be carried out, an error is returned, which counts neither as success nor as failure.
// Package plan decides when to probe and applies the thresholds. The requests and the criteria of
// success are the same as in the kubelet of Kubernetes.
//
// Responses of a container are untrusted: they are read up to a limit and shown as one short line
// without control characters. Header values are never shown.
package probe

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/manifest"
	"podd/manifest/wording"
)

// userAgent is the user agent of the kubelet's probes.
var userAgent = "kube-probe/" + manifest.KubernetesRelease()

// A Target describes the container to which a probe or hook is sent.
type Target struct {
	// IP is the first address of the pod, for handlers without a host. It is "" if the pod has no
	// address yet.
	IP    string
	Ports []v1.ContainerPort
	// Timeout limits the whole attempt. If it expires, a probe fails. For a hook, 0 means no limit.
	Timeout time.Duration
}

// A Result is the result of a probe attempt.
type Result struct {
	Passed bool
	// IsWarning reports whether the attempt passed with the warning in Message.
	IsWarning bool
	// Message is one line for users.
	Message string
}

// Attempt runs a probe with an httpGet, tcpSocket or grpc handler once. It returns an error
// if the probe could not be carried out. It returns soon after ctx is done.
func Attempt(ctx context.Context, handler *v1.ProbeHandler, t Target) (Result, error) {
	var r Result
	var err error
	switch {
	case handler.HTTPGet != nil:
		r, err = t.probeHTTP(ctx, handler.HTTPGet)
	case handler.TCPSocket != nil:
		r, err = t.probeTCP(ctx, handler.TCPSocket)
	case handler.GRPC != nil:
		r, err = t.probeGRPC(ctx, handler.GRPC)
	default:
		err = errors.New("the probe has no supported handler")
	}
	// A canceled attempt has no result.
	if ctxErr := ctx.Err(); ctxErr != nil {
		return Result{}, ctxErr
	}
	r.Message = wording.FirstLine(r.Message)
	return r, err
}

// newFailure returns the Result of a failed attempt.
func newFailure(message string) (Result, error) { return Result{Message: message}, nil }

// host returns the host of a request. It is handlerHost, or the pod's address if handlerHost is "".
func (t Target) host(handlerHost string) (string, error) {
	switch {
	case handlerHost != "":
		return handlerHost, nil
	case t.IP == "":
		return "", errors.New("the pod has no address")
	}
	return t.IP, nil
}

// UsesPodAddress reports whether a probe with the handler h is sent to the pod's address. This is
// the case if h specifies no host.
func UsesPodAddress(h *v1.ProbeHandler) bool {
	switch {
	case h.HTTPGet != nil:
		return h.HTTPGet.Host == ""
	case h.TCPSocket != nil:
		return h.TCPSocket.Host == ""
	}
	return true
}

// port returns p if p is a number. Otherwise it returns the number of the container port with this
// name.
func (t Target) port(p intstr.IntOrString) (string, error) {
	n := int(p.IntVal)
	if p.Type == intstr.String {
		n = t.namedPort(p.StrVal)
	}
	if n < 1 || n > 65535 {
		return "", errors.New("the container has no port " + strconv.Quote(wording.FirstLine(p.String())))
	}
	return strconv.Itoa(n), nil
}

// namedPort returns the number of the container port with this name. If there is no such
// port, namedPort returns name as a number, or 0 if name is not a number.
func (t Target) namedPort(name string) int {
	for i := range t.Ports {
		if t.Ports[i].Name == name {
			return int(t.Ports[i].ContainerPort)
		}
	}
	n, err := strconv.Atoi(name) // the manifest may contain a number in quotes
	if err != nil {
		return 0
	}
	return n
}

// newDialer returns a dialer. Its closed connections stay in TIME_WAIT for at most one second,
// because frequent probes of many pods would otherwise use up the local ports.
func newDialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			// Ignore an error, because the probe works without the option.
			_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 1})
		})
	}}
}
