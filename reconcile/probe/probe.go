// Package probe makes one attempt of a container's probe over the network, and
// an httpGet hook of its life in the same way.
//
//	v1.ProbeHandler + Target ─▶ Attempt ─▶ Result | error
//	v1.LifecycleHandler + Target ─▶ Call ─▶ error
//
// A Result is the container's answer or silence; an error says that there was
// nobody to ask or no way to ask, and counts for nothing. When to try, and what
// the answers come to, package plan decides. What is asked, and what passes, is
// as with a kubelet of Kubernetes 1.34.
//
// What a container says is hostile: it is read up to a limit and shown as one
// short line without control characters. Header values are never shown.
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
)

// userAgent is what servers and their logs know probes by.
const userAgent = "kube-probe/1.34"

// Target is the container that is asked.
type Target struct {
	// IP is the pod's first address, for handlers that name no host.
	IP    string
	Ports []v1.ContainerPort
	// Timeout bounds the whole attempt; a slow answer is a failure. A hook may
	// have none: 0.
	Timeout time.Duration
}

// Result is what the container answered.
type Result struct {
	Passed bool
	// Warning says that it passed, and that Message is why somebody should look.
	Warning bool
	// Message is one line that is fit for users.
	Message string
}

// Attempt asks once. handler has httpGet, tcpSocket or grpc. It ends with an
// error soon after ctx is done.
func Attempt(ctx context.Context, handler *v1.ProbeHandler, t Target) (Result, error) {
	var r Result
	var err error
	switch {
	case handler.HTTPGet != nil:
		r, err = t.get(ctx, handler.HTTPGet)
	case handler.TCPSocket != nil:
		r, err = t.connect(ctx, handler.TCPSocket)
	case handler.GRPC != nil:
		r, err = t.check(ctx, handler.GRPC)
	default:
		err = errors.New("it has no handler that podd knows")
	}
	// Whoever gave up gets no verdict.
	if gone := ctx.Err(); gone != nil {
		return Result{}, gone
	}
	r.Message = Line(r.Message)
	return r, err
}

func failed(message string) (Result, error) { return Result{Message: message}, nil }

// host is where a handler asks.
func (t Target) host(own string) (string, error) {
	switch {
	case own != "":
		return own, nil
	case t.IP == "":
		return "", errors.New("the pod has no address")
	}
	return t.IP, nil
}

// port is a number, or that of the container's port with the name.
func (t Target) port(p intstr.IntOrString) (string, error) {
	n := int(p.IntVal)
	if p.Type == intstr.String {
		n = t.named(p.StrVal)
	}
	if n < 1 || n > 65535 {
		return "", errors.New("the container has no port " + strconv.Quote(Line(p.String())))
	}
	return strconv.Itoa(n), nil
}

func (t Target) named(name string) int {
	for i := range t.Ports {
		if t.Ports[i].Name == name {
			return int(t.Ports[i].ContainerPort)
		}
	}
	n, err := strconv.Atoi(name) // a number that was put in quotes
	if err != nil {
		return 0
	}
	return n
}

// dialer leaves no connection in TIME_WAIT for longer than a second: probes of
// many pods, each second, would use up the ports.
func dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			// Without it the probe works as well.
			_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 1})
		})
	}}
}
