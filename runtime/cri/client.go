// Package cri is the client of a container runtime. It uses CRI v1 over gRPC on a unix
// socket, and the types of package runtime.
//
//	effects ──▶ Client ──▶ socket ◀── Observer ──▶ runtime.Snapshot ──▶ router
//	                          ▲
//	                          └────── NodeObserver ──▶ runtime.Node
//
// A Client has one method per call and is safe for concurrent use. While a runtime is
// absent, restarted or upgraded, calls return runtime.ErrUnavailable. The connection is
// restored automatically.
//
// The text of errors is for users: no gRPC codes, no chains of wrappers, no query strings.
// It does not repeat the subject of the call, which the caller adds ("starting container
// pg: " + err). Errors that callers distinguish are in package runtime; use errors.Is and
// errors.As.
//
// # Runtimes
//
// CRI leaves much open, and runtimes differ from it. podd relies only on what package
// runtimetest holds both containerd and CRI-O to. They differ in this:
//
//   - CRI-O accepts only the content type application/grpc, without the name of a codec.
//   - containerd creates missing log directories. CRI-O fails CreateContainer without
//     the container's, and creates the pod's readable for root only.
//   - If a sandbox or container of the name exists, containerd reports that the name
//     is reserved. CRI-O returns the existing object, whatever its config is.
//   - A call that was interrupted, as when podd is killed, keeps the name until it has
//     ended. containerd meanwhile reports that the name is reserved. CRI-O finishes
//     the call, lets a second one wait for its deadline, and returns the result to
//     the next, so podd gives calls to CRI-O short deadlines and repeats them.
//   - containerd's StopPodSandbox, RemovePodSandbox and RemoveContainer kill all
//     processes. CRI-O sends the stop signal, waits as long as the call may last, and does
//     not shorten a longer stop that is under way. StopContainer does, in both. With a
//     timeout of zero, CRI-O sends the stop signal right before it kills.
//   - containerd looks up a container's program when the container is started, and a
//     failure leaves an exited container with the reason StartError. CRI-O does so when
//     the container is created, and leaves nothing.
//   - If StartContainer fails, containerd leaves an exited container with the reason
//     StartError. CRI-O removes the container, or leaves it created if it cannot or is of
//     an older version.
//   - The status of an exited container has its exit in containerd. CRI-O returns the exit
//     code -1 and no time until conmon has written the container's exit file, which it
//     never does if it was killed. Such a container is runtime.ExitUnknown.
//   - A command that ExecSync cannot end in time is DeadlineExceeded in containerd,
//     and exit code -1 with "command timed out" in CRI-O. A command of Exec that
//     cannot be started fails the stream in containerd; in CRI-O it ends with code
//     255 and the reason on stderr.
//   - CRI-O requires ImageSpec.UserSpecifiedImage of a container and does not return
//     it: its list has the image ID, without "sha256:", where containerd has a name.
//     It requires that the container's PID namespace is that of the sandbox.
//   - CRI-O reports some objects that do not exist with the code Unknown (isAbsent), and
//     fails ImageStatus for an invalid image name, which containerd reports as absent.
//   - A name without a registry is one of docker.io in containerd, and one of the
//     registries of registries.conf in CRI-O. CRI-O reports a registry that it cannot
//     reach as RegistryUnavailable, and lets a pull join one for the same image that
//     is being canceled, and fail with it.
//   - If the caller of StopPodSandbox disconnects, as when podd is killed, CRI-O stops the
//     removal of the network and does not repeat it: the pod's address stays in use.
//     containerd repeats it at the next call.
//   - CRI-O keeps an image mounted that was a volume of a container.
//   - CRI-O changes the FinishedAt of a container while it removes it.
//   - Unless enable_pod_events is set, CRI-O ends every stream of events at once.
//     containerd 1.6 does not implement it. Neither sends an event for every change.
//   - Every sandbox of containerd has a process. CRI-O creates one only for sandboxes
//     in which containers share the PID namespace: other sandboxes are not lost while
//     the node runs.
//   - CRI-O notices a CNI configuration that is removed only with
//     cni_status_grace_period, names cgroups crio-<id>, runs conmon, the monitor of a
//     container, in crio-conmon-<id> of the pod's cgroup, writes logs with mode 0600, gives a privileged container every
//     capability that the kernel has, and creates no container with a memory limit
//     under 12 MiB. By default it gives a container neither AUDIT_WRITE, MKNOD, NET_RAW,
//     SETFCAP nor SYS_CHROOT.
//   - A container without a mount of /etc/hosts, as in a pod without an address, has the
//     host's file in containerd, and that of its image in CRI-O.
//
// Both create the directory of a bind mount if it does not exist. Both refuse HostToContainer
// and Bidirectional mounts unless the mount of the directory is shared, or for
// HostToContainer a slave.
package cri

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 2 * time.Minute

