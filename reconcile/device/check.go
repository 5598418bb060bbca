package device

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// maxResponseBytes is the maximum size in bytes of a plugin's response to Allocate. It limits the
// size of the file of allocations. Useful responses are much smaller.
const maxResponseBytes = 1 << 20

// reservedPrefixes are prefixes of annotations that control how podd handles a container.
var reservedPrefixes = []string{"podd/", "io.kubernetes.container.", "io.kubernetes.pod."}

var cdiNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9_-]*=[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// checkResponse returns an error if no container could be created with a response, or if the
// response sets something that plugins must not set. The error does not contain the values of
// environment variables and annotations.
func checkResponse(r *v1beta1.ContainerAllocateResponse) error {
	if r == nil {
		return errors.New("the device plugin returned no response for the container")
	}
	if n := proto.Size(r); n > maxResponseBytes {
		return fmt.Errorf("the response of the device plugin is too large: %d bytes (limit %d)", n, maxResponseBytes)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Envs)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(r.Envs[name], "\x00") {
			return fmt.Errorf("the device plugin sets an invalid environment variable %q", truncate(name))
		}
	}
	for _, m := range r.Mounts {
		if err := checkPaths(m.GetHostPath(), m.GetContainerPath()); err != nil {
			return fmt.Errorf("the device plugin mounts %q at %q: %w", truncate(m.GetHostPath()), truncate(m.GetContainerPath()), err)
		}
	}
	for _, d := range r.Devices {
		if err := checkPaths(d.GetHostPath(), d.GetContainerPath()); err != nil {
			return fmt.Errorf("the device plugin adds the device %q as %q: %w", truncate(d.GetHostPath()), truncate(d.GetContainerPath()), err)
		}
		if strings.Trim(d.GetPermissions(), "rwm") != "" {
			return fmt.Errorf("the device plugin adds the device %q with permissions %q; only r, w and m are allowed", truncate(d.GetHostPath()), truncate(d.GetPermissions()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return fmt.Errorf("the device plugin sets the annotation %q, which is reserved", truncate(name))
		}
	}
	for _, d := range r.CdiDevices {
		if !cdiNamePattern.MatchString(d.GetName()) {
			return fmt.Errorf("the device plugin returned the CDI device %q, which does not have the form vendor/class=name", truncate(d.GetName()))
		}
	}
	return nil
}

func checkPaths(paths ...string) error {
	for _, p := range paths {
		if !path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") || strings.Contains(p, "\x00") {
			return errors.New("both paths must be absolute and must not contain \"..\"")
		}
	}
	return nil
}

// truncate returns at most 256 bytes of a plugin's text for a message.
func truncate(s string) string {
	const limit = 256
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
