package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/containers"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/server"
)

// DebugCmd is the podd debug command.
type DebugCmd struct {
	client.Flags
	PodSelector
	Pod             string        `arg:"" help:"Name of a running pod. The node name at its end may be omitted." complete:"pod"`
	Command         []string      `arg:"" optional:"" help:"Command and arguments, after --. Default: the command of the image."`
	Image           string        `required:"" placeholder:"IMAGE" help:"Container image to use for debug container."`
	Container       string        `short:"c" placeholder:"NAME" help:"Container name to use for debug container. Default: debugger- and five random characters."`
	Target          string        `placeholder:"CONTAINER" help:"Target processes in this container name." complete:"container"`
	Stdin           bool          `short:"i" name:"stdin" help:"Keep stdin open on the container, and attach to it."`
	TTY             bool          `short:"t" name:"tty" help:"Allocate a TTY for the debugging container. Requires -i."`
	Attach          *bool         `negatable:"" help:"Wait for the container to start running, then attach to it and exit with its exit code. Default false, unless -i/--stdin is set."`
	Env             []string      `sep:"none" placeholder:"K=V" help:"Environment variable to set in the container. May be repeated."`
	ImagePullPolicy string        `enum:",Always,IfNotPresent,Never" default:"" placeholder:"POLICY" help:"The image pull policy for the container. One of: Always, IfNotPresent, Never. Default: Always for the tag latest, otherwise IfNotPresent."`
	ArgumentsOnly   bool          `help:"Pass everything after -- to the new container as Args instead of Command."`
	Profile         string        `enum:"legacy,general,baseline,restricted,netadmin,sysadmin" default:"general" placeholder:"PROFILE" help:"Debugging profile. One of: legacy, general, baseline, restricted, netadmin, sysadmin. Default: general."`
	Timeout         time.Duration `default:"2m" placeholder:"DURATION" help:"The length of time to wait until the container runs (2m). 0 waits without limit."`
	Quiet           bool          `short:"q" help:"Suppress informational messages."`
}

// Validate returns an error for invalid combinations of flags and arguments.
func (c *DebugCmd) Validate(*kong.Context) error {
	if kind, _, hasKind := strings.Cut(c.Pod, "/"); hasKind && slices.Contains([]string{"node", "nodes", "no"}, kind) {
		return fmt.Errorf("%s: \"podd debug\" supports only pods; on the node itself, use a shell", c.Pod)
	}
	if c.TTY && !c.Stdin {
		return errors.New("-t requires -i")
	}
	return nil
}

// Run adds an ephemeral container to a pod, as kubectl debug does. It waits until the container
// runs. If podd debug attaches to the container, Run waits until the container has terminated.
func (c *DebugCmd) Run(ctx context.Context, s iostreams.Streams) error {
	env, err := parseEnv(c.Env)
	if err != nil {
		return exit.NewError(exit.Usage, err)
	}
	p, pod, podArg, err := connectAndFindPod(ctx, c.Flags, c.PodSelector, c.Pod)
	if err != nil {
		return err
	}
	container, err := c.newContainer(pod, env)
	if err != nil {
		return err
	}
	notices := noticeWriter(s, c.Quiet)
	if c.Container == "" {
		fmt.Fprintf(notices, "podd: defaulting debug container name to %s\n", container.Name)
	}
	if err := p.AddEphemeralContainer(ctx, pod, container); err != nil {
		return err
	}
	pod, status, err := c.waitRunning(ctx, p, pod, container.Name, notices)
	if err != nil {
		return err
	}
	if c.shouldAttach() {
		return c.attach(ctx, p, pod, status, podArg, s)
	}
	fmt.Fprintf(notices, "podd: container %s of %s %s; run \"podd logs %s -c %s\" for its output\n", container.Name, podArg, debugState(status), podArg, container.Name)
	return nil
}

// shouldAttach reports whether podd debug attaches to the container.
func (c *DebugCmd) shouldAttach() bool {
	if c.Attach != nil {
		return *c.Attach
	}
	return c.Stdin
}

// newContainer returns the ephemeral container to add.
func (c *DebugCmd) newContainer(pod *server.PodView, env []v1.EnvVar) (*v1.EphemeralContainer, error) {
	existing := containers.Names(pod.Pod)
	name := c.Container
	for c.Container == "" && (name == "" || slices.Contains(existing, name)) {
		name = "debugger-" + rand.String(5)
	}
	if slices.Contains(existing, name) {
		return nil, fmt.Errorf("pod %s already has a container %q; choose another name, because an ephemeral container cannot be replaced", pod.Key(), name)
	}
	if c.Target != "" {
		if err := containers.CheckExists(pod, c.Target); err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
	}
	container := &v1.EphemeralContainer{TargetContainerName: c.Target, EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name: name, Image: c.Image, ImagePullPolicy: v1.PullPolicy(c.ImagePullPolicy), Env: env,
		Stdin: c.Stdin, TTY: c.TTY, TerminationMessagePolicy: v1.TerminationMessageReadFile,
		// Without StdinOnce, containerd closes the output at the end of the input, and the
		// container does not receive the end of its input.
		StdinOnce:       c.shouldAttach() && c.Stdin && !c.TTY,
		SecurityContext: debugProfiles[c.Profile],
	}}
	if c.ArgumentsOnly {
		container.Args = c.Command
	} else {
		container.Command = c.Command
	}
	return container, nil
}

// debugProfiles maps the profiles of kubectl debug to their security contexts. The profiles that
// are not in the map, legacy and baseline, set no security context.
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

// parseEnv parses arguments of the form K=V.
func parseEnv(args []string) ([]v1.EnvVar, error) {
	var vars []v1.EnvVar
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env: %q is not of the form K=V", arg)
		}
		vars = append(vars, v1.EnvVar{Name: name, Value: value})
	}
	return vars, nil
}
