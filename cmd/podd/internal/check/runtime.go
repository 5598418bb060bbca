package check

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podd/runtime"
)

// criVersion is the version of the CRI that podd uses.
const criVersion = "v1"

func checkRuntime(f *Facts, r *Result) {
	rt := f.Runtime
	start := startRemedy(rt.Socket)
	switch {
	case rt.FindErr != nil:
		r.Detail = "not found"
		r.fail("install and start containerd or CRI-O; if a runtime uses another socket, set --container-runtime-endpoint", "%v", rt.FindErr)
	case errors.Is(rt.SocketErr, fs.ErrNotExist):
		r.Detail = "no socket"
		r.fail(start+"; if the runtime uses another socket, set --container-runtime-endpoint", "the socket %s does not exist", rt.Socket)
	case errors.Is(rt.SocketErr, unix.ECONNREFUSED):
		r.Detail = "not running"
		r.fail(start, "no container runtime listens on %s", rt.Socket)
	case rt.SocketErr != nil:
		r.Detail = "unreachable"
		r.fail("set --container-runtime-endpoint to the socket of the container runtime", "connecting to %s: %v", rt.Socket, rt.SocketErr)
	case errors.Is(rt.Err, runtime.ErrUnavailable):
		r.Detail = "no response"
		r.fail("see the log of the container runtime, and restart it", "the container runtime does not respond: %v", rt.Err)
	case rt.Err != nil && rt.Remedy != "":
		r.Detail = "error"
		r.fail(rt.Remedy, "%v", rt.Err)
	case rt.Err != nil:
		r.Detail = "error"
		r.fail("see the log of the container runtime, for example with \"journalctl -u containerd\"", "%v", rt.Err)
	default:
		checkRuntimeStatus(f, r)
	}
}

// startRemedy returns how to start the runtime with this socket. "make run" starts a private runtime in
// the directory .run of a checkout.
func startRemedy(socket string) string {
	if dir := filepath.Dir(socket); filepath.Base(dir) == ".run" {
		return "start the container runtime with \"make run\" in " + filepath.Dir(dir)
	}
	return "start the container runtime, for example with \"systemctl start containerd\""
}

// checkRuntimeStatus checks a runtime that responds.
func checkRuntimeStatus(f *Facts, r *Result) {
	n := f.Runtime.Node
	r.Detail = fmt.Sprintf("%s %s, CRI %s", n.Name, n.Version, n.APIVersion)
	if n.APIVersion != criVersion {
		r.fail("use containerd 1.6 or later, or CRI-O", "%s implements CRI %s, but podd requires CRI %s", n.Name, n.APIVersion, criVersion)
	}
	if !n.Ready {
		r.fail("see the log of the container runtime", "%s is not ready (condition RuntimeReady): %s", n.Name, n.Message)
	}
	if n.Handlers == nil {
		return
	}
	for _, class := range slices.Sorted(maps.Keys(f.Config.RuntimeClasses)) {
		handler := f.Config.RuntimeClasses[class]
		if _, ok := n.Handlers[handler]; !ok {
			r.warn("add the handler to the configuration of the runtime, or correct --runtime-class", "RuntimeClass %s: %s has no handler %q; its handlers are %s", class, n.Name, handler, listHandlers(n.Handlers))
		}
	}
}

// listHandlers returns the names of the handlers, without the default handler.
func listHandlers(handlers map[string]runtime.Handler) string {
	names := slices.Sorted(maps.Keys(handlers))
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "" }), ", ")
}

func (r Runtime) hasResponded() bool { return r.FindErr == nil && r.SocketErr == nil && r.Err == nil }

func checkSandboxImage(f *Facts, r *Result) {
	rt := f.Runtime
	switch {
	case rt.ImageErr != nil:
		r.Detail = "error"
		r.fail("see the log of the container runtime", "querying the sandbox image: %v", rt.ImageErr)
	case rt.HasSandboxImage:
		r.Detail = "present"
		if rt.SandboxImage != "" {
			r.Detail = rt.SandboxImage
		}
	case rt.SandboxImage == "":
		r.Detail = "absent"
		r.warn("connect the node to the registry, or pull or import the sandbox image in advance", "the runtime reports no sandbox image (pinned image) on the node, so the first pod waits until the runtime has pulled the image")
	default:
		r.Detail = "absent"
		r.warn("pull or import the image in advance, for example with \"crictl pull "+rt.SandboxImage+"\"", "the sandbox image %s is not on the node, so the first pod waits until the runtime has pulled the image", rt.SandboxImage)
	}
}
