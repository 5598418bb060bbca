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

// responseLimit is more than any container can have in its environment; it bounds
// the file that they are kept in.
const responseLimit = 1 << 20

// reserved are annotations that say how a container is to be treated.
var reserved = []string{"podd/", "io.kubernetes.container.", "io.kubernetes.pod."}

var cdiName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9_-]*=[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// check refuses an answer that no container could be made with, or that reaches
// beyond what a plugin has a say in. Values are in no error.
func check(r *v1beta1.ContainerAllocateResponse) error {
	if r == nil {
		return errors.New("its plugin gave no answer for the container")
	}
	if n := proto.Size(r); n > responseLimit {
		return fmt.Errorf("its plugin's answer has %d bytes, more than %d", n, responseLimit)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Envs)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(r.Envs[name], "\x00") {
			return fmt.Errorf("its plugin sets a variable %q, which no process can be given", short(name))
		}
	}
	for _, m := range r.Mounts {
		if err := checkPaths(m.GetHostPath(), m.GetContainerPath()); err != nil {
			return fmt.Errorf("its plugin mounts %q at %q: %w", short(m.GetHostPath()), short(m.GetContainerPath()), err)
		}
	}
	for _, d := range r.Devices {
		if err := checkPaths(d.GetHostPath(), d.GetContainerPath()); err != nil {
			return fmt.Errorf("its plugin gives the device %q as %q: %w", short(d.GetHostPath()), short(d.GetContainerPath()), err)
		}
		if strings.Trim(d.GetPermissions(), "rwm") != "" {
			return fmt.Errorf("its plugin gives the device %q with permissions %q, which are not of r, w and m", short(d.GetHostPath()), short(d.GetPermissions()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return fmt.Errorf("its plugin sets the annotation %q, which is not for plugins", short(name))
		}
	}
	for _, d := range r.CdiDevices {
		if !cdiName.MatchString(d.GetName()) {
			return fmt.Errorf("its plugin names the CDI device %q, which is not vendor/class=name", short(d.GetName()))
		}
	}
	return nil
}

func checkPaths(all ...string) error {
	for _, p := range all {
		if !path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") || strings.Contains(p, "\x00") {
			return errors.New("both paths must be absolute, without .. in them")
		}
	}
	return nil
}

// short is as much of a plugin's text as a message needs.
func short(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
