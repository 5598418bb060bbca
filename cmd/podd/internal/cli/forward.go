package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// PortForwardCmd is the podd port-forward command.
type PortForwardCmd struct {
	client.Flags
	PodSelector
	Pod     string   `arg:"" help:"Pod name. The node name at its end may be omitted." complete:"pod"`
	Ports   []string `arg:"" name:"[local:]remote" help:"Local port and port of the pod, by number or name, for example 8080:80. 80 uses the same local port, and :80 a random one." complete:"port"`
	Address []string `default:"localhost" placeholder:"ADDRESS" help:"Addresses to listen on (comma separated). Default: localhost."`
}

// A portMapping maps a local port to a port of the pod.
type portMapping struct{ local, remote uint16 }

// Run forwards connections until it is interrupted.
func (c *PortForwardCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, pod, podArg, err := connectAndFindPod(ctx, c.Flags, c.PodSelector, c.Pod)
	if err != nil {
		return err
	}
	if pod.SandboxID == "" {
		return fmt.Errorf("pod %s is not running; run \"podd why %s\" for the reason", pod.Key(), podArg)
	}
	var forwards []portMapping
	for _, text := range c.Ports {
		f, err := parsePortMapping(pod.Pod, text)
		if err != nil {
			return exit.NewError(exit.Usage, err)
		}
		forwards = append(forwards, f)
	}
	o := &forwarder{client: p, pod: pod, stderr: s.Err}
	defer o.close()
	for _, f := range forwards {
		if err := o.listen(ctx, c.Address, f, s.Out); err != nil {
			return err
		}
	}
	return o.serve(ctx)
}

// parsePortMapping parses "8080:80", "80" or ":80". The remote port may be the name of a port
// of p.
func parsePortMapping(p *v1.Pod, text string) (f portMapping, err error) {
	local, remote, hasLocal := strings.Cut(text, ":")
	if !hasLocal {
		remote = local
	}
	if f.remote, err = podPort(p, remote); err != nil {
		return f, err
	}
	switch {
	case !hasLocal:
		f.local = f.remote
	case local != "":
		n, err := strconv.ParseUint(local, 10, 16)
		if err != nil {
			return f, fmt.Errorf("%q: invalid local port %q", text, local)
		}
		f.local = uint16(n)
	}
	return f, nil
}

// podPort returns the port that text contains: a number, or the name of a port that the pod
// defines.
func podPort(p *v1.Pod, text string) (uint16, error) {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		return uint16(n), nil
	}
	var names []string
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			for _, port := range c.Ports {
				if port.Name == text && text != "" {
					return uint16(port.ContainerPort), nil
				}
				if port.Name != "" {
					names = append(names, port.Name)
				}
			}
		}
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("%q is not a port number, and pod %s/%s has no named ports", text, p.Namespace, p.Name)
	}
	return 0, fmt.Errorf("%q is neither a port number nor a named port of pod %s/%s; the named ports are %s", text, p.Namespace, p.Name, strings.Join(names, ", "))
}

// A forwarder accepts clients on local ports. It opens a connection to podd for each client. podd
// looks up the pod by name for each connection, so that later clients reach the new pod if the pod
// is replaced.
type forwarder struct {
	client    *client.Client
	pod       *server.PodView
	listeners []mappedListener

	mu     sync.Mutex // guards stderr
	stderr io.Writer
}

// A mappedListener is a local listener and the mapping of its port to a port of the pod.
type mappedListener struct {
	net.Listener
	mapping portMapping
}

// listen opens a port on all addresses. For localhost, which has an IPv4 and an IPv6 address,
// listen ignores an error if it can open the port on the other address.
func (o *forwarder) listen(ctx context.Context, addresses []string, f portMapping, out io.Writer) error {
	local := f.local
	for _, address := range addresses {
		hosts := []string{address}
		if address == "localhost" {
			hosts = []string{"127.0.0.1", "::1"}
		}
		var errs []error
		for _, a := range hosts {
			ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(a, strconv.Itoa(int(local))))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			o.listeners = append(o.listeners, mappedListener{ln, f})
			local = uint16(ln.Addr().(*net.TCPAddr).Port) // listen on this port for the remaining addresses, too
			if _, err := fmt.Fprintf(out, "Forwarding from %s -> %d\n", ln.Addr(), f.remote); err != nil {
				return err
			}
		}
		if len(errs) == len(hosts) {
			return fmt.Errorf("forwarding to port %d of %s: %w", f.remote, o.pod.Key(), errs[0])
		}
	}
	return nil
}

// close closes all listeners.
func (o *forwarder) close() {
	for _, ln := range o.listeners {
		ln.Close()
	}
}

// serve accepts clients until ctx is done, and then closes their connections.
func (o *forwarder) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var goroutines sync.WaitGroup
	for _, ln := range o.listeners {
		goroutines.Go(func() {
			for {
				client, err := ln.Accept()
				if err != nil {
					cancel(err)
					return
				}
				goroutines.Go(func() { o.handle(ctx, client, ln.mapping) })
			}
		})
	}
	<-ctx.Done()
	o.close()
	goroutines.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("forwarding to %s: %w", o.pod.Key(), err)
	}
	return context.Canceled
}

// handle serves one client.
func (o *forwarder) handle(ctx context.Context, client net.Conn, f portMapping) {
	defer client.Close()
	path := "/portForward/" + o.pod.Pod.Namespace + "/" + o.pod.Pod.Name
	conn, err := o.client.OpenStreams(ctx, stream.DialForward, path, url.Values{"port": {strconv.Itoa(int(f.remote))}})
	if err == nil {
		stop := context.AfterFunc(ctx, func() { conn.Close(); client.Close() })
		err = conn.Forward(f.remote, client)
		stop()
		conn.Close()
	}
	if err != nil && ctx.Err() == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		fmt.Fprintf(o.stderr, "podd: port %d of %s: %s\n", f.remote, o.pod.Key(), printer.Escape(strings.TrimSpace(err.Error())))
	}
}
