package effect

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/reconcile/result"
)

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

// A volumeImage is the image of an image volume.
type volumeImage struct {
	volume, reference string
	result.Image
}

// pullVolumeImages pulls the images of the image volumes that container c of version p mounts. As
// in the kubelet, a volume that no container mounts is not required. pullVolumeImages calls onPull
// with the reference of an image when its pull begins. If alreadyPulled is true, podd has already
// pulled the images for this container. In this case pullVolumeImages pulls only missing images,
// even with the pull policy Always.
func (e *Runner) pullVolumeImages(ctx context.Context, s Input, p *manifest.Pod, c *v1.Container, alreadyPulled bool, onPull func(reference string)) ([]volumeImage, error) {
	var images []volumeImage
	for i := range p.Object.Spec.Volumes {
		v := &p.Object.Spec.Volumes[i]
		if v.Image == nil || !slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name }) {
			continue
		}
		policy := string(v.Image.PullPolicy)
		if alreadyPulled && v.Image.PullPolicy == v1.PullAlways {
			policy = string(v1.PullIfNotPresent)
		}
		secrets, missingSuffix := s.pullSecrets(p)
		image, err := e.Images.Ensure(ctx, newImageRequest(p, v.Image.Reference, policy, secrets), func() { onPull(v.Image.Reference) })
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w%s", v.Name, err, missingSuffix)
		}
		images = append(images, volumeImage{v.Name, v.Image.Reference, image})
	}
	return images, nil
}

func ignorePull(string) {}

// volumeImagePolicy returns the pull policy of the first image volume of p with the given image.
func volumeImagePolicy(p *manifest.Pod, reference string) string {
	for i := range p.Object.Spec.Volumes {
		if v := &p.Object.Spec.Volumes[i]; v.Image != nil && v.Image.Reference == reference {
			return string(v.Image.PullPolicy)
		}
	}
	return ""
}
