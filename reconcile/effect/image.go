package effect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/plan"
	"podd/reconcile/result"
	"podd/runtime"
)

// ensureImage pulls the image of a container and the images of the image volumes that the container
// mounts, if necessary. It uses the pull secrets of version p. As in the kubelet, a container whose
// image volume cannot be pulled waits with the reasons of a failed image pull.
func (e *Runner) ensureImage(ctx context.Context, s Input, p *manifest.Pod, a plan.EnsureImage) (result.EnsuredImage, error) {
	hasContacted := false
	onPull := func(image string) {
		hasContacted = true
		a := a
		a.Image = image
		s.OnPull(ctx, a, event.ForPull(event.NewSubject(p, time.Now()), a))
	}
	secrets, missingSuffix := s.pullSecrets(p)
	image, err := e.Images.Ensure(ctx, newImageRequest(p, a.Image, a.Policy, secrets), func() { onPull(a.Image) })
	if err != nil {
		if missingSuffix != "" {
			err = fmt.Errorf("%w%s", err, missingSuffix)
		}
		return result.EnsuredImage{ContactedRegistry: hasContacted}, err
	}
	r := result.EnsuredImage{Image: image, ContactedRegistry: hasContacted}
	hasContacted = false
	c, _, _ := plan.FindContainer(p.Object, a.Container)
	volumes, err := e.pullVolumeImages(ctx, s, p, c, false, onPull)
	if err != nil {
		return result.EnsuredImage{ContactedRegistry: hasContacted}, err
	}
	for _, v := range volumes {
		r.VolumeImages = append(r.VolumeImages, event.VolumeImage{Reference: v.reference, Pull: v.Pull})
	}
	return r, nil
}

// newImageRequest returns the request for an image of version p.
func newImageRequest(p *manifest.Pod, image, policy string, secrets []*v1.Secret) ImageRequest {
	r := ImageRequest{Image: image, Policy: policy, Secrets: secrets, Source: p.Origin.Source, Pod: p.ManifestKey(), PodUID: p.UID}
	if p.Traits.HasRefsFromServer {
		r.ServiceAccount = p.Object.Spec.ServiceAccountName
	}
	return r
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

// queryImageUser returns the user that is set in the image of action a. It returns an error if the
// runtime does not have the image.
func (e *Runner) queryImageUser(ctx context.Context, a plan.StartContainer) (*runtime.ImageUser, error) {
	image, exists, err := e.Runtime.ImageStatus(ctx, a.ImageRef)
	if err != nil {
		return nil, fmt.Errorf("querying the image of container %s: %w", a.Container, err)
	}
	if !exists {
		return nil, fmt.Errorf("creating container %s: its image was removed; podd pulls it again", a.Container)
	}
	return &image.User, nil
}

// repairVolumeImage removes the damaged image of an image volume of the container with the given config.
// cause does not name the image, so repairVolumeImage does nothing if the container mounts more than one
// image.
func (e *Runner) repairVolumeImage(ctx context.Context, s Input, config *cri.ContainerConfig, cause error) error {
	var image *cri.ImageSpec
	for _, m := range config.Mounts {
		if m.Image != nil && image != nil && m.Image.Image != image.Image {
			return fmt.Errorf("%w; the image of a volume is damaged, but the runtime does not report which one; remove the images of the container's volumes", cause)
		}
		image = cmp.Or(m.Image, image)
	}
	if image == nil {
		return cause
	}
	return e.Images.Repair(ctx, image.UserSpecifiedImage, image.Image, volumeImagePolicy(s.Desired, image.UserSpecifiedImage), cause)
}
