package cluster

import (
	"context"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// Options say which node podd is of which cluster. All but the booleans, Taints,
// ProviderID and ProvidedIP are required.
type Options struct {
	Kubeconfig string // the file
	Version    string // podd's, for the API server's logs
	// QPS and Burst limit requests that are no signs of life; QPS 0 is 5.
	QPS, Burst  int
	ContentType string

	Node       string // its name
	Register   bool   // make it where there is none
	Taints     []v1.Taint
	ProviderID string
	// ExternalCloud leaves the addresses and the first taint to a cloud controller,
	// which is told ProvidedIP, the addresses that the user gave, "" for none.
	ExternalCloud bool
	ProvidedIP    string
	AttachDetach  bool // the cluster's controller attaches volumes

	// UpdateFrequency is how often is looked whether the cluster's status is the
	// machine's, ReportFrequency how often it is sent though it is.
	UpdateFrequency, ReportFrequency time.Duration
	Lease                            time.Duration // whole seconds

	// State has the node as this machine is, View.Machine.
	State server.Viewer
	// Told is called by one goroutine with what keeps the node from being one, for
	// users; "" when nothing does any more.
	Told func(ctx context.Context, trouble string)
	Log  *slog.Logger
}

// lookEvery is how often the kubeconfig is looked at for changes.
const lookEvery = 10 * time.Second

// Run keeps the node until ctx is done. Nothing ends it earlier.
func Run(ctx context.Context, o Options) error {
	s := newSpeaker(&o)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.run(ctx); return nil })
	group.Go(func() error { o.live(ctx, s); return nil })
	return group.Wait()
}

// live is one life after the other, each with a kubeconfig that can be read.
func (o *Options) live(ctx context.Context, s *speaker) {
	var b backoff
	for ctx.Err() == nil {
		seen := stamp(o.Kubeconfig)
		c, err := connect(o)
		s.report(ctx, ofKubeconfig, err)
		if err != nil {
			sleep(ctx, b.next())
			continue
		}
		b = backoff{}
		o.liveWith(ctx, c, s, seen)
	}
}

// liveWith keeps the node until the kubeconfig has changed since it was seen.
func (o *Options) liveWith(ctx context.Context, c *client, s *speaker, seen fileStamp) {
	defer c.close()
	group, ctx := errgroup.WithContext(ctx)
	nodes := make(chan sighting)
	k := &keeper{o: o, c: c, say: s}
	group.Go(func() error { c.follow(ctx, o.Node, nodes, s); return nil })
	group.Go(func() error { k.run(ctx, nodes); return nil })
	group.Go(func() error { (&lessee{o: o, c: c, say: s, owner: &k.uid}).run(ctx); return nil })
	group.Go(func() error {
		for sleep(ctx, lookEvery) {
			if stamp(o.Kubeconfig) != seen {
				return context.Canceled // ends the others
			}
		}
		return nil
	})
	_ = group.Wait() // of a change, or ctx
}

// fileStamp tells versions of a file apart.
type fileStamp struct {
	size int64
	time time.Time
}

func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}
