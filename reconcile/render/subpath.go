package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A SubPath is a volumeMount with a subPath or subPathExpr.
type SubPath struct {
	MountIndex int // index in the container's volumeMounts
	Volume     string
	// Path is the path in the volume. It has no ".." and may contain secrets. ManifestText is the
	// text in the manifest, for messages.
	Path, ManifestText string
	// CreateMissing reports whether podd creates the path as a directory if it is missing.
	CreateMissing bool
}

// SubPaths returns the subPaths of a container with expanded variables. The caller opens
// them and passes the host paths in ContainerInput.SubPaths.
func SubPaths(in ContainerInput) ([]SubPath, error) {
	var subPaths []SubPath
	for i := range in.Container.VolumeMounts {
		m := &in.Container.VolumeMounts[i]
		text, err := subPath(&in, m)
		if err != nil {
			return nil, mountError(in.Container, m, err)
		}
		// Skip image volumes, because the runtime resolves their subPaths.
		if text == "" || findVolume(&in, m.Name).Image != nil {
			continue
		}
		subPaths = append(subPaths, SubPath{
			MountIndex: i, Volume: m.Name, Path: path.Clean(text), ManifestText: m.SubPath + m.SubPathExpr,
			CreateMissing: createsMissingDir(&findVolume(&in, m.Name).VolumeSource),
		})
	}
	return subPaths, nil
}

// subPath returns the path of a mount in its volume, or "" if the mount has no subPath. Errors do
// not contain values of variables.
func subPath(in *ContainerInput, m *v1.VolumeMount) (string, error) {
	if m.SubPathExpr == "" {
		return m.SubPath, checkLocalPath("subPath", m.SubPath)
	}
	env, err := newEnvironment(in)
	if err != nil {
		return "", err
	}
	var missingNames []string
	text := Expand(m.SubPathExpr, func(name string) (string, bool) {
		value, ok := env.lookup(name)
		if value == "" && !slices.Contains(missingNames, name) {
			missingNames = append(missingNames, name)
		}
		return value, ok
	})
	if len(missingNames) > 0 {
		return "", fmt.Errorf("expanding subPathExpr %q: the container has no variable %s; add it", m.SubPathExpr, strings.Join(missingNames, ", "))
	}
	return text, checkLocalPath("subPathExpr with expanded variables", text)
}

func checkLocalPath(subject, text string) error {
	switch {
	case path.IsAbs(text):
		return errors.New(subject + " must not begin with /")
	case slices.Contains(strings.Split(text, "/"), ".."):
		return errors.New(subject + ` must not contain the path element ".."`)
	case strings.Contains(text, "\x00"):
		return errors.New(subject + " must not contain a NUL byte")
	}
	return nil
}

// createsMissingDir reports whether podd creates a missing subPath as a directory in the volume. It
// returns false for volumes with files that podd writes, because the directory would take the place
// of a file. If an object of such a volume is optional, it returns true, because the container must
// start without the object.
func createsMissingDir(v *v1.VolumeSource) bool {
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
