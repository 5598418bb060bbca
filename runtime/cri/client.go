// Package cri is a client of container runtimes. It uses CRI v1 over gRPC on a unix socket,
// and returns the types of package runtime.
//
//	effects ──▶ Client ──▶ socket ◀── Observer ──▶ runtime.Snapshot ──▶ router
//	                          ▲
//	                          └────── NodeObserver ──▶ runtime.Node
//
// A Client has one method per CRI call and is safe for concurrent use. The variable rpcVerdicts in
// rpc_test.go lists all calls of CRI, and says why podd does not make some of them. While a runtime is
// unreachable, restarted or upgraded, calls return runtime.ErrUnavailable. The connection
// is restored automatically.
//
// The text of errors is for users: it contains no gRPC codes, no chains of wrappers and no
// query strings. It does not repeat the subject of the call, because the caller adds it
// ("starting container pg: " + err). Errors that callers distinguish are in package
// runtime; use errors.Is and errors.As.
//
// # Runtimes
//
// CRI does not specify every detail, and runtimes deviate from CRI. podd relies only on behavior
// that package runtimetest requires of both containerd and CRI-O. The two differ as follows:
//
//   - CRI-O accepts only the content type application/grpc, without the name of a codec.
//   - containerd creates missing log directories. In CRI-O, CreateContainer fails if the
//     container's log directory is missing. CRI-O creates the pod's log directory so
//     that only root can read it.
//   - If a sandbox or container with the requested name exists, containerd reports that
//     the name is reserved. CRI-O returns the existing object, even if its config
//     differs.
//   - If a call is interrupted, for example because podd is killed, the runtime reserves
//     the name until the call has finished. In the meantime, containerd reports that the
//     name is reserved. CRI-O finishes the call, lets a second call for the name wait
//     until its deadline, and returns the result to the third call. podd therefore gives
//     calls to CRI-O short deadlines and repeats them.
//   - containerd's StopPodSandbox, RemovePodSandbox and RemoveContainer kill all processes. CRI-O
//     sends the stop signal and waits until the deadline of the call. If a longer stop is in
//     progress, these calls do not shorten that stop. In both runtimes, StopContainer shortens the
//     stop. With a timeout of zero, CRI-O sends the stop signal right before SIGKILL.
//   - containerd looks up a container's program when the container is started. A failure
//     leaves an exited container with the reason StartError. CRI-O looks up the program
//     when the container is created, and a failure leaves no container.
//   - If StartContainer fails, containerd leaves an exited container with the reason
//     StartError. CRI-O removes the container. In older versions of CRI-O, or if the removal
//     fails, the container stays in the state Created.
//   - In containerd, the status of an exited container always contains the exit code. CRI-O returns
//     the exit code -1 and no finish time until conmon has written the container's exit file. If
//     conmon was killed, the file is never written. Such a container has the state
//     runtime.ExitCodeUnknown.
//   - If ExecSync cannot kill a command in time, containerd returns DeadlineExceeded, and CRI-O
//     returns exit code -1 with "command timed out". If Exec cannot start a command, the stream of
//     containerd fails. In CRI-O, the command gets the exit code 255, and its stderr contains the
//     reason.
//   - CRI-O requires ImageSpec.UserSpecifiedImage of a container and does not return it. Its list
//     of containers contains the image ID without "sha256:". The list of containerd contains the
//     image name instead. CRI-O requires that the PID namespace of a container is the namespace of
//     the sandbox.
//   - For some objects that do not exist, CRI-O returns the code Unknown (see isNotFoundText). If
//     ImageStatus is called with an invalid image name, CRI-O returns an error, and containerd
//     reports that the image does not exist.
//   - For an image name without a registry, containerd uses docker.io, and CRI-O uses one of the
//     registries in registries.conf. CRI-O reports an unreachable registry as RegistryUnavailable.
//     In CRI-O, a pull can join another pull of the same image that is being canceled. Both pulls
//     then fail.
//   - If the client disconnects during StopPodSandbox, for example because podd is
//     killed, CRI-O aborts the removal of the network and never repeats it. The pod's
//     address then stays in use. containerd repeats the removal at the next call.
//   - In containerd 2.4 and CRI-O 1.36, UpdatePodSandboxResources only informs the NRI plugins, which
//     can reject the new resources. Older versions do not implement it: containerd 1.6 returns the
//     code Unimplemented, and others return the code Unknown with the text "not implemented yet".
//   - CRI-O keeps an image mounted after a container used it as a volume.
//   - CRI-O changes the FinishedAt of a container during its removal.
//   - Unless enable_pod_events is set, CRI-O closes every stream of events at once.
//     containerd 1.6 does not implement the stream. Neither runtime sends an event for
//     every change.
//   - In containerd every sandbox has a process. CRI-O creates one only if the
//     containers share the sandbox's PID namespace. Without a process, a sandbox stays
//     ready as long as the node runs.
//   - CRI-O notices the removal of a CNI configuration only if cni_status_grace_period is set. It
//     names cgroups crio-<id>. It runs conmon, the monitor of a container, in the cgroup
//     crio-conmon-<id> below the pod's cgroup. It writes logs with mode 0600. It gives a privileged
//     container every capability of the kernel, and rejects memory limits under 12 MiB. By default,
//     its containers do not have the capabilities AUDIT_WRITE, MKNOD, NET_RAW, SETFCAP and
//     SYS_CHROOT.
//   - If a container has no mount of /etc/hosts, for example in a pod without an
//     address, containerd shows the host's file and CRI-O the image's file.
//
// Both runtimes create a missing source directory of a bind mount. Both reject
// Bidirectional mounts unless the mount of the source directory is shared, and
// HostToContainer mounts unless it is shared or a slave.
package cri

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 2 * time.Minute

