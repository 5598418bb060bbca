package runonce

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/progress"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/effect"
)

// A Runner runs the pods of a run only.
type Runner interface {
	// SetDesired sets the pods that should run. It must return quickly.
	SetDesired(*manifest.Set)
	// Down stops all pods with their grace periods, starts no more, and returns when all are
	// removed.
	Down(context.Context) error
	// ForceStop reduces the grace periods of pods that stop now or later to zero.
	ForceStop(context.Context) error
	// Failed is closed when the runner has failed, and Err then returns the error.
	Failed() <-chan struct{}
	Err() error
}

// Options configures a run. All fields but Timeout, Signals and Progress are required.
type Options struct {
	// Set contains the pods of the run, and Order their keys in the order of the manifests.
	// There must be at least one.
	Set   *manifest.Set
	Order []types.NamespacedName
	// Stdout and Stderr get the containers' output, and Stderr also podd's messages.
	Stdout, Stderr *Stream
	// Progress shows the progress of pulls; may be nil.
	Progress *progress.Line
	// LogDir returns the log directory of a pod.
	LogDir func(*manifest.Pod) string
	// Timeout limits the run; zero is no limit.
	Timeout time.Duration
	// Signals stop the run: the first with grace periods, the second without. The third makes
	// podd exit although pods are left.
	Signals <-chan os.Signal
	// OnResult is called with the result when all output is written, possibly before all pods
	// are removed.
	OnResult func(*Result)
}

// A Run is one run. New and Drive are called by one goroutine; Publish and the methods of
// Leftovers by those of the router and its effects.
type Run struct {
	o          Options
	pods       []Pod
	index      map[types.NamespacedName]int
	changes    *changeQueue
	out        *output
	stderr     *messageWriter
	began      time.Time
	released   bool
	hasVerdict bool // there is a verdict
	desired    int  // number of pods that were last passed to the Runner
}

// New returns a run that Drive starts.
func New(o Options) *Run {
	r := &Run{o: o, index: map[types.NamespacedName]int{}, changes: newChangeQueue()}
	names := names(o.Set, o.Order)
	for i, key := range o.Order {
		r.pods = append(r.pods, Pod{Desired: o.Set.Pods[key], Name: names[key]})
		r.index[key] = i
	}
	r.stderr = &messageWriter{o.Stderr, []byte(r.pods[0].Desired.Suffix)}
	r.out = newOutput(r.pods, o.Stdout, o.Stderr, o.LogDir)
	return r
}

// names returns the names of pods in their manifests, with the namespace if a name is not
// unique.
func names(set *manifest.Set, order []types.NamespacedName) map[types.NamespacedName]string {
	times := map[string]int{}
	for _, key := range order {
		times[set.Pods[key].Short().Name]++
	}
	out := map[types.NamespacedName]string{}
	for _, key := range order {
		short := set.Pods[key].Short()
		out[key] = short.Name
		if times[short.Name] > 1 {
			out[key] = short.String()
		}
	}
	return out
}

// Publish queues a change of the router. It does not block.
func (r *Run) Publish(c reconcile.Change) { r.changes.put(c) }

// Leftovers wraps l so that logs are removed only after they were copied.
func (r *Run) Leftovers(l effect.Leftovers) effect.Leftovers { return logRetainer{l, r.out} }

// Drive runs the pods on m until there is a result and everything is removed. It returns
// an error if something could not be removed.
func (r *Run) Drive(ctx context.Context, m Runner) (*Result, error) {
	copyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	copied := make(chan struct{})
	go func() { // shutdown waits for it unless the output is abandoned
		defer close(copied)
		r.out.run(copyCtx)
	}()
	r.began = time.Now()
	v := r.decide(m)
	e := &shutdown{Run: r, m: m, verdict: v, verdictAt: time.Now(), copied: copied}
	return e.run(ctx)
}

// decide starts pods until there is a verdict.
func (r *Run) decide(m Runner) Verdict {
	in := Input{Began: r.began, Timeout: r.o.Timeout}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in.Pods, in.Released, in.Now = r.pods, r.released, time.Now()
		j := Judge(in)
		if j.Verdict != nil {
			r.hasVerdict = true
			return *j.Verdict
		}
		r.setDesired(m, &j)
		timer.Stop()
		if !j.Wake.IsZero() {
			timer.Reset(max(time.Until(j.Wake), 0))
		}
		select {
		case <-r.changes.wake:
			r.take(time.Now())
		case <-timer.C:
		case <-r.o.Signals:
			in.Interrupted = true
		case in.Broken = <-r.out.broken:
		case <-r.o.Stdout.broken:
			in.Broken = r.o.Stdout.Err()
		case <-r.o.Stderr.broken:
			in.Broken = r.o.Stderr.Err()
		case <-m.Failed():
			in.Broken = m.Err()
		}
	}
}

// setDesired passes the pods to the Runner if more should run.
func (r *Run) setDesired(m Runner, j *Judgement) {
	r.released = j.Released
	if len(j.Start) == r.desired {
		return
	}
	r.desired = len(j.Start)
	set := *r.o.Set
	set.Pods = map[types.NamespacedName]*manifest.Pod{}
	for _, key := range j.Start {
		set.Pods[key] = r.o.Set.Pods[key]
	}
	m.SetDesired(&set)
}

// take applies the queued changes.
func (r *Run) take(now time.Time) {
	for _, c := range r.changes.take() {
		for _, report := range c.Reports {
			i, ok := r.index[report.Key]
			if !ok {
				continue
			}
			p := r.pods[i].WithReport(report, now)
			if !r.hasVerdict {
				r.warn(p.notices(&r.pods[i], now))
			}
			r.pods[i] = p
			r.out.update(report)
		}
		for _, key := range c.Gone {
			r.out.finish(key)
		}
	}
	r.o.Progress.Set(r.pulling())
}

// pulling returns a function that formats the progress of pulls, or nil if there are
// none.
func (r *Run) pulling() func(time.Time) string {
	var all []progress.Pull
	for i := range r.pods {
		if report := r.pods[i].Report; report != nil {
			for _, q := range report.Pulls {
				all = append(all, progress.Pull(q))
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(now time.Time) string { return plain(progress.Text(all, now)) }
}

// warn prints messages about a pod.
func (r *Run) warn(notices []string) {
	for _, n := range notices {
		r.printf("%s", n)
	}
}

// printf prints a message of podd.
func (r *Run) printf(format string, args ...any) {
	// A broken stream becomes the verdict.
	_, _ = fmt.Fprintf(r.stderr, "podd: "+format+"\n", args...)
}
