package runonce

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/podrunner"
	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/runtime/logs"
)

// outputCopier copies the logs of the containers of a run to the output streams of podd. Copying a
// log starts when a report contains the container. Copying ends when the container can no longer
// write and the log is read to the end. All methods may be called concurrently. run must be called
// once.
type outputCopier struct {
	stdout, stderr       *lineStream
	pods                 map[types.NamespacedName]*podOutput // the map and its values are read-only
	hasSeveralContainers bool                                // the run has more than one container
	notifier             logs.Notifier
	firstErr             chan error    // receives the first error; capacity 1
	abandoned            chan struct{} // closed by abandon
	abandon              func()        // lets drain return immediately
}

// A podOutput contains the copies of the logs of one pod.
type podOutput struct {
	dir    string
	copies map[string]*logCopy // copy of the logs of each container, by container name
}

// newOutputCopier returns an outputCopier for pods. dir returns the log directory of a pod.
func newOutputCopier(pods []runPod, stdout, stderr *lineStream, dir func(*manifest.Pod) string) *outputCopier {
	o := &outputCopier{
		stdout: stdout, stderr: stderr, pods: map[types.NamespacedName]*podOutput{},
		firstErr: make(chan error, 1), abandoned: make(chan struct{}),
	}
	o.abandon = sync.OnceFunc(func() { close(o.abandoned) })
	containers := 0
	for i := range pods {
		containers += len(pods[i].containers())
	}
	o.hasSeveralContainers = containers > 1
	for i := range pods {
		p := &podOutput{dir: dir(pods[i].Desired), copies: map[string]*logCopy{}}
		for _, m := range pods[i].containers() {
			prefix := ""
			if o.hasSeveralContainers {
				prefix = pods[i].Name + "/" + m.spec.Name + " | "
			}
			p.copies[m.spec.Name] = newLogCopy(prefix)
		}
		o.pods[pods[i].Desired.Key] = p
	}
	return o
}

// run copies the logs. It returns when the logs of all containers are copied, or soon after ctx
// is done.
func (o *outputCopier) run(ctx context.Context) {
	var readers sync.WaitGroup
	for _, p := range o.pods {
		for name, c := range p.copies {
			readers.Go(func() { o.waitAndCopy(ctx, p.dir, name, c) })
		}
	}
	readers.Wait()
}

// waitAndCopy waits until the container may have a log, and then copies the log.
func (o *outputCopier) waitAndCopy(ctx context.Context, dir, name string, c *logCopy) {
	defer close(c.copied)
	select {
	case <-c.started:
	case <-ctx.Done():
		return
	}
	if err := o.copyLog(ctx, dir, name, c); err != nil && ctx.Err() == nil {
		select {
		case o.firstErr <- fmt.Errorf("copying the output of container %s: %w", name, err):
		default:
		}
	}
}

// update applies a report. It starts copying the logs of the containers that the report contains.
// If no container of the pod can write any more, update calls finish.
func (o *outputCopier) update(r *state.Report) {
	p := o.pods[r.Key]
	if p == nil {
		return
	}
	isDone := r.Finished != nil || r.Version == nil && len(r.Observed) > 0
	for i := range r.Observed {
		inc := &r.Observed[i]
		for _, c := range inc.Containers {
			if copying := p.copies[c.Name]; copying != nil {
				copying.begin()
			}
			isDone = isDone && (c.State == runtime.Exited || c.State == runtime.ExitCodeUnknown)
		}
		// A pod that is stopping is done only when its sandbox is not ready, because a container
		// that is being created may still start.
		isDone = isDone && (r.Finished != nil || !inc.Ready)
	}
	if isDone && !startsContainer(&r.Decision) {
		o.finish(r.Key)
	}
}

// hasCopiedEarlierFiles reports whether the newest file of a log is being copied. Then all earlier
// files of the log have been copied and may be removed.
func (o *outputCopier) hasCopiedEarlierFiles(l podrunner.ContainerLog) bool {
	p := o.pods[l.Pod]
	if p == nil || p.copies[l.Container] == nil {
		return false
	}
	return p.copies[l.Container].isCopying(filepath.Join(p.dir, l.Container, logs.File{Attempt: l.Attempt}.Name()))
}

// startsContainer reports whether the actions of a decision include the start of a container.
func startsContainer(d *plan.Decision) bool {
	for _, a := range d.Actions {
		if _, ok := a.(plan.StartContainer); ok {
			return true
		}
	}
	return false
}

// finish records that the containers of a pod can no longer write, so that copying stops at the end
// of the logs. It also starts copying the logs of containers that no report contained, because
// these containers may have logs, too.
func (o *outputCopier) finish(key types.NamespacedName) {
	if p := o.pods[key]; p != nil {
		for _, c := range p.copies {
			c.begin()
			c.finish()
		}
	}
}

// drain waits until the output of all containers of a pod is copied, until abandon is called, or
// until ctx is done.
func (o *outputCopier) drain(ctx context.Context, key types.NamespacedName) error {
	p := o.pods[key]
	if p == nil {
		return nil
	}
	for _, c := range p.copies {
		select {
		case <-c.copied:
		case <-o.abandoned:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// lastLines returns the last lines of the output of a container, or nil if the log is not
// completely copied.
func (o *outputCopier) lastLines(p *runPod, container string) []string {
	c := o.pods[p.Desired.Key].copies[container]
	select {
	case <-c.copied:
		return c.tail.last()
	default:
		return nil
	}
}
