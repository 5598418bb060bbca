package effect

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
)

// prepareVolumes creates the volumes of the desired version. It returns the lowest free attempt number
// of each container that has logs.
func (e *Runner) prepareVolumes(ctx context.Context, s Input) (attempts map[string]uint32, err error) {
	if err := render.CheckMounts(s.Desired, *s.Node); err != nil {
		return nil, err
	}
	if _, err := e.Disk.Prepare(ctx, s.Desired, s.volumes(s.Desired)); err != nil {
		return nil, err
	}
	return e.LogsAndCgroups.NextAttempts(s.Desired)
}

// checkVolumes returns an error if the volumes of version p cannot be prepared. It pulls the images
// of image volumes now, so that p does not wait for a pull after the earlier version has stopped.
func (e *Runner) checkVolumes(ctx context.Context, s Input, p *manifest.Pod) error {
	if err := render.CheckMounts(p, *s.Node); err != nil {
		return err
	}
	for _, list := range [][]v1.Container{p.Object.Spec.InitContainers, p.Object.Spec.Containers} {
		for i := range list {
			if _, err := e.pullVolumeImages(ctx, s, p, &list[i], false, ignorePull); err != nil {
				return err
			}
		}
	}
	if err := e.Disk.Check(ctx, p, s.volumes(p), s.earlierUIDs(p)); err != nil {
		return err
	}
	return checkProfiles(p, s.Node)
}
