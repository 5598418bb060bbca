package volume

import (
	"context"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
)

const ephemeralPlugin = "podd~ephemeral"

// ephemeralVolume implements volumeType for volumes of type ephemeral. The volume is a claim if
// the pod has the trait HasEphemeralClaims. Otherwise it is a directory that is removed with
// the pod.
type ephemeralVolume struct{}

func (ephemeralVolume) matches(v *v1.Volume) bool { return v.Ephemeral != nil }

func (ephemeralVolume) check(p *podDir, v *v1.Volume) (string, error) {
	if p.pod.Traits.HasEphemeralClaims {
		return claimVolume{}.check(p, v)
	}
	return "", nil
}

func (ephemeralVolume) prepare(ctx context.Context, p *podDir, v *v1.Volume) (string, error) {
	if p.pod.Traits.HasEphemeralClaims {
		return claimVolume{}.prepare(ctx, p, v)
	}
	path := filepath.Join(p.path, volumesDir, ephemeralPlugin, v.Name)
	dir, err := p.openPluginDir(ephemeralPlugin, dirMode)
	if err != nil {
		return path, err
	}
	defer dir.Close()
	mode, gid := emptyDirMode(p.pod.Object)
	return path, makeDirVolume(dir, v.Name, mode, gid)
}
