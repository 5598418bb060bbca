package main

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

	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// PortForwardCmd is podd port-forward.
type PortForwardCmd struct {
	Client
	Select
	Pod     string   `arg:"" help:"A pod, with or without the node's name." complete:"pod"`
	Ports   []string `arg:"" name:"[local:]remote" help:"Ports of the pod, by number or name, and which ones here lead there: 8080:80, 80 for the same, :80 for any." complete:"port"`
	Address []string `default:"localhost" placeholder:"ADDRESS" help:"Listen on these addresses of this machine (localhost)."`
}

// forward is a port here that leads to one of the pod.
type forward struct{ local, remote uint16 }

// Run forwards until it is interrupted.
func (c *PortForwardCmd) Run(ctx context.Context, s Streams) error {
	p, pod, word, err := c.reach(ctx, c.Select, c.Pod)
	if err != nil {
		return err
	}
	if pod.Sandbox == "" {
		return fmt.Errorf("pod %s does not run; podd why %s", pod.Key(), word)
	}
	var forwards []forward
	for _, text := range c.Ports {
		f, err := readForward(pod.Pod, text)
		if err != nil {
			return exitWith(codeUsage, err)
		}
		forwards = append(forwards, f)
	}
	o := &forwarder{peer: p, pod: pod, talk: s.Err}
	defer o.close()
	for _, f := range forwards {
		if err := o.listen(ctx, c.Address, f, s.Out); err != nil {
			return err
		}
	}
	return o.serve(ctx)
}

// readForward reads "8080:80", "80" or ":80"; the pod's ports have names, too.
func readForward(p *v1.Pod, text string) (f forward, err error) {
	local, remote, two := strings.Cut(text, ":")
	if !two {
		remote = local
	}
	if f.remote, err = podPort(p, remote); err != nil {
		return f, err
	}
	switch {
	case !two:
		f.local = f.remote
	case local != "":
		n, err := strconv.ParseUint(local, 10, 16)
		if err != nil {
			return f, fmt.Errorf("%q: %q is no port of this machine", text, local)
		}
		f.local = uint16(n)
	}
	return f, nil
}

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
		return 0, fmt.Errorf("%q is no port, and the pod has none with a name", text)
	}
	return 0, fmt.Errorf("%q is no port; the pod has %s", text, strings.Join(names, ", "))
}

// forwarder has the listeners, and a connection to podd for every client: which
// pod has the name is asked each time, so that one may replace another.
type forwarder struct {
	peer      *peer
	pod       *server.PodView
	listeners []listening

	mu   sync.Mutex // guards talk
	talk io.Writer
}

type listening struct {
	net.Listener
	to forward
}

// listen opens a port on all addresses. Of the two that localhost stands for one
// is enough.
func (o *forwarder) listen(ctx context.Context, addresses []string, f forward, out io.Writer) error {
	local := f.local
	for _, address := range addresses {
		all := []string{address}
		if address == "localhost" {
			all = []string{"127.0.0.1", "::1"}
		}
		var errs []error
		for _, a := range all {
			ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(a, strconv.Itoa(int(local))))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			o.listeners = append(o.listeners, listening{ln, f})
			local = uint16(ln.Addr().(*net.TCPAddr).Port) // any is the same for all
			if _, err := fmt.Fprintf(out, "Forwarding from %s -> %d\n", ln.Addr(), f.remote); err != nil {
				return err
			}
		}
		if len(errs) == len(all) {
			return fmt.Errorf("forwarding to port %d of %s: %w", f.remote, o.pod.Key(), errs[0])
		}
	}
	return nil
}

func (o *forwarder) close() {
	for _, ln := range o.listeners {
		ln.Close()
	}
}

// serve accepts clients until ctx is done, and then ends all of them.
func (o *forwarder) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, ln := range o.listeners {
		all.Go(func() {
			for {
				client, err := ln.Accept()
				if err != nil {
					cancel(err)
					return
				}
				all.Go(func() { o.one(ctx, client, ln.to) })
			}
		})
	}
	<-ctx.Done()
	o.close()
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("forwarding to %s: %w", o.pod.Key(), err)
	}
	return context.Canceled
}

// one serves one client.
func (o *forwarder) one(ctx context.Context, client net.Conn, f forward) {
	defer client.Close()
	path := "/portForward/" + o.pod.Pod.Namespace + "/" + o.pod.Pod.Name
	conn, err := o.peer.open(ctx, stream.DialForward, path, url.Values{"port": {strconv.Itoa(int(f.remote))}})
	if err == nil {
		stop := context.AfterFunc(ctx, func() { conn.Close(); client.Close() })
		err = conn.Forward(f.remote, client)
		stop()
		conn.Close()
	}
	if err != nil && ctx.Err() == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		fmt.Fprintf(o.talk, "podd: port %d of %s: %s\n", f.remote, o.pod.Key(), plain(strings.TrimSpace(err.Error())))
	}
}
