package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/wiring"
	"podd/runtime"
	"podd/runtime/cri"
)

// runtimeTimeout limits all requests to the runtime together.
const runtimeTimeout = 10 * time.Second

// queryRuntime returns the state of the runtime that the daemon would use. It also returns the path
// of the image file system, or "" if the path is unknown.
func queryRuntime(ctx context.Context, cfg *config.Config) (r check.Runtime, imageFS string) {
	if cfg.RuntimeEndpoint == "" {
		if _, r.FindErr = cri.Discover(); r.FindErr != nil {
			if noRuntimeErr, ok := errors.AsType[*cri.NoRuntimeError](r.FindErr); ok {
				r.FindErr = fmt.Errorf("there is no socket of a container runtime: %s", strings.Join(noRuntimeErr.Paths, ", "))
			}
			return r, ""
		}
	}
	client, err := wiring.Dial(&cfg.Runtime, slog.New(slog.DiscardHandler), wiring.Calls{})
	if err != nil {
		r.FindErr = err
		return r, ""
	}
	defer client.Close()
	r.Socket = client.Endpoint()
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	if r.SocketErr = tryConnect(ctx, r.Socket); r.SocketErr != nil {
		return r, ""
	}
	if r.Node, r.Err = client.Node(ctx); r.Err == nil {
		r.Settings, r.Err = client.Settings(ctx)
	}
	if r.Err != nil {
		if noCRIErr, ok := errors.AsType[*cri.NoCRIError](r.Err); ok {
			r.Err, r.Remedy = errors.New(noCRIErr.Cause), noCRIErr.Remedy
		}
		if ctx.Err() != nil {
			r.Err = fmt.Errorf("%s: %w: no response within %s", r.Socket, runtime.ErrUnavailable, runtimeTimeout)
		}
		return r, ""
	}
	r.SandboxImage = cmp.Or(r.Settings.SandboxImage, cfg.SandboxImage)
	r.HasSandboxImage, r.ImageErr = hasSandboxImage(ctx, client, r.SandboxImage)
	if filesystems, _, err := client.ImageFsInfo(ctx); err == nil && len(filesystems) > 0 {
		imageFS = filesystems[0].Mountpoint
	}
	return r, imageFS
}

// errNotSocket is the error of tryConnect if the path is, for example, that of a regular file. For such
// a path, the kernel reports ECONNREFUSED, as for the socket of a stopped runtime.
var errNotSocket = errors.New("this is not a socket")

// tryConnect connects to a Unix socket and closes the connection. It does not use gRPC, because the
// errors of gRPC do not wrap the cause.
func tryConnect(ctx context.Context, socket string) error {
	if info, err := os.Stat(socket); err == nil && info.Mode()&os.ModeSocket == 0 {
		return errNotSocket
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

// hasSandboxImage reports whether the sandbox image, called name, is on the node. If name is "", it
// reports whether any pinned image is on the node, because runtimes pin only sandbox images.
func hasSandboxImage(ctx context.Context, client *cri.Client, name string) (bool, error) {
	if name != "" {
		_, isPresent, err := client.ImageStatus(ctx, name)
		return isPresent, err
	}
	images, err := client.ListImages(ctx)
	return slices.ContainsFunc(images, func(i runtime.Image) bool { return i.Pinned }), err
}