// Options configure a Client.
type Options struct {
	// Endpoint is the runtime's socket, "unix:///path" or a path. Required.
	Endpoint string
	// ImageEndpoint is the socket of the image service; "" means Endpoint.
	ImageEndpoint string
	// Timeout limits most calls; zero means DefaultTimeout. RunPodSandbox has twice that
	// time, StopContainer and ExecSync have their own time in addition, and PullImage has
	// no limit.
	Timeout time.Duration
	// Called is called after every call with the CRI name of its method, like
	// "RunPodSandbox"; nil disables it. It may be called concurrently and must not block.
	Called func(method string, took time.Duration, err error)
}

// A Client calls one runtime. It is safe for concurrent use.
type Client struct {
	conn      grpc.ClientConnInterface // to the runtime service
	runtime   api.RuntimeServiceClient
	images    api.ImageServiceClient
	endpoint  string
	timeout   time.Duration
	conns     []*grpc.ClientConn // distinct connections, empty for New
	dials     atomic.Uint64      // number of connections made to the runtime
	responses responseCache
	// holdsCalls is set once the runtime is known to be CRI-O: see create.
	holdsCalls atomic.Bool
}

// Dial returns a client of the runtime in o. It fails only for invalid options, not if the
// runtime does not respond: the connection is made at the first call, and again whenever it
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
	conn, err := dialSocket(path, &c.dials, o.Called)
	if err != nil {
		return nil, err
	}
	c.conns = []*grpc.ClientConn{conn}
	images := conn
	if imagePath != path {
		if images, err = dialSocket(imagePath, new(atomic.Uint64), o.Called); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.conns = append(c.conns, images)
	}
	c.conn, c.runtime, c.images = conn, api.NewRuntimeServiceClient(conn), api.NewImageServiceClient(images)
	return c, nil
}

// New returns a client that uses conn, which it does not close. It is for runtimes in the
// same process.
func New(conn grpc.ClientConnInterface, o Options) *Client {
	return &Client{
		conn:     conn,
		runtime:  api.NewRuntimeServiceClient(conn),
		images:   api.NewImageServiceClient(conn),
		endpoint: o.Endpoint,
		timeout:  o.timeout(),
	}
}

func (o Options) timeout() time.Duration {
	if o.Timeout <= 0 {
		return DefaultTimeout
	}
	return o.Timeout
}

// Endpoint returns the path of the runtime's socket.
func (c *Client) Endpoint() string { return c.endpoint }

// Close closes the connections, so that calls in progress fail. It may be called again.
func (c *Client) Close() error {
	var errs []error
	for _, conn := range c.conns {
		if err := conn.Close(); err != nil && status.Code(err) != codes.Canceled {
			errs = append(errs, fmt.Errorf("closing the connection to %s: %w", c.endpoint, err))
		}
	}
	return errors.Join(errs...)
}

// redial skips the back-off of broken connections.
func (c *Client) redial() {
	for _, conn := range c.conns {
		conn.ResetConnectBackoff()
	}
}

// invoke makes one call with its own deadline and cleans its error.
func invoke[Q, R any](ctx context.Context, c *Client, limit time.Duration,
	call func(context.Context, Q, ...grpc.CallOption) (R, error), request Q,
) (R, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := call(bounded, request)
	return response, c.clean(ctx, err)
}
