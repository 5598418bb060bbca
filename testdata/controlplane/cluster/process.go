package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ControlPlane are the programs that Start needs, Kubelet is an agent of a node.
var ControlPlane, Kubelet = []string{"etcd", "kube-apiserver"}, "kubelet"

// packages are what each program is built from.
var packages = map[string]string{
	"etcd":           "go.etcd.io/etcd/server/v3",
	"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
	"kubelet":        "k8s.io/kubernetes/cmd/kubelet",
}

// Build builds programs into a directory, static, but for those that it has. It
// takes minutes, and the module's directory, or one in it, as the current one.
func Build(dir string, programs ...string) error {
	for _, name := range programs {
		from := packages[name]
		program := filepath.Join(dir, name)
		if _, err := os.Stat(program); err == nil {
			continue
		}
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, from)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// process is a program that was started.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{}
}

// run starts a program, which ends with this one in any case. Its output goes to
// a file.
func (c *Cluster) run(program string, args ...string) error {
	p := &process{name: filepath.Base(program), cmd: exec.Command(program, args...), ended: make(chan struct{})}
	var err error
	if p.log, err = os.Create(filepath.Join(c.dir, p.name+".log")); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		_ = p.log.Close()
		return err
	}
	c.processes = append(c.processes, p)
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

// stopWithin is how long a program may take to end before it is killed.
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

// lastWords is the end of a program's log.
func (p *process) lastWords() string {
	text, _ := os.ReadFile(p.log.Name())
	return string(text[max(0, len(text)-4000):])
}
