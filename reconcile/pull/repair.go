package pull

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/pull/verify"
	"podd/runtime"
)

// repair is the progress of the repair of a damaged image.
type repair int

const (
	repairRemoved repair = iota + 1 // the image was removed and not pulled again yet
	repairPulled                    // the image was pulled again
)

// Repair removes a damaged image, so that the next call of Ensure pulls it again. It keeps an image
// that was imported, because its registry may not have the image. It removes an image only once,
// because an image that is still damaged after a pull has another cause, such as a broken disk or a
// layer that the runtime cannot remove because other containers use it.
func (p *Puller) Repair(ctx context.Context, image, ref, policy string, cause error) error {
	if policy == string(v1.PullNever) {
		return fmt.Errorf("%w; image %s is damaged and imagePullPolicy is Never; import the image again, or change imagePullPolicy", cause, image)
	}
	found, isPresent, err := p.o.Runtime.ImageStatus(ctx, ref)
	if err != nil {
		return fmt.Errorf("%w; inspecting damaged image %s failed: %w", cause, image, err)
	}
	if isPresent && found.Pinned {
		return fmt.Errorf("%w; image %s is damaged and pinned by the configuration of the runtime, so podd does not remove it; import the image again", cause, image)
	}
	if isPresent && !hasDigestOf(found, image) {
		return fmt.Errorf("%w; image %s is damaged and was not pulled from its registry, so podd does not remove it; import the image again", cause, image)
	}
	switch p.beginRepair(ref) {
	case repairPulled:
		return fmt.Errorf("%w; image %s is still damaged after podd has removed it and pulled it again; check the disk of this node", cause, image)
	case repairRemoved: // by the start of another container
	default:
		if err := p.o.Runtime.RemoveImage(ctx, ref); err != nil {
			p.cancelRepair(ref)
			return fmt.Errorf("%w; removing damaged image %s failed: %w", cause, image, err)
		}
	}
	return fmt.Errorf("%w; image %s is damaged; podd has removed it and pulls it again", cause, image)
}

// hasDigestOf reports whether an image has a digest in the repository of the given name. A pull adds
// the digest, but an import does not. The runtime adds the default registry to names without one.
func hasDigestOf(found runtime.Image, name string) bool {
	repository := verify.Repository(name)
	return slices.ContainsFunc(found.Digests, func(digest string) bool {
		of := verify.Repository(digest)
		return of == repository || of == "docker.io/"+repository || of == "docker.io/library/"+repository
	})
}

// beginRepair returns the progress of the repair of an image. If there is none, it returns 0 and
// records that the image is removed.
func (p *Puller) beginRepair(ref string) repair {
	p.mu.Lock()
	defer p.mu.Unlock()
	progress := p.repairs[ref]
	if progress == 0 {
		p.repairs[ref] = repairRemoved
	}
	return progress
}

// cancelRepair records that an image was not removed.
func (p *Puller) cancelRepair(ref string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.repairs, ref)
}
