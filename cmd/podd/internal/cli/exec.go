package cli

import (
	"context"
	"errors"
	"io"
	"net/url"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// SessionFlags contains the flags and the argument that podd exec and podd attach share.
type SessionFlags struct {
	client.Flags
	PodSelector
	Pod       string `arg:"" help:"Pod name. The node name at its end may be omitted." complete:"pod"`
	Container string `short:"c" placeholder:"NAME" help:"Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation or the first container in the pod." complete:"container"`
	Stdin     bool   `short:"i" name:"stdin" help:"Pass stdin to the container."`
	TTY       bool   `short:"t" name:"tty" help:"Stdin is a TTY."`
	Quiet     bool   `short:"q" help:"Only print output from the remote session."`
}

// ExecCmd is the podd exec command.
type ExecCmd struct {
	SessionFlags
	Command []string `arg:"" help:"Command and arguments, after --."`
}

// Run runs the command in the container. podd then exits with the exit code of the command.
func (c *ExecCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, pod, podArg, err := connectAndFindPod(ctx, c.Flags, c.PodSelector, c.Pod)
	if err != nil {
		return err
	}
	container, err := chooseContainer(pod, c.Container, "-c NAME", noticeWriter(s, c.Quiet))
	if err != nil {
		return err
	}
	command := &stream.Command{Stdout: s.Out, Stderr: s.Err}
	if c.Stdin {
		command.Stdin = s.In
	}
	restore := func() {}
	if c.TTY {
		if restore, err = attachTerminal(ctx, command, s, c.Quiet); err != nil {
			return err
		}
	}
	err = p.RunCommand(ctx, containerPath("/exec/", pod, container), url.Values{"command": c.Command}, command)
	restore()
	return exitStatusError(withWhyHint(execError(err, container, podArg, c.Command[0]), podArg), c.Quiet)
}

// noticeWriter returns the writer for podd's own messages. If quiet is set, the writer discards all
// messages.
func noticeWriter(s iostreams.Streams, quiet bool) io.Writer {
	if quiet {
		return io.Discard
	}
	return s.Err
}

// containerPath returns the path of a request about a container in the kubelet API. verb is the
// beginning of the path, such as "/attach/".
func containerPath(verb string, p *server.PodView, container string) string {
	return verb + p.Pod.Namespace + "/" + p.Pod.Name + "/" + container
}

// exitStatusError returns an error that makes podd exit with the exit status of a command, if err
// contains such a status. Otherwise it returns err unchanged. If quiet is set, podd does not print
// the returned error.
func exitStatusError(err error, quiet bool) error {
	exitErr := (*stream.ExitError)(nil)
	switch {
	case !errors.As(err, &exitErr):
		return err
	case quiet:
		return exit.NewError(exitErr.Code, nil)
	}
	return exit.NewError(exitErr.Code, err)
}
