package once

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/progress"
	"podd/manifest"
	"podd/reconcile"
)

// Machine runs the pods of a run and nothing else.
type Machine interface {
	// Want says what should run now. It must not wait for long.
	Want(*manifest.Set)
	// Down ends every pod with its grace, starts none any more, and returns when
	// nothing is left of any.
	Down(context.Context) error
	// Hurry takes the grace of whatever is being ended or will be.
	Hurry(context.Context) error
	// Failed is closed when the machine cannot go on, and Err then says why.
	Failed() <-chan struct{}
	Err() error
}

// Options are what a run is. All but Timeout and Signals are required.
type Options struct {
	// Set has the pods of the run, Order their keys as they were written: at
	// least one, each in Set.
	Set   *manifest.Set
	Order []types.NamespacedName
	// Stdout and Stderr take the containers' output, Stderr podd's lines too.
	Stdout, Stderr *Stream
	// Foot shows what is pulled; nil does not.
	Foot *progress.Line
	// LogDir is where the runtime writes a pod's logs.
	LogDir func(*manifest.Pod) string
	// Timeout ends the run; zero does not.
	Timeout time.Duration
	// Signals are requests to end: the first with grace, the second without, the
	// third leaves everything as it is.
	Signals <-chan os.Signal
	// Known is told the result once all output was written, while what is left
	// of the pods is still being removed.
	Known func(*Result)
}

// Run is one run. New and Drive are for one goroutine; Publish and the Leftovers
// for the router's and its effects'.
type Run struct {
	o        Options
	pods     []Pod
	index    map[types.NamespacedName]int
	mail     *mail
	out      *output
	talk     *talk
	began    time.Time
	released bool
	judged   bool // there is a verdict
	wanted   int  // pods, of the last set given
}

// New prepares a run that Drive begins.
func New(o Options) *Run {
	r := &Run{o: o, index: map[types.NamespacedName]int{}, mail: newMail()}
	names := names(o.Set, o.Order)
	for i, key := range o.Order {
		r.pods = append(r.pods, Pod{Wanted: o.Set.Pods[key], Name: names[key]})
		r.index[key] = i
	}
	r.talk = &talk{o.Stderr, []byte(r.pods[0].Wanted.Suffix)}
	r.out = newOutput(r.pods, o.Stdout, o.Stderr, o.LogDir)
	return r
}

// names are the pods' as the user wrote them, with the namespace where a name
// is there twice.
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

// Publish takes a router's change; it never waits.
func (r *Run) Publish(c reconcile.Change) { r.mail.put(c) }

// Leftovers is l for this run: no log goes before it was copied.
func (r *Run) Leftovers(l reconcile.Leftovers) reconcile.Leftovers { return keeper{l, r.out} }

// Drive runs the pods on m until there is a result and everything started was
// removed again. An error says what could not be removed.
func (r *Run) Drive(ctx context.Context, m Machine) (*Result, error) {
	copyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	copied := make(chan struct{})
	go func() { // waited for by end, unless the output is abandoned
		defer close(copied)
		r.out.run(copyCtx)
	}()
	r.began = time.Now()
	v := r.decide(m)
	e := &ending{Run: r, m: m, verdict: v, known: time.Now(), copied: copied}
	return e.run(ctx)
}

// decide starts pods until there is a verdict.
func (r *Run) decide(m Machine) Verdict {
	in := Input{Began: r.began, Timeout: r.o.Timeout}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in.Pods, in.Released, in.Now = r.pods, r.released, time.Now()
		j := Judge(in)
		if j.Verdict != nil {
			r.judged = true
			return *j.Verdict
		}
		r.want(m, &j)
		timer.Stop()
		if !j.Wake.IsZero() {
			timer.Reset(max(time.Until(j.Wake), 0))
		}
		select {
		case <-r.mail.wake:
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

// want tells the machine when more is to run than did.
func (r *Run) want(m Machine, j *Judgement) {
	r.released = j.Released
	if len(j.Start) == r.wanted {
		return
	}
	r.wanted = len(j.Start)
	set := *r.o.Set
	set.Pods = map[types.NamespacedName]*manifest.Pod{}
	for _, key := range j.Start {
		set.Pods[key] = r.o.Set.Pods[key]
	}
	m.Want(&set)
}

// take passes on what the router said since.
func (r *Run) take(now time.Time) {
	for _, c := range r.mail.take() {
		for _, report := range c.Reports {
			i, ok := r.index[report.Key]
			if !ok {
				continue
			}
			p := r.pods[i].See(report, now)
			if !r.judged {
				r.warn(p.notices(&r.pods[i], now))
			}
			r.pods[i] = p
			r.out.see(report)
		}
		for _, key := range c.Gone {
			r.out.finish(key)
		}
	}
	r.o.Foot.Set(r.pulling())
}

// pulling is what a terminal shows while images are fetched; nil while none is.
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

// warn prints what there is to say of a pod's trouble.
func (r *Run) warn(notices []string) {
	for _, n := range notices {
		r.say("%s", n)
	}
}

// say prints one of podd's own lines.
func (r *Run) say(format string, args ...any) {
	// A stream that is broken is the verdict already.
	_, _ = fmt.Fprintf(r.talk, "podd: "+format+"\n", args...)
}
