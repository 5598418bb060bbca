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

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/logging"
	"podd/cmd/podd/internal/podrunner"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/runtime/cri"
	"podd/runtime/logs"
)

// A Command contains the arguments of a run to completion.
type Command struct {
	Files      []string      // manifests to run; if empty, the sources are used; "-" is stdin
	Env        []string      // variables for every container, as K=V or K
	EnvFiles   []string      // files with variables
	Timeout    time.Duration // time limit of the run; 0 means no limit
	ReportPath string        // path of the report; "" writes no report
}

// Run runs the pods in Files to completion or, if Files is empty, the pods of the sources. If the
// exit code of the run is not 0, Run returns an error that contains the exit code. If the run
// cannot start, Run still writes the report.
func (c *Command) Run(ctx context.Context, cfg *config.Config, s iostreams.Streams) error {
	var report *reportFile
	if c.ReportPath != "" {
		var err error
		if report, err = newReportFile(c.ReportPath); err != nil {
			return exit.NewError(exit.Internal, err)
		}
	}
	r := &execution{cmd: c, cfg: cfg, streams: s, report: report, suffix: podrunner.NewSuffix()}
	code, err := r.run(ctx)
	switch {
	case r.hasStarted && code == 0:
		return nil
	case r.hasStarted:
		return exit.NewError(code, err)
	}
	if errors.Is(err, context.Canceled) {
		err, code = errors.New("interrupted; nothing was started"), exit.Interrupted
	}
	if report != nil {
		err = errors.Join(err, report.write(notStartedResult(err, code)))
	}
	return exit.NewError(code, err)
}

// An execution is one call of Command.Run.
type execution struct {
	cmd        *Command
	cfg        *config.Config
	streams    iostreams.Streams
	report     *reportFile // may be nil
	suffix     string
	hasStarted bool  // the run has started, so its result must be written
	resultErr  error // error of writing the result
}

// run performs the run and returns its exit code.
func (r *execution) run(ctx context.Context) (code int, err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	// Ignore SIGPIPE, because podd must remove its pods even if a write to a closed pipe
	// fails.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	if os.Geteuid() != 0 {
		return exit.Internal, check.NotRootProblem.Err()
	}
	line := progress.New(r.streams.Err)
	defer line.Close()
	stdout, stderr := newLineStream("stdout", line.Writer(r.streams.Out)), newLineStream("stderr", line.Writer(r.streams.Err))
	messages := stderr.messageWriter("-" + r.suffix)
	in, err := r.readInput(ctx, messages)
	if err != nil {
		return exit.Internal, err
	}
	log, _ := logging.New(logging.Streams{Errors: messages}, &r.cfg.Logging, slog.LevelError)
	client, err := wiring.DialReady(ctx, &r.cfg.Runtime, log)
	if err != nil {
		return exit.Internal, err
	}
	defer client.Close()
	if err := r.checkFit(ctx, in, client, messages); err != nil {
		return exit.Internal, err
	}
	servesPlugins := podrunner.RequestsDevices(in.set)
	if servesPlugins {
		release, code, err := r.lockDevicePlugins(ctx, messages)
		if err != nil {
			return code, err
		}
		defer release()
	}
	runs := podrunner.Dirs{Root: r.cfg.RootDir}
	podrunner.Sweep(ctx, r.cfg, runs, client, log)
	dir, err := runs.CreateRun(r.suffix)
	if err != nil {
		return exit.Internal, err
	}
	run := newRunDriver(runOptions{
		Set: in.set, Order: in.order, Stdout: stdout, Stderr: stderr, Progress: line,
		LogDir:  func(p *manifest.Pod) string { return logs.Dir(r.cfg.PodLogsDir, p.Key, p.UID) },
		Timeout: r.cmd.Timeout, Signals: signals, OnResult: func(result *runResult) { r.resultErr = r.writeResult(result, stderr.messageWriter("")) },
	})
	m, err := podrunner.New(podrunner.Options{
		Config: r.cfg, Dir: dir, Client: client, LogsAndCgroups: logRetainer{wiring.NewLogsAndCgroups(r.cfg, nil), run.out}, Publish: run.publish,
		MayRotateLog: run.out.hasCopiedEarlierFiles, ServesDevicePlugins: servesPlugins, Log: log,
	})
	if err != nil {
		return exit.Internal, errors.Join(err, podrunner.RemoveRun(ctx, dir))
	}
	defer m.Close()
	r.hasStarted = true
	return r.drive(ctx, run, m)
}

