package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"podd/server"
)

// DebugCmd is podd debug.
type DebugCmd struct {
	Client
	Select
	Pod             string        `arg:"" help:"A pod that runs, with or without the node's name." complete:"pod"`
	Command         []string      `arg:"" optional:"" help:"The command and its words, after --; else the image's."`
	Image           string        `required:"" placeholder:"IMAGE" help:"What the new container is made of."`
	Container       string        `short:"c" placeholder:"NAME" help:"What it is called; else debugger-, and five letters."`
	Target          string        `placeholder:"CONTAINER" help:"See the processes of this container." complete:"container"`
	Stdin           bool          `short:"i" name:"stdin" help:"Pass standard input on to it; this attaches."`
	TTY             bool          `short:"t" name:"tty" help:"Give it a terminal; needs -i."`
	Attach          *bool         `negatable:"" help:"Take part in it once it runs, and leave with its code; so it is with -i."`
	Env             []string      `sep:"none" placeholder:"K=V" help:"A variable for it; repeatable."`
	ImagePullPolicy string        `enum:",Always,IfNotPresent,Never" default:"" placeholder:"POLICY" help:"Always, IfNotPresent or Never; else as the image's tag has it."`
	ArgumentsOnly   bool          `help:"The words after -- are arguments of the image's command."`
	Profile         string        `enum:"legacy,general,baseline,restricted,netadmin,sysadmin" default:"general" placeholder:"PROFILE" help:"What it may do: general (and trace processes), baseline, restricted, netadmin, sysadmin or legacy."`
	Timeout         time.Duration `default:"2m" placeholder:"DURATION" help:"Give up waiting until it runs after this long (2m); 0 waits for ever."`
	Quiet           bool          `short:"q" help:"Say nothing but what the container says."`
}

// Validate refuses what cannot be meant.
func (c *DebugCmd) Validate() error {
	if kind, _, named := strings.Cut(c.Pod, "/"); named && slices.Contains([]string{"node", "nodes", "no"}, kind) {
		return fmt.Errorf("%s: podd debugs pods; who may ask it is root on the node already", c.Pod)
	}
	if c.TTY && !c.Stdin {
		return errors.New("-t needs -i")
	}
	return nil
}

// Run adds an ephemeral container to a pod, as kubectl debug does, and waits until
// it runs, or with -i until it has ended.
func (c *DebugCmd) Run(ctx context.Context, s Streams) error {
	env, err := variables(c.Env)
	if err != nil {
		return exitWith(codeUsage, err)
	}
	p, pod, word, err := c.reach(ctx, c.Select, c.Pod)
	if err != nil {
		return err
	}
	added, err := c.container(pod, env)
	if err != nil {
		return err
	}
	talk := (&ExecCmd{Quiet: c.Quiet}).talk(s)
	if c.Container == "" {
		fmt.Fprintf(talk.Err, "podd: the container is %s\n", added.Name)
	}
	if err := p.addEphemeral(ctx, pod, added); err != nil {
		return err
	}
	pod, status, err := c.untilRuns(ctx, p, pod, added.Name, talk)
	if err != nil {
		return err
	}
	if c.attaches() {
		return c.takePart(ctx, p, pod, status, word, s)
	}
	fmt.Fprintf(talk.Err, "podd: container %s of %s %s; podd logs %s -c %s\n", added.Name, word, debugState(status), word, added.Name)
	return nil
}

// attaches says whether to take part in the container.
func (c *DebugCmd) attaches() bool {
	if c.Attach != nil {
		return *c.Attach
	}
	return c.Stdin
}

// container is the one to add.
func (c *DebugCmd) container(pod *server.PodView, env []v1.EnvVar) (*v1.EphemeralContainer, error) {
	taken := containerNames(pod.Pod)
	name := c.Container
	for name == "" || c.Container == "" && slices.Contains(taken, name) {
		name = "debugger-" + rand.String(5)
	}
	if slices.Contains(taken, name) {
		return nil, fmt.Errorf("pod %s has a container %q already; a container for debugging is added, and stays as long as its pod", pod.Key(), name)
	}
	if c.Target != "" {
		if err := checkContainer(pod, c.Target); err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
	}
	added := &v1.EphemeralContainer{TargetContainerName: c.Target, EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name: name, Image: c.Image, ImagePullPolicy: v1.PullPolicy(c.ImagePullPolicy), Env: env,
		Stdin: c.Stdin, TTY: c.TTY, TerminationMessagePolicy: v1.TerminationMessageReadFile,
		// Else containerd takes the output away at the end of the input, which the
		// container is not told of.
		StdinOnce:       c.attaches() && c.Stdin && !c.TTY,
		SecurityContext: debugProfiles[c.Profile],
	}}
	if c.ArgumentsOnly {
		added.Args = c.Command
	} else {
		added.Command = c.Command
	}
	return added, nil
}

// debugProfiles are kubectl's: what a container for debugging may do.
var debugProfiles = map[string]*v1.SecurityContext{
	"general": {Capabilities: &v1.Capabilities{Add: []v1.Capability{"SYS_PTRACE"}}},
	"restricted": {
		RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false),
		Capabilities:   &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	},
	"netadmin": {Capabilities: &v1.Capabilities{Add: []v1.Capability{"NET_ADMIN", "NET_RAW"}}},
	"sysadmin": {Privileged: new(true)},
}

// variables are those of K=V.
func variables(words []string) ([]v1.EnvVar, error) {
	var all []v1.EnvVar
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env: %q is not of the form K=V", word)
		}
		all = append(all, v1.EnvVar{Name: name, Value: value})
	}
	return all, nil
}
