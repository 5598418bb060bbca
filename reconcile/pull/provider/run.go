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
	// maxResponseBytes is the maximum length of a response in bytes.
	maxResponseBytes = 1 << 20
	// After a plugin has exited, its child processes may keep its output open for outputDelay at
	// most.
	outputDelay = 2 * time.Second
)

// run runs the program without a shell and returns its response. The program has the environment
// variables of podd and the variables of its configuration. run kills the program and its process
// group after p.timeout, or when ctx is done.
func (p *plugin) run(ctx context.Context, repository string) (*wire.CredentialProviderResponse, error) {
	request, err := json.Marshal(wire.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "CredentialProviderRequest"},
		Image:    repository,
	})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	out := &limitedBuffer{limit: maxResponseBytes, onExceeded: cancel}
	cmd := exec.CommandContext(limited, p.path, p.Args...)
	// Discard the stderr of the program, because it may contain credentials.
	cmd.Stdin, cmd.Stdout = bytes.NewReader(append(request, '\n')), out
	cmd.Env = os.Environ()
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay

	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.exceeded:
		return nil, fmt.Errorf("%s wrote more than 1 MiB", p.path)
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s did not finish within %s", p.path, p.timeout)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w; run the program manually to see its output", p.path, unwrapPathError(err))
	}
	res, err := decode(out.text, p.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	return res, nil
}

// unwrapPathError removes the path from err, because the caller's message contains the path
// already.
func unwrapPathError(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// A limitedBuffer is a buffer for at most limit bytes. If more bytes are written, it calls
// onExceeded, and Write fails.
type limitedBuffer struct {
	text       []byte
	limit      int
	onExceeded func()
	exceeded   bool
}

func (c *limitedBuffer) Write(p []byte) (int, error) {
	if len(c.text)+len(p) > c.limit {
		c.exceeded = true
		c.onExceeded()
		return 0, errors.New("limit exceeded")
	}
	c.text = append(c.text, p...)
	return len(p), nil
}
