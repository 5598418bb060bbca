package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"podd/cmd/internal/release"
	"podd/runtime/runtimetest/child"
	"podd/runtime/runtimetest/stack"
)

// runCmd implements make run, a demonstration for new users.
type runCmd struct {
	upCmd
	Version string `help:"Version that \"podd version\" prints."`
	Demo    string `default:"testdata/demo" help:"Directory with the manifests of the demo."`
}

// Run builds podd, starts the runtime and runs podd on copies of the demo's manifests
// until ctx is done. The pods continue to run.
func (r runCmd) Run(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("starting a runtime needs root; run this command with sudo")
	}
	p, err := newWorkDir(r.Dir)
	if err != nil {
		return err
	}
	lock, err := p.lock()
	if errors.Is(err, errLocked) {
		// Another `make run` is already running podd, so there is nothing to do.
		fmt.Printf("podd is already running in %s and was not rebuilt; run \"bin/podd ps\" for its pods, or \"make stop\" to stop it\n", relativePath(p.dir))
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.RemoveAll(p.stopFile()); err != nil {
		return err
	}
	if err := buildPodd(ctx, r.Version); err != nil {
		return err
	}
	if err := r.upCmd.Run(ctx); err != nil {
		return err
	}
	s, err := stack.Open(r.Dir, slog.Default())
	if err != nil {
		return err
	}
	p.cgroup = s.CgroupParent()
	if err := p.copyDemo(r.Demo); err != nil {
		return err
	}
	return p.runAndFollow(ctx, s)
}

const binaryPath = "bin/podd"

func buildPodd(ctx context.Context, version string) error {
	startTime := time.Now()
	build := release.Command(ctx, "", binaryPath, "-X main.version="+version)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building podd: %w", err)
	}
	info, err := os.Stat(binaryPath)
	if err != nil {
		return fmt.Errorf("building podd: %w", err)
	}
	printStep("podd", fmt.Sprintf("%s, %d MB", binaryPath, info.Size()/1e6), time.Since(startTime))
	return nil
}

// A workDir is the directory in which make run stores the runtime, the manifests and the state
// of podd.
type workDir struct {
	dir    string
	cgroup string // parent cgroup of the pods
}

func newWorkDir(dir string) (workDir, error) {
	abs, err := filepath.Abs(dir)
	return workDir{dir: abs}, err
}

func (w workDir) manifestDir() string { return filepath.Join(w.dir, "manifests") }
func (w workDir) socketDir() string   { return filepath.Join(w.dir, "run") }
func (w workDir) logPath() string     { return filepath.Join(w.dir, "podd.log") }

// copyDemo copies the manifests of the demo, unless the manifest directory already exists and
// may contain changes of the user.
func (w workDir) copyDemo(demoDir string) error {
	if _, err := os.Stat(w.manifestDir()); err == nil {
		return nil
	}
	if err := os.CopyFS(w.manifestDir(), os.DirFS(demoDir)); err != nil {
		return fmt.Errorf("copying the demo's manifests: %w", err)
	}
	return nil
}

// poddCommand returns the command that runs podd in w. podd is stopped when ctx is done, or, if it
// was started by child.Start, when this program exits.
func (w workDir) poddCommand(ctx context.Context, out io.Writer) *exec.Cmd {
	c := exec.CommandContext(ctx, binaryPath, "run",
		"--pod-manifest-path="+w.manifestDir(), "--root-dir="+filepath.Join(w.dir, "root"),
		"--run-dir="+w.socketDir(), "--pod-logs-dir="+filepath.Join(w.dir, "logs"),
		"--container-runtime-endpoint="+filepath.Join(w.dir, "containerd.sock"), "--cgroup-root="+w.cgroup, "--read-only-port=10255",
		"--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100") // the disk of a development machine is often nearly full
	c.Stdout, c.Stderr = out, out
	c.Cancel = func() error { return c.Process.Signal(unix.SIGTERM) }
	// podd needs a separate process group, because Ctrl-C must not reach podd directly.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	return c
}

// runAndFollow runs podd and prints changes of its pods until ctx is done. If the runtime exits, it
// starts the runtime again.
func (w workDir) runAndFollow(ctx context.Context, r runtimeProcess) error {
	out, err := os.OpenFile(w.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening podd's log: %w", err)
	}
	defer out.Close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	podd := w.poddCommand(running, out)
	if err := child.Start(podd); err != nil {
		return fmt.Errorf("starting podd: %w", err)
	}
	var group errgroup.Group
	group.Go(func() error {
		defer stop()
		return podd.Wait()
	})
	group.Go(func() error { return w.follow(running) })
	group.Go(func() error {
		superviseRuntime(running, r, func(line string) { fmt.Println(line) })
		return nil
	})
	err = group.Wait()
	if ctx.Err() != nil {
		fmt.Println("\n" + w.stopMessage())
		return nil
	}
	text, readErr := os.ReadFile(w.logPath())
	return errors.Join(readErr, newExitError(err, relativePath(w.logPath()), text))
}

// stopMessage returns what happens to the pods after podd has stopped.
func (w workDir) stopMessage() string {
	if _, err := os.Stat(w.stopFile()); err == nil {
		return "podd has stopped; \"make stop\" removes its pods"
	}
	return "podd has stopped; its pods keep running. \"make run\" adopts the pods, \"make stop\" removes everything"
}

// newExitError returns the error for a podd that exited although this program did not stop it. err is
// nil if the exit code was 0, and text is the content of podd's log at path.
func newExitError(err error, path string, text []byte) error {
	exitStatus := "exit status 0"
	if err != nil {
		exitStatus = err.Error()
	}
	return fmt.Errorf("podd exited (%s); its log %s ends with:\n%s\nits pods keep running. \"make run\" starts podd again and adopts the pods, \"make stop\" removes everything",
		exitStatus, path, lastLines(text, 5))
}

// lastLines returns the last n lines of a text.
func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

// removePods starts podd to remove the pods of an earlier run, and prints each pod that has stopped.
func (w workDir) removePods(ctx context.Context) error {
	podDirs, err := os.ReadDir(filepath.Join(w.dir, "root", "pods"))
	if errors.Is(err, fs.ErrNotExist) || len(podDirs) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing the directories of pods: %w", err)
	}
	printStep("down", "stopping the pods, each within its grace period (default 30s)", 0)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	podd := w.poddCommand(ctx, io.Discard)
	if err := child.Start(podd); err != nil {
		return fmt.Errorf("starting podd to remove its pods: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		podd.Wait()
		cancel()
	}()
	err = w.whenServing(ctx, func() error { return w.stopPods(ctx) })
	cancel()
	<-exited // podd exits, because cancel has cancelled its context
	if err != nil {
		return fmt.Errorf("removing the pods: %w", err)
	}
	return nil
}

// removeState removes podd's state after its pods were removed. It keeps the manifests, because
// they belong to the user.
func (w workDir) removeState() error {
	for _, name := range []string{"root", "run", "logs", "containers", "podd.log", "lock", filepath.Base(w.stopFile())} {
		if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
			return fmt.Errorf("removing podd's state: %w", err)
		}
	}
	return nil
}
