package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/once"
	"podd/cmd/podd/internal/progress"
	"podd/manifest"
	"podd/reconcile/render"
)

// runOnce runs the named manifests, or else what the sources hold, to
// completion and leaves with their code. What keeps it from beginning is in the
// report too.
func (c *RunCmd) runOnce(ctx context.Context, cfg *config.Config, s Streams) error {
	var report *once.Report
	if c.Report != "" {
		var err error
		if report, err = once.NewReport(c.Report); err != nil {
			return exitWith(codeOwn, err)
		}
	}
	r := &onceRun{cmd: c, cfg: cfg, streams: s, report: report, suffix: once.NewSuffix()}
	code, err := r.run(ctx)
	switch {
	case r.begun && code == 0:
		return nil
	case r.begun:
		return exitWith(code, err)
	}
	if errors.Is(err, context.Canceled) {
		err, code = errors.New("interrupted; nothing was started"), codeInterrupted
	}
	if report != nil {
		err = errors.Join(err, report.Write(once.NotRun(err)))
	}
	return exitWith(code, err)
}

// onceRun is one run to completion.
type onceRun struct {
	cmd     *RunCmd
	cfg     *config.Config
	streams Streams
	report  *once.Report // nil: none
	suffix  string
	begun   bool  // there is a result, and it was told
	told    error // what telling it came to
}

// run returns what podd leaves with.
func (r *onceRun) run(ctx context.Context) (code int, err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	// A reader that goes away must not take podd away from its pods.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	if os.Geteuid() != 0 {
		return codeOwn, errors.New("podd runs pods as root; start it with sudo")
	}
	foot := progress.New(r.streams.Err)
	defer foot.Close()
	stdout, stderr := once.NewStream("stdout", foot.Writer(r.streams.Out)), once.NewStream("stderr", foot.Writer(r.streams.Err))
	talk := stderr.Talk("-" + r.suffix)
	in, err := r.input(ctx, talk)
	if err != nil {
		return codeOwn, err
	}
	log, _ := newLog(talk, r.cfg, slog.LevelError)
	client, err := dialNow(ctx, r.cfg, log)
	if err != nil {
		return codeOwn, err
	}
	defer client.Close()
	runs := once.Place{Root: r.cfg.RootDir}
	sweepRuns(ctx, r.cfg, runs, client, log)
	dir, err := runs.Make(r.suffix)
	if err != nil {
		return codeOwn, err
	}
	m, err := newMachine(r.cfg, dir, client, log)
	if err != nil {
		return codeOwn, errors.Join(err, os.RemoveAll(dir))
	}
	defer m.Close()
	run := once.New(once.Options{
		Set: in.set, Order: in.order, Stdout: stdout, Stderr: stderr, Foot: foot,
		LogDir:  func(p *manifest.Pod) string { return render.LogDirectory(p, m.render) },
		Timeout: r.cmd.Timeout, Signals: signals, Known: func(result *once.Result) { r.told = r.tell(result, talk) },
	})
	r.begun = true
	return r.drive(ctx, run, m)
}

// endSignals are those that ask a run to end. A hang-up is none where somebody
// had it ignored, as nohup does.
func endSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// drive returns when the run is over and nothing of it is left.
func (r *onceRun) drive(ctx context.Context, run *once.Run, m *machine) (int, error) {
	// The pods outlive the signal that ends the run: they are to be removed.
	ctx = context.WithoutCancel(ctx)
	m.begin(ctx, run.Publish, run.Leftovers)
	result, failed := run.Drive(ctx, m)
	if failed == nil {
		failed = m.remove(ctx)
	} else {
		failed = fmt.Errorf("removing what the run made: %w", failed)
	}
	code := result.Verdict.Code
	if err := errors.Join(failed, r.told); err != nil {
		if code == 0 {
			code = codeOwn
		}
		return code, err
	}
	return code, nil
}

// tell prints and writes the result.
func (r *onceRun) tell(result *once.Result, talk io.Writer) error {
	_, err := io.WriteString(talk, result.Summary())
	if r.report != nil {
		err = errors.Join(err, r.report.Write(result))
	}
	return err
}

// runtimePatience is how long a runtime may take to answer at first: it may just
// be starting.
const runtimePatience = 5 * time.Second

// env are the variables of the command line.
func (r *onceRun) env(talk io.Writer) ([]v1.EnvVar, error) {
	env, unset, err := once.Env(r.cmd.EnvFile, r.cmd.Env, os.LookupEnv)
	for _, name := range unset {
		fmt.Fprintf(talk, "podd: warning: %s has no value here and is not passed on; give one with -e %s=VALUE\n", name, name)
	}
	return env, err
}