// Options configure a Client.
type Options struct {
	// Endpoint is the runtime's socket, as "unix:///path" or a path. It is required.
	Endpoint string
	// ImageEndpoint is the socket of the image service. If it is "", Endpoint is used.
	ImageEndpoint string
	// Timeout limits most calls; zero means DefaultTimeout. The limit of RunPodSandbox is twice
	// Timeout. The limit of StopContainer is Timeout plus the grace period. The limit of ExecSync
	// is Timeout plus the timeout of the command. PullImage has no limit.
	Timeout time.Duration
	// OnCall is called after every call. method is the CRI name of the called method, for
	// example "RunPodSandbox". OnCall may be called concurrently and must not block. It may
	// be nil.
	OnCall func(method string, duration time.Duration, err error)
	// Tracer creates a span for every call except streams. If Tracer is nil, calls are not traced.
	Tracer trace.Tracer
}

// A Client makes calls to one runtime. It is safe for concurrent use.
type Client struct {
	conn      grpc.ClientConnInterface // connection to the runtime service
	runtime   api.RuntimeServiceClient
	images    api.ImageServiceClient
	endpoint  string
	timeout   time.Duration
	conns     []*grpc.ClientConn // connections that Dial created, without duplicates; empty after New
	dialCount atomic.Uint64      // number of connections made to the runtime
	responses responseCache
	// isCRIO is set as soon as the runtime has identified itself as CRI-O. See create.
	isCRIO atomic.Bool
}

// Dial returns a client for the runtime at o.Endpoint. It returns an error only for invalid
// options. The client connects at the first call, and reconnects whenever the connection
// breaks.
func Dial(o Options) (*Client, error) {
	path, err := socketPath(o.Endpoint)
	if err != nil {
		return nil, err
	}
	imagePath := path
	if o.ImageEndpoint != "" {
		if imagePath, err = socketPath(o.ImageEndpoint); err != nil {
			return nil, err
		}
	}
	c := &Client{endpoint: path, timeout: o.timeout()}
	conn, err := dialSocket(path, &c.dialCount, o)
	if err != nil {
		return nil, err
	}
	c.conns = []*grpc.ClientConn{conn}
	images := conn
	if imagePath != path {
		if images, err = dialSocket(imagePath, new(atomic.Uint64), o); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.conns = append(c.conns, images)
	}
	c.conn, c.runtime, c.images = conn, api.NewRuntimeServiceClient(conn), api.NewImageServiceClient(images)
	return c, nil
}

// New returns a client that uses conn. It is for runtimes in the same process. The caller
// must close conn.
func New(conn grpc.ClientConnInterface, o Options) *Client {
	return &Client{
		conn:     conn,
		runtime:  api.NewRuntimeServiceClient(conn),
		images:   api.NewImageServiceClient(conn),
		endpoint: o.Endpoint,
		timeout:  o.timeout(),
	}
}

// timeout returns o.Timeout or its default.
func (o Options) timeout() time.Duration {
	if o.Timeout <= 0 {
		return DefaultTimeout
	}
	return o.Timeout
}

// Endpoint returns the path of the runtime's socket.
func (c *Client) Endpoint() string { return c.endpoint }

// Close closes the connections, so that calls in progress fail. Later calls of Close do
// nothing.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		if err := conn.Close(); err != nil && status.Code(err) != codes.Canceled {
			errs = append(errs, fmt.Errorf("closing the connection to %s: %w", c.endpoint, err))
		}
	}
	return errors.Join(errs...)
}

// redial makes broken connections reconnect at once, without gRPC's back-off.
func (c *Client) redial() {
	for _, conn := range c.conns {
		conn.ResetConnectBackoff()
	}
}

// invoke makes one call and converts its error with convertError. The parameter limit is the
// maximum duration of the call.
func invoke[Q, R any](ctx context.Context, c *Client, limit time.Duration,
	call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := call(bounded, request)
	return response, c.convertError(ctx, err)
}