// lockDevicePlugins waits until no other run uses the device plugins of the root directory, at most
// for the time limit of the run. If it returns an error, code is the exit code of the run.
func (r *execution) lockDevicePlugins(ctx context.Context, messages io.Writer) (release func(), code int, err error) {
	waitCtx := ctx
	if r.cmd.Timeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, r.cmd.Timeout)
		defer cancel()
	}
	release, err = podrunner.LockDevicePlugins(waitCtx, r.cfg.RootDir, func() {
		fmt.Fprintf(messages, "podd: waiting for the device plugins of %s, which another run uses\n", r.cfg.RootDir)
	})
	switch {
	case err == nil:
		return release, 0, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, exit.Timeout, fmt.Errorf("timed out after %s: another run uses the device plugins of %s; nothing was started", r.cmd.Timeout, r.cfg.RootDir)
	}
	return nil, exit.Internal, err
}

// checkFit returns an error if the node would reject a pod during the whole run. It prints the
// reasons to messages.
func (r *execution) checkFit(ctx context.Context, in *inputSet, client *cri.Client, messages io.Writer) error {
	capacity, allocatable, err := host.ReadResources(r.cfg)
	if err != nil {
		return err
	}
	limits := host.AdmissionLimits(r.cfg, capacity, allocatable)
	if limits.Features.Runtime, err = client.Node(ctx); err != nil {
		return err
	}
	misfits := findMisfits(in.set, in.order, limits)
	for _, p := range misfits {
		fmt.Fprintln(messages, printer.Escape(p.String()))
	}
	if len(misfits) > 0 {
		return fmt.Errorf("%s cannot run on this node; nothing was started", printer.FormatCount(len(misfits), "pod"))
	}
	return nil
}

// stopSignals returns the signals that stop a run. They include SIGHUP, unless podd was started
// with SIGHUP ignored, as by nohup.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// drive runs the pods and returns the exit code of the run after it has removed the pods and
// their directories.
func (r *execution) drive(ctx context.Context, run *runDriver, m *podrunner.Runner) (code int, err error) {
	// The signal that stops the run cancels ctx, but removing the pods must continue.
	ctx = context.WithoutCancel(ctx)
	m.Begin(ctx)
	result, removeErr := run.drive(ctx, m)
	if removeErr == nil {
		removeErr = m.RemoveDir(ctx)
	} else {
		removeErr = fmt.Errorf("removing the pods of the run: %w", removeErr)
	}
	code = result.Verdict.Code
	if err := errors.Join(removeErr, r.resultErr); err != nil {
		if code == 0 {
			code = exit.Internal
		}
		return code, err
	}
	return code, nil
}

// writeResult prints the result to the writer summary and writes the report.
func (r *execution) writeResult(result *runResult, summary io.Writer) error {
	_, err := io.WriteString(summary, result.summary())
	if r.report != nil {
		err = errors.Join(err, r.report.write(result))
	}
	return err
}

// parseEnv returns the environment variables of the command line. It prints a warning to messages
// for each variable that is not set.
func (r *execution) parseEnv(messages io.Writer) ([]v1.EnvVar, error) {
	env, unset, err := parseEnv(r.cmd.EnvFiles, r.cmd.Env, os.LookupEnv)
	for _, name := range unset {
		fmt.Fprintf(messages, "podd: warning: variable %s is not set in podd's environment and is omitted; set it with -e %s=VALUE\n", name, name)
	}
	return env, err
}
