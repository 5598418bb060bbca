package reconcile

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
)

// checkVolumes tells what would keep a version from having its volumes. Images
// among them are fetched, so that none is waited for once the earlier version
// has ended.
func (e *Effects) checkVolumes(ctx context.Context, s scene, p *manifest.Pod) error {
	if err := render.CheckMounts(p, *s.node); err != nil {
		return err
	}
	if _, err := e.volumeImages(ctx, s, p, false); err != nil {
		return err
	}
	if err := e.Disk.Check(ctx, p, s.volumes(p), s.before(p)); err != nil {
		return err
	}
	return checkProfiles(p, s.node)
}

// volumeImages gets the images that are volumes of a version, and gives what the
// runtime knows them by. What was fetched for the pod is not asked for again.
func (e *Effects) volumeImages(ctx context.Context, s scene, p *manifest.Pod, fetched bool) (map[string]string, error) {
	var refs map[string]string
	for i := range p.Spec.Spec.Volumes {
		v := &p.Spec.Spec.Volumes[i]
		if v.Image == nil {
			continue
		}
		policy := string(v.Image.PullPolicy)
		if fetched && v.Image.PullPolicy == v1.PullAlways {
			policy = string(v1.PullIfNotPresent)
		}
		secrets, without := s.pullSecrets(p)
		image, err := e.Images.Ensure(ctx, v.Image.Reference, policy, secrets, func() {})
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w%s", v.Name, err, without)
		}
		refs = with(refs, v.Name, image.Ref)
	}
	return refs, nil
}
