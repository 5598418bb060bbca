package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// process is a running program.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *os.File
	ended <-chan struct{} // closed when the program has exited
}

// startProgram starts a program and writes its output to a file. The program is killed when this
// process exits.
func (c *Cluster) startProgram(program string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(program), cmd: exec.Command(program, args...)}
	var err error
	if p.log, err = os.Create(filepath.Join(c.dir, p.name+".log")); err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if p.ended, err = StartChild(p.cmd); err != nil {
		_ = p.log.Close()
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

// StartChild starts cmd, and returns a channel that is closed after the process has exited. The
// kernel kills the process when this program exits. The kernel sends the signal when the thread that
// started the process exits, so StartChild keeps that thread until the process has exited.
func StartChild(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, exited := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the error is ignored, because the caller may have killed the process
		}
	}()
	return exited, <-started
}

// endProcesses stops processes with the function stop and removes them from c.processes.
func (c *Cluster) endProcesses(stop func(*process) error, processes ...*process) (err error) {
	for _, p := range processes {
		if i := slices.Index(c.processes, p); i >= 0 {
			c.processes = slices.Delete(c.processes, i, i+1)
			err = errors.Join(err, stop(p))
		}
	}
	return err
}

// kill kills a program with SIGKILL.
func (p *process) kill() error {
	_ = p.cmd.Process.Kill()
	<-p.ended
	return p.log.Close()
}

// stopTimeout is the time after which a program that does not stop is killed.
const stopTimeout = 10 * time.Second

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return p.log.Close()
}

// logTail returns the end of a program's log.
func (p *process) logTail() string {
	text, _ := os.ReadFile(p.log.Name())
	return string(text[max(0, len(text)-4000):])
}

// waitUntilReady waits until a request to url gets a response with status 200. It returns an error
// after readyTimeout, or if the program exits.
func (p *process) waitUntilReady(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var lastError string
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if r, err := client.Do(q); err != nil {
			lastError = err.Error()
		} else {
			text, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
			lastError = fmt.Sprintf("%s: %s", r.Status, text)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s exited:\n%s", p.name, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s\n%s", p.name, ctx.Err(), lastError, p.logTail())
		}
	}
}
