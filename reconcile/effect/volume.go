package effect

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
)

// checkVolumes returns an error if the volumes of version p cannot be prepared. It pulls the images
// of image volumes now, so that p does not wait for a pull after the earlier version has stopped.
func (e *Runner) checkVolumes(ctx context.Context, s Input, p *manifest.Pod) error {
	if err := render.CheckMounts(p, *s.Node); err != nil {
		return err
	}
	if _, err := e.pullVolumeImages(ctx, s, p, false); err != nil {
		return err
	}
	if err := e.Disk.Check(ctx, p, s.volumes(p), s.earlierUIDs(p)); err != nil {
		return err
	}
	return checkProfiles(p, s.Node)
}

// pullVolumeImages pulls the images of the image volumes of version p, and returns the runtime's
// references to the images by the name of the volume. If alreadyPulled is set, podd has pulled the
// images for this pod before. In this case it pulls only missing images, even with the pull policy
// Always.
func (e *Runner) pullVolumeImages(ctx context.Context, s Input, p *manifest.Pod, alreadyPulled bool) (map[string]string, error) {
	var refs map[string]string
	for i := range p.Object.Spec.Volumes {
		v := &p.Object.Spec.Volumes[i]
		if v.Image == nil {
			continue
		}
		policy := string(v.Image.PullPolicy)
		if alreadyPulled && v.Image.PullPolicy == v1.PullAlways {
			policy = string(v1.PullIfNotPresent)
		}
		secrets, missing := s.pullSecrets(p)
		image, err := e.Images.Ensure(ctx, newImageRequest(p, v.Image.Reference, policy, secrets), func() {})
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w%s", v.Name, err, missing)
		}
		if refs == nil {
			refs = map[string]string{}
		}
		refs[v.Name] = image.Ref
	}
	return refs, nil
}
