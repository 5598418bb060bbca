package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wellKnownSockets lists the sockets in the order in which Discover tries them.
var wellKnownSockets = []string{
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/cri-dockerd.sock",
	"/var/run/containerd/containerd.sock",
	"/var/run/crio/crio.sock",
	"/var/run/cri-dockerd.sock",
	"/run/k3s/containerd/containerd.sock",
}

// A NoRuntimeError is the error of Discover if no well-known runtime socket exists.
type NoRuntimeError struct {
	Paths []string // the sockets that were tried
}

// Error returns the paths and the remedy.
func (e *NoRuntimeError) Error() string {
	return fmt.Sprintf("finding a container runtime: no socket at %s; "+
		"install and start containerd or CRI-O; if a runtime uses another socket, set --container-runtime-endpoint",
		strings.Join(e.Paths, ", "))
}

// Discover returns the path of the first well-known runtime socket that exists on this
// host. If there is none, the error is a *NoRuntimeError.
func Discover() (string, error) { return discover(wellKnownSockets) }

func discover(paths []string) (string, error) {
	var permissionErr error
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode()&fs.ModeSocket != 0:
			return path, nil
		case errors.Is(err, fs.ErrPermission) && permissionErr == nil:
			permissionErr = err
		}
	}
	if permissionErr != nil {
		return "", fmt.Errorf("finding a container runtime: %w; run podd as root", permissionErr)
	}
	return "", &NoRuntimeError{paths}
}

// socketPath parses an endpoint of the form "unix:///path", "unix:/path" or "/path".
func socketPath(endpoint string) (string, error) {
	path := endpoint
	if rest, ok := strings.CutPrefix(endpoint, "unix:"); ok {
		path = rest
		if after, ok := strings.CutPrefix(rest, "//"); ok {
			path = after
		}
	}
	switch {
	case endpoint == "":
		return "", errors.New("dialing the container runtime: no endpoint given")
	case strings.Contains(path, "://"):
		return "", fmt.Errorf("dialing the container runtime: endpoint %q: only unix sockets are supported; write unix:///path/to.sock", endpoint)
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("dialing the container runtime: endpoint %q: the path must be absolute; write unix:///path/to.sock", endpoint)
	}
	return filepath.Clean(path), nil
}
