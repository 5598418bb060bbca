package cli

import (
	"context"
	"fmt"
	"net/url"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/stream"
	"podd/reconcile/plan"
	"podd/server"
)

// AttachCmd is the podd attach command. With -t, the container must have tty: true.
type AttachCmd struct{ SessionFlags }

// Run copies streams until the container exits or closes its output.
func (c *AttachCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, pod, podArg, err := connectAndFindPod(ctx, c.Flags, c.PodSelector, c.Pod)
	if err != nil {
		return err
	}
	name, err := chooseContainer(pod, c.Container, "-c NAME", noticeWriter(s, c.Quiet))
	if err != nil {
		return err
	}
	return c.attach(ctx, p, pod, name, podArg, s)
}

// attach attaches to the container called name. podArg is an argument that selects the pod. Errors
// name the pod as podArg.
func (c *AttachCmd) attach(ctx context.Context, p *client.Client, pod *server.PodView, name, podArg string, s iostreams.Streams) (err error) {
	notices := noticeWriter(s, c.Quiet)
	container, _, _ := plan.FindContainer(pod.Pod, name)
	command := &stream.Command{Stdout: s.Out, Stderr: s.Err}
	if c.Stdin {
		command.Stdin = s.In
		if container != nil && !container.Stdin {
			return fmt.Errorf("container %s of %s has no stdin, because its manifest does not set stdin: true; attach without -i to see its output", name, podArg)
		}
	}
	restore := func() {}
	switch {
	case container != nil && container.TTY: // the container has a terminal, and therefore no separate stderr
		if restore, err = attachTerminal(ctx, command, s, c.Quiet || !c.TTY); err != nil {
			return err
		}
		command.TTY, command.Stderr = true, nil // also if the user's stdin is not a terminal
	case c.TTY:
		fmt.Fprintf(notices, "podd: container %s has no terminal, because its manifest does not set tty: true\n", name)
	}
	if c.Stdin && command.Sizes != nil {
		fmt.Fprint(notices, "If you don't see a command prompt, try pressing enter.\r\n")
	}
	err = p.RunCommand(ctx, containerPath("/attach/", pod, name), url.Values{}, command)
	restore()
	return exitStatusError(withWhyHint(err, podArg), c.Quiet)
}
