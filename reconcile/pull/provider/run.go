package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

const (
	// answerLimit bounds what a plugin may write, complaintLimit what is kept of
	// its standard error.
	answerLimit    = 1 << 20
	complaintLimit = 4 << 10
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
	out, complaint := &capped{limit: answerLimit, over: cancel}, &tail{limit: complaintLimit}
	cmd := exec.CommandContext(limited, p.path, p.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(request, '\n')), out, complaint
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
		return nil, fmt.Errorf("%s was not done after %s%s", p.path, p.patience, complaint)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w%s", p.path, withoutPath(err), complaint)
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

// tail holds the end of what is written.
type tail struct {
	text  []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-t.limit):]
	return len(p), nil
}

// lineLimit is what of a line is shown.
const lineLimit = 300

// String is the last line, to stand behind an error; "" when there is none.
func (t *tail) String() string {
	text := strings.TrimSpace(string(t.text))
	text = text[strings.LastIndexByte(text, '\n')+1:]
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %q", text[:min(len(text), lineLimit)])
}
