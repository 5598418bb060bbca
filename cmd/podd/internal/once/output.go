package once

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/runtime"
	"podd/runtime/logs"
)

// output copies what the containers of a run write, from their logs to podd's
// own streams. A container's reader begins when the container is first seen and
// ends when it can write no more and everything was read. All methods may be
// called concurrently; run once.
type output struct {
	stdout, stderr *Stream
	pods           map[types.NamespacedName]*podOutput // read-only, as all in it
	several        bool                                // containers, in the whole run
	notifier       logs.Notifier
	broken         chan error    // takes the first failure
	abandoned      chan struct{} // closed by abandon
	abandon        func()        // no output is waited for any longer
}

type podOutput struct {
	dir    string
	copies map[string]*copying // by container
}

func newOutput(pods []Pod, stdout, stderr *Stream, dir func(*manifest.Pod) string) *output {
	o := &output{
		stdout: stdout, stderr: stderr, pods: map[types.NamespacedName]*podOutput{},
		broken: make(chan error, 1), abandoned: make(chan struct{}),
	}
	o.abandon = sync.OnceFunc(func() { close(o.abandoned) })
	containers := 0
	for i := range pods {
		containers += len(pods[i].members())
	}
	o.several = containers > 1
	for i := range pods {
		p := &podOutput{dir: dir(pods[i].Wanted), copies: map[string]*copying{}}
		for _, m := range pods[i].members() {
			prefix := ""
			if o.several {
				prefix = pods[i].Name + "/" + m.spec.Name + " | "
			}
			p.copies[m.spec.Name] = newCopying(prefix)
		}
		o.pods[pods[i].Wanted.Key] = p
	}
	return o
}

// run returns when every container of every pod was copied to its end, or soon
// after ctx is done.
func (o *output) run(ctx context.Context) {
	var readers sync.WaitGroup
	for _, p := range o.pods {
		for name, c := range p.copies {
			readers.Go(func() { o.read(ctx, p.dir, name, c) })
		}
	}
	readers.Wait()
}

func (o *output) read(ctx context.Context, dir, name string, c *copying) {
	defer close(c.ended)
	select {
	case <-c.begun:
	case <-ctx.Done():
		return
	}
	if err := o.copy(ctx, dir, name, c); err != nil && ctx.Err() == nil {
		select {
		case o.broken <- fmt.Errorf("copying the output of container %s: %w", name, err):
		default:
		}
	}
}

// see takes a report: what it shows for the first time is read from now on,
// and to its end once nothing of the pod can write any more.
func (o *output) see(r *reconcile.Report) {
	p := o.pods[r.Key]
	if p == nil {
		return
	}
	over := r.Finished != nil || r.Version == nil && len(r.Observed) > 0
	for i := range r.Observed {
		inc := &r.Observed[i]
		for _, c := range inc.Containers {
			if copying := p.copies[c.Name]; copying != nil {
				copying.begin()
			}
			over = over && c.State == runtime.Exited
		}
		// One that is being ended may still get a container of a start under way.
		over = over && (r.Finished != nil || !inc.Ready)
	}
	if over && !starts(&r.Decision) {
		o.finish(r.Key)
	}
}

func starts(d *plan.Decision) bool {
	for _, a := range d.Actions {
		if _, ok := a.(plan.StartContainer); ok {
			return true
		}
	}
	return false
}

// finish has every container of the pod read to its end, those too that no
// report has shown: their logs may be there all the same.
func (o *output) finish(key types.NamespacedName) {
	if p := o.pods[key]; p != nil {
		for _, c := range p.copies {
			c.begin()
			c.finish()
		}
	}
}

// drain returns when everything that the pod's containers wrote was copied, or
// the output is abandoned.
func (o *output) drain(ctx context.Context, key types.NamespacedName) error {
	p := o.pods[key]
	if p == nil {
		return nil
	}
	for _, c := range p.copies {
		select {
		case <-c.ended:
		case <-o.abandoned:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// last has the last lines of a container, once it was copied to its end.
func (o *output) last(p *Pod, container string) []string {
	c := o.pods[p.Wanted.Key].copies[container]
	select {
	case <-c.ended:
		return c.tail.last()
	default:
		return nil
	}
}
