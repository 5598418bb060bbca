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
	config "k8s.io/kubelet/config/v1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"podd/runtime/oomscore"
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
// group after p.timeout, or when ctx is done. a is nil without a service account.
func (p *plugin) run(ctx context.Context, repository string, a *account) (*wire.CredentialProviderResponse, error) {
	request, err := p.encodeRequest(repository, a)
	if err != nil {
		return nil, err
	}
	runCtx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	out := &limitedBuffer{limit: maxResponseBytes, onExceeded: cancel}
	cmd := exec.CommandContext(runCtx, p.path, p.Args...)
	// Discard the stderr of the program, because it may contain credentials.
	cmd.Stdin, cmd.Stdout = bytes.NewReader(append(request, '\n')), out
	cmd.Env = os.Environ()
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputDelay

	startTime := time.Now()
	err = oomscore.Run(cmd)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // only a child process of the program has not ended
	}
	if p.onRun != nil {
		p.onRun(Run{Plugin: p.Name, Took: time.Since(startTime), HasFailed: ctx.Err() == nil && (err != nil || runCtx.Err() != nil)})
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.isExceeded:
		return nil, fmt.Errorf("%s wrote more than 1 MiB", p.path)
	case runCtx.Err() != nil:
		return nil, fmt.Errorf("%s did not finish within %s", p.path, p.timeout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w; run the program manually to see its output", p.path, unwrapPathError(err))
	}
	res, err := decode(out.text, p.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	if a != nil && p.echoesToken(res, a.token) {
		return nil, fmt.Errorf("%s: the response contains the service account token as a password; set cacheType: Token in tokenAttributes", p.path)
	}
	return res, nil
}

// encodeRequest returns the text of a request. a is nil without a service account.
func (p *plugin) encodeRequest(repository string, a *account) ([]byte, error) {
	request := wire.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: p.APIVersion, Kind: "CredentialProviderRequest"},
		Image:    repository,
	}
	if a != nil {
		request.ServiceAccountToken, request.ServiceAccountAnnotations = a.token, a.annotations
	}
	return json.Marshal(request)
}

// echoesToken reports whether a response contains the token of a pod although podd would use the
// response for all pods of the service account.
func (p *plugin) echoesToken(res *wire.CredentialProviderResponse, token string) bool {
	if p.TokenAttributes.CacheType == config.TokenServiceAccountTokenCacheType {
		return false
	}
	for _, auth := range res.Auth {
		if auth.Password == token {
			return true
		}
	}
	return false
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
	isExceeded bool
}

func (c *limitedBuffer) Write(p []byte) (int, error) {
	if len(c.text)+len(p) > c.limit {
		c.isExceeded = true
		c.onExceeded()
		return 0, errors.New("limit exceeded")
	}
	c.text = append(c.text, p...)
	return len(p), nil
}
