package runonce

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
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/logging"
	"podd/cmd/podd/internal/progress"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile/render"
)

// A Command is what the command line says of a run to completion.
type Command struct {
	Files   []string      // manifests to run instead of the sources'; "-" is stdin
	Env     []string      // variables for every container, as K=V or K
	EnvFile []string      // files with variables
	Timeout time.Duration // of the run; 0: none
	Report  string        // file for the result; "" for none
}

// Run runs the named manifests, or those of the sources, to completion and exits with
// their code. The report is also written if the run cannot start.
func (c *Command) Run(ctx context.Context, cfg *config.Config, s iostreams.Streams) error {
	var report *Report
	if c.Report != "" {
		var err error
		if report, err = NewReport(c.Report); err != nil {
			return exit.With(exit.Internal, err)
		}
	}
	r := &onceRun{cmd: c, cfg: cfg, streams: s, report: report, suffix: NewSuffix()}
	code, err := r.run(ctx)
	switch {
	case r.hasResult && code == 0:
		return nil
	case r.hasResult:
		return exit.With(code, err)
	}
	if errors.Is(err, context.Canceled) {
		err, code = errors.New("interrupted; nothing was started"), exit.Interrupted
	}
	if report != nil {
		err = errors.Join(err, report.Write(NotRun(err)))
	}
	return exit.With(code, err)
}

// onceRun is a run to completion.
type onceRun struct {
	cmd       *Command
	cfg       *config.Config
	streams   iostreams.Streams
	report    *Report // may be nil
	suffix    string
	hasResult bool  // the result is known and was written
	resultErr error // error of writing the result
}

// run returns the exit code.
func (r *onceRun) run(ctx context.Context) (code int, err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	// A write to a closed pipe must not end podd before its pods are removed.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	if os.Geteuid() != 0 {
		return exit.Internal, errors.New("podd runs pods as root; start it with sudo")
	}
	foot := progress.New(r.streams.Err)
	defer foot.Close()
	stdout, stderr := NewStream("stdout", foot.Writer(r.streams.Out)), NewStream("stderr", foot.Writer(r.streams.Err))
	talk := stderr.LineWriter("-" + r.suffix)
	in, err := r.input(ctx, talk)
	if err != nil {
		return exit.Internal, err
	}
	log, _ := logging.New(talk, r.cfg, slog.LevelError)
	client, err := wiring.DialReady(ctx, r.cfg, log)
	if err != nil {
		return exit.Internal, err
	}
	defer client.Close()
	runs := RunDirs{Root: r.cfg.RootDir}
	Sweep(ctx, r.cfg, runs, client, log)
	dir, err := runs.Make(r.suffix)
	if err != nil {
		return exit.Internal, err
	}
	m, err := newPodRunner(r.cfg, dir, client, log)
	if err != nil {
		return exit.Internal, errors.Join(err, os.RemoveAll(dir))
	}
	defer m.Close()
	run := New(Options{
		Set: in.set, Order: in.order, Stdout: stdout, Stderr: stderr, Progress: foot,
		LogDir:  func(p *manifest.Pod) string { return render.LogDirectory(p, m.render) },
		Timeout: r.cmd.Timeout, Signals: signals, OnResult: func(result *Result) { r.resultErr = r.writeResult(result, talk) },
	})
	r.hasResult = true
	return r.drive(ctx, run, m)
}

// stopSignals returns the signals that stop a run. SIGHUP is included unless it was
// ignored at the start, as by nohup.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// drive returns when the run has ended and everything of it is removed.
func (r *onceRun) drive(ctx context.Context, run *Run, m *podRunner) (int, error) {
	// Removing the pods takes longer than the signal that stops the run.
	ctx = context.WithoutCancel(ctx)
	m.begin(ctx, run.Publish, run.Leftovers)
	result, failed := run.Drive(ctx, m)
	if failed == nil {
		failed = m.remove(ctx)
	} else {
		failed = fmt.Errorf("removing what the run made: %w", failed)
	}
	code := result.Verdict.Code
	if err := errors.Join(failed, r.resultErr); err != nil {
		if code == 0 {
			code = exit.Internal
		}
		return code, err
	}
	return code, nil
}

// writeResult prints the result and writes the report.
func (r *onceRun) writeResult(result *Result, talk io.Writer) error {
	_, err := io.WriteString(talk, result.Summary())
	if r.report != nil {
		err = errors.Join(err, r.report.Write(result))
	}
	return err
}

// env returns the variables of the command line.
func (r *onceRun) env(talk io.Writer) ([]v1.EnvVar, error) {
	env, unset, err := Env(r.cmd.EnvFile, r.cmd.Env, os.LookupEnv)
	for _, name := range unset {
		fmt.Fprintf(talk, "podd: warning: %s has no value here and is not passed on; give one with -e %s=VALUE\n", name, name)
	}
	return env, err
}
