// Package stack runs a private container runtime: a containerd or CRI-O with runc and CNI plugins
// that shares nothing with other runtimes on the host. `make run`, the end-to-end tests and the
// benchmark use this package. Only root can start a stack.
//
//	<Options.Dir>/
//		containerd.sock      or crio.sock: the endpoint for podd and crictl
//		stack/               everything else, and all that Destroy removes
//			state.json       read by Open and Reap
//			containerd.toml  containerd.log    or crio.conf  crio.log
//			root/ run/ runc/ s/   the runtime's root, state, runc's state, shim sockets
//			cni/ certs.d/
//
// Package reservation reserves the resources outside this directory, so that stacks of any number of
// processes can run at the same time: a bridge (podds<n>), a subnet (10.88.<4*n>.0/22, and one of
// IPv6) and a cgroup parent (/podd-stack-<n>). Destroy removes all of them. [Reap] removes them for
// stacks of killed processes.
//
// A Stack is not safe for concurrent use. Two processes must not use the same Dir at the
// same time.
package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"podd/runtime/runtimetest/stack/reservation"
	"podd/runtime/runtimetest/stack/tools"
)

// Images that are loaded into every stack without access to a registry.
const (
	PauseImage   = tools.PauseImage   // for the process of a sandbox
	BusyboxImage = tools.BusyboxImage // a shell and the usual commands in /bin
	WebImage     = tools.WebImage     // an HTTP server on $PORT, 8080 if it is not set
)

// Options configure Start.
type Options struct {
	// Dir is the directory of the stack, which is created if necessary. It is required. With
	// containerd, the path Dir/containerd.sock.ttrpc must not be longer than 107 bytes, the
	// maximum for the path of a Unix socket.
	Dir string
	// Flavor is tools.Pinned, tools.Debian or tools.CRIO. "" means the value of $RUNTIME, or Pinned
	// if $RUNTIME is not set.
	Flavor tools.Flavor
	// Detach makes the stack remain after this process has exited, because Reap does not destroy a
	// detached stack.
	Detach bool
	// DualStack gives pods an IPv6 address in addition to the IPv4 address.
	DualStack bool
	// Masquerade lets pods reach networks outside the host. Each pod then costs several runs of nft,
	// so tests that do not need it leave it out.
	Masquerade bool
	// Config is TOML that the runtime merges into the stack's configuration.
	Config string
	// Log receives a message about each step that is slow or changes the host. If it is nil,
	// messages are discarded.
	Log *slog.Logger
}

// A Stack is a container runtime with its pods. If the runtime stops, pods keep running; see
// IsRunning, Stop and Restart.
type Stack struct {
	state
	Durations        StepDurations
	log              *slog.Logger
	process          *process        // nil if the runtime does not run
	killedContainers map[string]bool // IDs of containers with processes that killProcesses killed
}

// state is the data that another process needs to take over a stack.
type state struct {
	Dir         string
	Tools       tools.Set
	Reservation reservation.Reservation `json:"Claim"` // the key in the state files of earlier builds
	Snapshotter string
	DualStack   bool
	Masquerade  bool
	Daemon      reservation.Owner // the runtime's process, which may have exited
}

// StepDurations contains the durations of the steps of the last Start or Restart; zero if a step was
// not necessary.
type StepDurations struct{ Ready, Images time.Duration }

// Start starts a stack. It returns when the runtime and its network are ready and the images are
// loaded. After an error, Start has removed everything that it created.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := requireRoot(); err != nil {
		return nil, err
	}
	set, err := tools.Ensure(ctx, tools.Options{Flavor: o.Flavor, Log: o.Log})
	if err != nil {
		return nil, err
	}
	if err := Reap(ctx, o.Log); err != nil {
		o.Log.Warn("removing an earlier stack failed; continuing", "err", err)
	}
	if err := removeOldStack(ctx, o.Dir, o.Log); err != nil {
		return nil, err
	}
	s := &Stack{state: state{Dir: o.Dir, Tools: set, DualStack: o.DualStack, Masquerade: o.Masquerade}, log: o.Log}
	err = s.setUp(ctx, o.Config)
	if err == nil && o.Detach {
		err = s.detach()
	}
	if err != nil {
		// ctx may already be done, but Destroy must still clean up.
		cleanupCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, s.Destroy(cleanupCtx))
	}
	return s, nil
}

// setDefaults sets the fields that are empty, and returns an error for an invalid directory.
func (o *Options) setDefaults() error {
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
	socket := socketIn(dir, o.Flavor)
	if o.Flavor != tools.CRIO {
		socket += ".ttrpc"
	}
	return checkSocketPath(socket)
}

// requireRoot returns an error unless the process runs as root.
func requireRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("using a container runtime requires root, got uid %d; run this command with sudo", uid)
	}
	return nil
}

// setUp performs the steps of Start. The caller must call Destroy after an error.
func (s *Stack) setUp(ctx context.Context, config string) error {
	if err := os.MkdirAll(s.privateDir(), 0o700); err != nil {
		return fmt.Errorf("creating the stack's directory: %w", err)
	}
	if err := s.takeReservation(); err != nil {
		return err
	}
	if err := s.configure(config); err != nil {
		return err
	}
	if err := s.Restart(ctx); err != nil {
		return err
	}
	return s.loadTestImages(ctx)
}

// takeReservation reserves a number and a subnet for the stack.
func (s *Stack) takeReservation() error {
	owner, err := reservation.CurrentProcess()
	if err != nil {
		return err
	}
	s.Reservation, err = reservationTable().Take(s.Dir, stateFile(s.Dir), owner)
	return err
}

// hasReservation reports whether the stack has a reservation. Without a reservation, nothing of the
// stack exists outside Dir.
func (s *Stack) hasReservation() bool { return s.Reservation.Dir != "" }

// detach makes the stack remain after this process has exited, because Reap does not destroy a
// detached stack.
func (s *Stack) detach() error {
	s.Reservation.Owner = reservation.Owner{}
	if err := s.saveState(); err != nil {
		return err
	}
	_, err := reservationTable().SetOwner(s.Reservation, s.Reservation.Owner)
	return err
}

// Endpoint returns the CRI socket as a URL, for --container-runtime-endpoint.
func (s *Stack) Endpoint() string { return "unix://" + s.Socket() }

// Socket returns the path of the CRI socket.
func (s *Stack) Socket() string { return socketIn(s.Dir, s.Tools.Flavor) }

// Program returns the name of the runtime's daemon, containerd or crio.
func (s *Stack) Program() string { return daemonName(s.Tools.Flavor) }

// privateDir returns the directory that contains all files of the stack except the socket.
func (s *Stack) privateDir() string { return privateDirIn(s.Dir) }

// CgroupParent returns a cgroup for the pods of tests. No other stack uses this cgroup. Destroy
// removes the cgroup and everything in it.
func (s *Stack) CgroupParent() string { return s.Reservation.CgroupParent() }

// logFile returns the path of the runtime's log.
func (s *Stack) logFile() string { return filepath.Join(s.privateDir(), s.Program()+".log") }
