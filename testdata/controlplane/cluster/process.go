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
	"slices"
	"syscall"
	"time"
)

// process is a running program.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
}

// run starts a program and writes its output to a file. The program is killed when this process
// exits.
func (c *Cluster) run(program string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(program), cmd: exec.Command(program, args...), ended: make(chan struct{})}
	var err error
	if p.log, err = os.Create(filepath.Join(c.dir, p.name+".log")); err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		_ = p.log.Close()
		return nil, err
	}
	c.processes = append(c.processes, p)
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// end stops processes with the function how and removes them from c.processes.
func (c *Cluster) end(how func(*process) error, ended ...*process) (err error) {
	for _, p := range ended {
		if i := slices.Index(c.processes, p); i >= 0 {
			c.processes = slices.Delete(c.processes, i, i+1)
			err = errors.Join(err, how(p))
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

// stopWithin is the time that a program has to stop before it is killed.
const stopWithin = 10 * time.Second

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
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

// ready waits until a request to url gets a response with status 200.
func (p *process) ready(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var last string
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if r, err := client.Do(q); err != nil {
			last = err.Error()
		} else {
			text, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
			last = fmt.Sprintf("%s: %s", r.Status, text)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s exited:\n%s", p.name, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s\n%s", p.name, ctx.Err(), last, p.logTail())
		}
	}
}
