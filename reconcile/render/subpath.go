package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// SubPath is a volumeMount that mounts a part of its volume.
type SubPath struct {
	Mount  int // in the container's volumeMounts
	Volume string
	// Path lies in the volume, has no "..", and may hold what is secret; Text is
	// what the manifest says, for messages.
	Path, Text string
	// Make says that a directory is made where there is nothing.
	Make bool
}

// SubPaths are those of a container, its variables put in. Whoever opens them
// gives what they are as ContainerInput.SubPaths.
func SubPaths(in ContainerInput) ([]SubPath, error) {
	var all []SubPath
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		text, err := subPath(&in, m)
		if err != nil {
			return nil, mountError(in.Container, m, err)
		}
		if text == "" || findVolume(&in, m.Name).Image != nil { // the runtime finds what is in an image
			continue
		}
		all = append(all, SubPath{
			Mount: i, Volume: m.Name, Path: path.Clean(text), Text: m.SubPath + m.SubPathExpr,
			Make: isMadeIn(&findVolume(&in, m.Name).VolumeSource),
		})
	}
	return all, nil
}

// subPath is a mount's path in the volume, "" for none. Its errors name no
// variable's value.
func subPath(in *ContainerInput, m *v1.VolumeMount) (string, error) {
	if m.SubPathExpr == "" {
		return m.SubPath, localPath("subPath", m.SubPath)
	}
	env, err := newEnvironment(in)
	if err != nil {
		return "", err
	}
	var missing []string
	text := Expand(m.SubPathExpr, func(name string) (string, bool) {
		value, ok := env.lookup(name)
		if value == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		return value, ok
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("subPathExpr: %q: missing value for %s; give the container such a variable", m.SubPathExpr, strings.Join(missing, ", "))
	}
	return text, localPath("subPathExpr, with its variables,", text)
}

func localPath(what, text string) error {
	switch {
	case path.IsAbs(text):
		return errors.New(what + " must not begin with /")
	case slices.Contains(strings.Split(text, "/"), ".."):
		return errors.New(what + ` must not have a ".." in it`)
	case strings.Contains(text, "\x00"):
		return errors.New(what + " must not have a NUL byte in it")
	}
	return nil
}

// isMadeIn says that a directory is made in the volume where a subPath names
// nothing. One in place of a file that podd writes would be a trap, but where
// the object may be missing the container is to start all the same.
func isMadeIn(v *v1.VolumeSource) bool {
	optional := func(b *bool) bool { return b != nil && *b }
	switch {
	case v.ConfigMap != nil:
		return optional(v.ConfigMap.Optional)
	case v.Secret != nil:
		return optional(v.Secret.Optional)
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(p v1.VolumeProjection) bool {
			return p.ConfigMap != nil && optional(p.ConfigMap.Optional) || p.Secret != nil && optional(p.Secret.Optional)
		})
	}
	return v.DownwardAPI == nil
}

func mountError(c *v1.Container, m *v1.VolumeMount, err error) error {
	return fmt.Errorf("mounting volume %q into container %q at %q: %w", m.Name, c.Name, m.MountPath, err)
}
