package main

import (
	"context"
	"fmt"
	"net/url"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// ExecCmd is podd exec.
type ExecCmd struct {
	Client
	Select
	Pod       string   `arg:"" help:"A pod, with or without the node's name." complete:"pod"`
	Command   []string `arg:"" help:"The command and its words, after --."`
	Container string   `short:"c" placeholder:"NAME" help:"In this container; else in the pod's first, or the one its annotation names." complete:"container"`
	Stdin     bool     `short:"i" name:"stdin" help:"Pass standard input on to the command."`
	TTY       bool     `short:"t" name:"tty" help:"Give the command a terminal."`
	Quiet     bool     `short:"q" help:"Say nothing but what the command says."`
}

// Run runs the command and leaves with its code.
func (c *ExecCmd) Run(ctx context.Context, s Streams) error {
	p, pod, word, err := c.reach(ctx, c.Select, c.Pod)
	if err != nil {
		return err
	}
	container, err := chooseContainer(pod, c.Container, "-c NAME", c.talk(s))
	if err != nil {
		return err
	}
	command := &stream.Command{Stdout: s.Out, Stderr: s.Err}
	if c.Stdin {
		command.Stdin = s.In
	}
	restore := func() {}
	if c.TTY {
		if restore, err = giveTerminal(ctx, command, s, c.Quiet); err != nil {
			return err
		}
	}
	err = p.runCommand(ctx, inPod("/exec/", pod, container), url.Values{"command": c.Command}, command)
	restore()
	return withCode(hint(execError(err, container, word, c.Command[0]), word), c.Quiet)
}

func (c *ExecCmd) talk(s Streams) Streams {
	if c.Quiet {
		s.Err = nowhere
	}
	return s
}

var nowhere = writerFunc(func(b []byte) (int, error) { return len(b), nil })

// inPod is a path of the kubelet's API for a container of a pod.
func inPod(verb string, p *server.PodView, container string) string {
	return verb + p.Pod.Namespace + "/" + p.Pod.Name + "/" + container
}

// AttachCmd is podd attach.
type AttachCmd struct {
	Client
	Select
	Pod       string `arg:"" help:"A pod, with or without the node's name." complete:"pod"`
	Container string `short:"c" placeholder:"NAME" help:"To this container; else to the pod's first, or the one its annotation names." complete:"container"`
	Stdin     bool   `short:"i" name:"stdin" help:"Pass standard input on to the container."`
	TTY       bool   `short:"t" name:"tty" help:"Be the container's terminal; it must have asked for one."`
	Quiet     bool   `short:"q" help:"Say nothing but what the container says."`
}

// Run copies streams until the container ends, or the user does.
func (c *AttachCmd) Run(ctx context.Context, s Streams) error {
	p, pod, word, err := c.reach(ctx, c.Select, c.Pod)
	if err != nil {
		return err
	}
	name, err := chooseContainer(pod, c.Container, "-c NAME", (&ExecCmd{Quiet: c.Quiet}).talk(s))
	if err != nil {
		return err
	}
	return c.attach(ctx, p, pod, name, word, s)
}

// attach takes part in a container of a pod.
func (c *AttachCmd) attach(ctx context.Context, p *peer, pod *server.PodView, name, word string, s Streams) (err error) {
	talk := (&ExecCmd{Quiet: c.Quiet}).talk(s)
	container := specOf(pod.Pod, name)
	command := &stream.Command{Stdout: s.Out, Stderr: s.Err}
	if c.Stdin {
		command.Stdin = s.In
		if container != nil && !container.Stdin {
			return fmt.Errorf("container %s of %s reads no input: its manifest has no stdin: true; without -i its output is shown", name, word)
		}
	}
	restore := func() {}
	switch {
	case container != nil && container.TTY: // there is no error output of its own
		if restore, err = giveTerminal(ctx, command, s, c.Quiet || !c.TTY); err != nil {
			return err
		}
		command.TTY, command.Stderr = true, nil // whether or not the user has one
	case c.TTY:
		fmt.Fprintf(talk.Err, "podd: container %s has no terminal: its manifest has no tty: true\n", name)
	}
	if c.Stdin && command.Sizes != nil {
		fmt.Fprint(talk.Err, "If you don't see a command prompt, try pressing enter.\r\n")
	}
	err = p.runCommand(ctx, inPod("/attach/", pod, name), url.Values{}, command)
	restore()
	return withCode(hint(err, word), c.Quiet)
}

// specOf is the container of a name; nil: it is not known.
func specOf(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range p.Spec.EphemeralContainers {
		if c := &p.Spec.EphemeralContainers[i]; c.Name == name {
			return (*v1.Container)(&c.EphemeralContainerCommon)
		}
	}
	return nil
}
