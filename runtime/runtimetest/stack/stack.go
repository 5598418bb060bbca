// Package stack runs a private container runtime: a containerd with runc and
// CNI plugins that shares nothing with another on the same host. `make run`,
// the end-to-end tests and the benchmark use it. It needs root.
//
//	<Options.Dir>/
//		containerd.sock      what podd and crictl are pointed at
//		stack/               everything else, and all that Destroy removes
//			state.json       what Open and Reap read
//			containerd.toml  containerd.log
//			root/ run/ runc/ s/   containerd's root, state, runc's state, shim sockets
//			cni/ certs.d/
//
// What cannot lie there is chosen free by package claim, so that stacks of any
// number of processes run side by side: a bridge (podds<n>), a subnet
// (10.88.<n>.0/24, and one of IPv6) and a cgroup parent (/podd-stack-<n>). Destroy takes all of
// it away again; [Reap] does that for stacks whose process was killed.
//
// A Stack is used by one goroutine at a time. Two processes must not work on
// the same Dir at once.
package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"podd/runtime/runtimetest/stack/claim"
	"podd/runtime/runtimetest/stack/tools"
)

// The images every stack has loaded, without a registry.
const (
	PauseImage   = tools.PauseImage   // a sandbox's process
	BusyboxImage = tools.BusyboxImage // a shell and the usual commands in /bin
	WebImage     = tools.WebImage     // answers HTTP on $PORT, 8080 when unset
)

// Options says what Start starts.
type Options struct {
	// Dir is made when missing. Required. With /containerd.sock.ttrpc behind
	// it, it must fit into the address of a unix socket, 107 bytes.
	Dir string
	// Flavor is tools.Pinned or tools.Debian. "" is $RUNTIME, and Pinned if
	// that is unset too.
	Flavor tools.Flavor
	// Detach makes a stack that outlives this process: Reap leaves it alone.
	Detach bool
	// DualStack gives pods an IPv6 address beside that of IPv4.
	DualStack bool
	// Config is TOML that containerd merges over the stack's configuration.
	Config string
	// Log is told about slow or system-wide steps; nil discards.
	Log *slog.Logger
}

// Stack is a containerd and what it runs. Pods run on when containerd does
// not: see Running, Stop and Restart.
type Stack struct {
	state
	Took    Took
	log     *slog.Logger
	process *process        // nil: containerd does not run
	ended   map[string]bool // containers whose processes endProcesses ended
}

// state is what a later process needs to take a stack over.
type state struct {
	Dir         string
	Tools       tools.Set
	Claim       claim.Claim
	Snapshotter string
	DualStack   bool
	Containerd  claim.Owner // the process; it may be dead
}

// Took is how long the steps of the last Start or Restart were; zero is a
// step that was not taken.
type Took struct{ Ready, Images time.Duration }

// Start brings a stack up: it returns when the runtime and its network are
// ready and the images are there. When it fails it leaves nothing behind.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := needRoot(); err != nil {
		return nil, err
	}
	set, err := tools.Ensure(ctx, tools.Options{Flavor: o.Flavor, Log: o.Log})
	if err != nil {
		return nil, err
	}
	if err := Reap(ctx, o.Log); err != nil {
		o.Log.Warn("an earlier stack could not be removed", "err", err)
	}
	if err := clear(ctx, o.Dir, o.Log); err != nil {
		return nil, err
	}
	s := &Stack{state: state{Dir: o.Dir, Tools: set, DualStack: o.DualStack}, log: o.Log}
	err = s.up(ctx, o.Config)
	if err == nil && o.Detach {
		err = s.detach()
	}
	if err != nil {
		// The context may be why it failed, and cleaning up must still be done.
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, s.Destroy(rest))
	}
	return s, nil
}

func (o *Options) complete() error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return fmt.Errorf("starting a stack in %q: a directory is required: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Flavor == "" {
		o.Flavor = tools.Flavor(os.Getenv("RUNTIME"))
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := fitsSocket(socketIn(dir) + ".ttrpc"); err != nil {
		return err
	}
	return nil
}

func needRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("using a container runtime: only root can, and this runs as uid %d; try sudo", uid)
	}
	return nil
}

// up takes the steps of Start. What it did before an error is for Destroy.
func (s *Stack) up(ctx context.Context, config string) error {
	if err := os.MkdirAll(s.own(), 0o700); err != nil {
		return fmt.Errorf("making the stack's directory: %w", err)
	}
	if err := s.claim(); err != nil {
		return err
	}
	if err := s.configure(config); err != nil {
		return err
	}
	if err := s.Restart(ctx); err != nil {
		return err
	}
	return s.load(ctx)
}

func (s *Stack) claim() error {
	owner, err := claim.Self()
	if err != nil {
		return err
	}
	s.Claim, err = claims().Take(s.Dir, stateFile(s.Dir), owner)
	return err
}

// claimed reports whether there is a claim: without one nothing on the host is
// the stack's.
func (s *Stack) claimed() bool { return s.Claim.Dir != "" }

// detach makes the stack outlive this process.
func (s *Stack) detach() error {
	s.Claim.Owner = claim.Owner{}
	if err := s.save(); err != nil {
		return err
	}
	_, err := claims().SetOwner(s.Claim, s.Claim.Owner)
	return err
}

// Endpoint is the CRI socket as a URL, for --container-runtime-endpoint.
func (s *Stack) Endpoint() string { return "unix://" + s.Socket() }

// Socket is the path of the CRI socket.
func (s *Stack) Socket() string { return socketIn(s.Dir) }

// own is the directory of everything but the socket.
func (s *Stack) own() string { return ownIn(s.Dir) }

// CgroupParent is a cgroup that no other stack uses, for tests to put pods
// below; Destroy removes it with all that is in it.
func (s *Stack) CgroupParent() string { return s.Claim.CgroupParent() }

// LogFile is where containerd writes.
func (s *Stack) LogFile() string { return filepath.Join(s.own(), "containerd.log") }
