package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

const (
	// answerLimit bounds what a plugin may write.
	answerLimit = 1 << 20
	// afterEnd is how long what a plugin left behind may hold its output open.
	afterEnd = 2 * time.Second
)

// run asks the program, through no shell, in podd's own environment with what
// the configuration adds. It ends with all that it started when it takes too
// long or ctx is done.
func (p *plugin) run(ctx context.Context, repository string) (*wire.CredentialProviderResponse, error) {
	request, err := json.Marshal(wire.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "CredentialProviderRequest"},
		Image:    repository,
	})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	out := &capped{limit: answerLimit, over: cancel}
	cmd := exec.CommandContext(limited, p.path, p.Args...)
	// Nobody sees its standard error: what it says there may be its answer.
	cmd.Stdin, cmd.Stdout = bytes.NewReader(append(request, '\n')), out
	cmd.Env = os.Environ()
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterEnd

	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.exceeded:
		return nil, fmt.Errorf("%s wrote more than 1 MiB", p.path)
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s was not done after %s", p.path, p.patience)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w; run it by hand to see why", p.path, withoutPath(err))
	}
	answer, err := decode(out.text, p.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	return answer, nil
}

// withoutPath leaves out the path, which stands before it.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// capped holds what is written up to a limit, then calls over.
type capped struct {
	text     []byte
	limit    int
	over     func()
	exceeded bool
}

func (c *capped) Write(p []byte) (int, error) {
	if len(c.text)+len(p) > c.limit {
		c.exceeded = true
		c.over()
		return 0, errors.New("too much")
	}
	c.text = append(c.text, p...)
	return len(p), nil
}
