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
)

// A runner runs the pods of a run. Tests use a fake instead of podrunner.Runner.
type runner interface {
	// SetDesired sets the pods that should run. It must not block.
	SetDesired(*manifest.Set)
	// Down stops all pods with their grace periods and starts no further pods. It returns when
	// all pods are removed.
	Down(context.Context) error
	// ForceStop sets the grace periods of all pods that are stopping, or stop later, to zero.
	ForceStop(context.Context) error
	// Failed returns a channel that is closed when the runner has failed. Err then returns the
	// error.
	Failed() <-chan struct{}
	Err() error
}

// runOptions configures a run. All fields except Timeout, Signals and Progress are
// required.
type runOptions struct {
	// Set contains the pods of the run, at least one. Order contains their keys in the
	// order of the manifests.
	Set   *manifest.Set
	Order []types.NamespacedName
	// Stdout and Stderr receive the output of the containers. Stderr also receives the
	// messages of podd.
	Stdout, Stderr *lineStream
	// Progress shows the progress of pulls; may be nil.
	Progress *progress.Line
	// LogDir returns the log directory of a pod.
	LogDir func(*manifest.Pod) string
	// Timeout limits the run; 0 means no limit.
	Timeout time.Duration
	// Signals stop the run. The first signal stops the pods with their grace periods, and the
	// second signal ends all grace periods. After the third signal, podd exits before all pods are
	// removed.
	Signals <-chan os.Signal
	// OnResult is called with the result when all output is written. At that time, some
	// pods may not be removed yet.
	OnResult func(*runResult)
}

// A runDriver drives one run to completion. One goroutine calls newRunDriver and drive.
// The goroutines of the router and its effects call publish and the methods of the
// wrapped LogsAndCgroups.
type runDriver struct {
	o                     runOptions
	pods                  []runPod
	index                 map[types.NamespacedName]int
	changes               *changeQueue
	out                   *outputCopier
	stderr                *messageWriter
	startTime             time.Time
	completionPodsStarted bool
	hasVerdict            bool
	desiredCount          int // number of pods that were last passed to the runner
}

// newRunDriver returns a runDriver. It starts no pods before drive is called.
func newRunDriver(o runOptions) *runDriver {
	r := &runDriver{o: o, index: map[types.NamespacedName]int{}, changes: newChangeQueue()}
	names := displayNames(o.Set, o.Order)
	for i, key := range o.Order {
		r.pods = append(r.pods, runPod{Desired: o.Set.Pods[key], Name: names[key]})
		r.index[key] = i
	}
	r.stderr = &messageWriter{o.Stderr, []byte(r.pods[0].Desired.NameSuffix)}
	r.out = newOutputCopier(r.pods, o.Stdout, o.Stderr, o.LogDir)
	return r
}

// displayNames returns the name of each pod as in its manifest. If several pods have the same name,
// displayNames prepends the namespaces.
func displayNames(set *manifest.Set, order []types.NamespacedName) map[types.NamespacedName]string {
	times := map[string]int{}
	for _, key := range order {
		times[set.Pods[key].ManifestKey().Name]++
	}
	out := map[types.NamespacedName]string{}
	for _, key := range order {
		manifestKey := set.Pods[key].ManifestKey()
		out[key] = manifestKey.Name
		if times[manifestKey.Name] > 1 {
			out[key] = manifestKey.String()
		}
	}
	return out
}

// publish queues a change that the router has published. It does not block.
func (r *runDriver) publish(c reconcile.Change) { r.changes.put(c) }

// drive runs the pods with the runner m until there is a verdict, removes the pods and returns the
// result. It returns an error if pods could not be removed.
func (r *runDriver) drive(ctx context.Context, m runner) (*runResult, error) {
	copyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	copied := make(chan struct{})
	go func() { // shutdown waits for this goroutine, unless the output is abandoned
		defer close(copied)
		r.out.run(copyCtx)
	}()
	r.startTime = time.Now()
	v := r.runUntilVerdict(m)
	e := &shutdown{runDriver: r, m: m, verdict: v, verdictAt: time.Now(), copied: copied}
	return e.run(ctx)
}

// runUntilVerdict starts pods until there is a verdict.
func (r *runDriver) runUntilVerdict(m runner) verdict {
	in := judgeInput{StartTime: r.startTime, Timeout: r.o.Timeout}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in.Pods, in.CompletionPodsStarted, in.Now = r.pods, r.completionPodsStarted, time.Now()
		j := judge(in)
		if j.Verdict != nil {
			r.hasVerdict = true
			return *j.Verdict
		}
		r.setDesired(m, &j)
		timer.Stop()
		if !j.NextCheck.IsZero() {
			timer.Reset(max(time.Until(j.NextCheck), 0))
		}
		select {
		case <-r.changes.wake:
			r.applyChanges(time.Now())
		case <-timer.C:
		case <-r.o.Signals:
			in.Interrupted = true
		case in.FatalErr = <-r.out.firstErr:
		case <-r.o.Stdout.failed:
			in.FatalErr = r.o.Stdout.Err()
		case <-r.o.Stderr.failed:
			in.FatalErr = r.o.Stderr.Err()
		case <-m.Failed():
			in.FatalErr = m.Err()
		}
	}
}

// setDesired passes the pods of a judgement to the runner if the judgement contains new pods.
func (r *runDriver) setDesired(m runner, j *judgement) {
	r.completionPodsStarted = j.CompletionPodsStarted
	if len(j.DesiredPods) == r.desiredCount {
		return
	}
	r.desiredCount = len(j.DesiredPods)
	set := *r.o.Set
	set.Pods = map[types.NamespacedName]*manifest.Pod{}
	for _, key := range j.DesiredPods {
		set.Pods[key] = r.o.Set.Pods[key]
	}
	m.SetDesired(&set)
}

// applyChanges applies the changes in the queue to the pods and prints notices.
func (r *runDriver) applyChanges(now time.Time) {
	for _, c := range r.changes.take() {
		for _, report := range c.Reports {
			i, ok := r.index[report.Key]
			if !ok {
				continue
			}
			p := r.pods[i].withReport(report, now)
			if !r.hasVerdict {
				r.printNotices(p.notices(&r.pods[i], now))
			}
			r.pods[i] = p
			r.out.update(report)
		}
		for _, report := range c.Removed {
			r.out.finish(report.Key)
		}
	}
	r.o.Progress.SetText(r.pullProgress())
}

// pullProgress returns a function that formats the progress of pulls. It returns nil if no image
// is being pulled.
func (r *runDriver) pullProgress() func(time.Time) string {
	var pulls []progress.Pull
	for i := range r.pods {
		if report := r.pods[i].Report; report != nil {
			for _, q := range report.Pulls {
				pulls = append(pulls, progress.Pull(q))
			}
		}
	}
	if len(pulls) == 0 {
		return nil
	}
	return func(now time.Time) string { return withoutControlChars(progress.FormatPulls(pulls, now)) }
}

// printNotices prints messages about a pod.
func (r *runDriver) printNotices(notices []string) {
	for _, n := range notices {
		r.printf("%s", n)
	}
}

// printf prints a message of podd.
func (r *runDriver) printf(format string, args ...any) {
	// Ignore an error of the stream, because it ends the run with outcomeBroken.
	_, _ = fmt.Fprintf(r.stderr, "podd: "+format+"\n", args...)
}
