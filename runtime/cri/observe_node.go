package cri

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"podd/runtime"
)

// NodeObserverOptions say how often to ask. The zero value is what a daemon
// wants.
type NodeObserverOptions struct {
	// Every is the time between two Status calls of a runtime and network that
	// are ready. Zero is 5 s. A call was measured at 0.2 ms of containerd's time
	// and 0.1 ms of podd's.
	Every time.Duration
	// Eager is the same while either is not ready, or the runtime is away. Zero is
	// 500 ms.
	Eager time.Duration
	// Logger is told when the runtime or its network becomes ready or stops
	// being so; that it is lost or found is the Observer's to say. Nil:
	// slog.Default().
	Logger *slog.Logger
}

// NodeObserver watches what the runtime says of itself.
type NodeObserver struct {
	client *Client
	opts   NodeObserverOptions

	// The following fields belong to Run's goroutine.
	node  runtime.Node
	dials uint64 // connections made when node's unchanging half was asked for
}

// NewNodeObserver returns an observer that does nothing until Run.
func (c *Client) NewNodeObserver(o NodeObserverOptions) *NodeObserver {
	if o.Every <= 0 {
		o.Every = 5 * time.Second
	}
	if o.Eager <= 0 {
		o.Eager = 500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &NodeObserver{client: c, opts: o}
}

// Run emits the first Node it can tell and then every one that differs, until
// ctx ends; it returns ctx's error. A runtime that cannot be asked is a Node
// too: what was known of it, not Reachable, with a Message that says what to
// do. emit is called by one goroutine. Call Run once.
func (n *NodeObserver) Run(ctx context.Context, emit func(runtime.Node)) error {
	for first := true; ; first = false {
		node := n.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if first || !reflect.DeepEqual(node, n.node) {
			n.log(node)
			n.node = node
			emit(node)
		}
		if err := n.wait(ctx); err != nil {
			return err
		}
	}
}

// log says what became ready, or no longer is, since the last Node.
func (n *NodeObserver) log(now runtime.Node) {
	if !now.Reachable {
		return
	}
	for _, c := range []struct {
		what     string
		was, is  bool
		whyNot   string
		notKnown bool
	}{
		{"runtime", n.node.Ready, now.Ready, now.Message, !n.node.Reachable},
		{"pod network", n.node.NetworkReady, now.NetworkReady, now.NetworkMessage, !n.node.Reachable},
	} {
		switch {
		case !c.is && (c.was || c.notKnown):
			n.opts.Logger.Warn(c.what+" not ready", "why", c.whyNot)
		case c.is && !c.was && !c.notKnown:
			n.opts.Logger.Info(c.what + " ready")
		}
	}
}

// ask makes one Status call, and all the others where the connection is new.
func (n *NodeObserver) ask(ctx context.Context) runtime.Node {
	ctx, cancel := context.WithTimeout(ctx, max(2*n.opts.Every, 10*time.Second))
	defer cancel()
	var node runtime.Node
	var err error
	dials := n.client.dials.Load()
	if n.node.Reachable && n.dials == dials {
		node, err = n.client.nodeStatus(ctx, n.node)
	} else {
		node, err = n.client.Node(ctx)
	}
	if err == nil {
		n.dials = dials
		return node
	}
	n.client.redial()
	node = n.node
	node.Reachable, node.Ready, node.NetworkReady = false, false, false
	node.Message, node.NetworkMessage = err.Error(), ""
	return node
}

// wait returns when it is time to ask again.
func (n *NodeObserver) wait(ctx context.Context) error {
	every := n.opts.Every
	if !n.node.Ready || !n.node.NetworkReady {
		every = n.opts.Eager
	}
	if !pause(ctx, every) {
		return ctx.Err()
	}
	return nil
}
