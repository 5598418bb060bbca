package pull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/effect"
	"podd/reconcile/pull/verify"
	"podd/runtime"
)

// repairExpiry is the time after which another repair of the same image may begin.
const repairExpiry = time.Hour

// A repair is the progress of the repair of a damaged image.
type repair struct {
	stage repairStage
	since time.Time // when the stage was reached
}

type repairStage int

const (
	repairRemoving repairStage = iota + 1 // the image is being removed
	repairPending                         // a pull or an import must replace the image, which was removed or is not readable
	repairReplaced                        // the image was pulled or imported again
)

// Repair removes a damaged image, so that the next call of Ensure pulls it again. It keeps an image
// that was imported, because its registry may not have the image. Until EndRepair is called or an
// hour has passed, it removes an image only once. If the image is still damaged after a pull, the
// damage has another cause, such as a broken disk, or a layer that the runtime keeps because other
// containers use it.
func (p *Puller) Repair(ctx context.Context, image, ref, policy string, cause error) error {
	if policy == string(v1.PullNever) {
		return damagedNeverError(image, cause)
	}
	imageStatus, isPresent, err := p.o.Runtime.ImageStatus(ctx, ref)
	if errors.Is(err, runtime.ErrImageDamaged) { // Ensure replaces the image
		return fmt.Errorf("%w; image %s is damaged; podd pulls it again", cause, image)
	}
	if err != nil {
		return fmt.Errorf("%w; inspecting damaged image %s failed: %w", cause, image, err)
	}
	if isPresent && imageStatus.Pinned {
		return fmt.Errorf("%w; image %s is damaged and pinned by the configuration of the runtime, so podd does not remove it; import the image again", cause, image)
	}
	if isPresent && !hasDigestOf(imageStatus, image) {
		return fmt.Errorf("%w; image %s is damaged and was not pulled from its registry, so podd does not remove it; import the image again", cause, image)
	}
	switch p.beginRepair(ref) {
	case repairReplaced:
		return fmt.Errorf("%w; image %s is still damaged after podd has removed it and it was pulled or imported again; check the disk of this node", cause, image)
	case repairRemoving, repairPending: // the start of another container has begun the repair
	default:
		if err := p.o.Runtime.RemoveImage(ctx, ref); err != nil {
			p.cancelRepair(ref)
			return fmt.Errorf("%w; removing damaged image %s failed: %w", cause, image, err)
		}
		p.markRemoved(ref)
	}
	return fmt.Errorf("%w; image %s is damaged; podd has removed it and pulls it again", cause, image)
}

func damagedNeverError(image string, cause error) error {
	return fmt.Errorf("%w; image %s is damaged and imagePullPolicy is Never; import the image again, or change imagePullPolicy", cause, image)
}

// checkReplacement returns the error of an image that was inspected at the given time. statusErr is the
// error of the inspection, or nil. If the image is damaged so that the runtime cannot inspect it,
// checkReplacement returns nil if a pull may replace it. The image is not removed before the pull,
// because podd cannot check whether it was imported. Until the runtime can inspect the image or an hour
// has passed, it is replaced only once.
func (p *Puller) checkReplacement(r effect.ImageRequest, inspectedAt time.Time, statusErr error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if statusErr == nil {
		delete(p.replacements, r.Image)
		return nil
	}
	if !errors.Is(statusErr, runtime.ErrImageDamaged) {
		return statusErr
	}
	if r.Policy == string(v1.PullNever) {
		return damagedNeverError(r.Image, statusErr)
	}
	dropExpired(p.replacements)
	switch previous := p.replacements[r.Image]; {
	case previous.stage == repairReplaced && previous.since.Before(inspectedAt):
		return fmt.Errorf("%w; image %s is still damaged after podd has pulled it again; check the disk of this node", statusErr, r.Image)
	case previous.stage == 0:
		p.replacements[r.Image] = repair{repairPending, time.Now()}
	}
	return nil
}

// dropExpired removes the repairs that have expired.
func dropExpired(repairs map[string]repair) {
	maps.DeleteFunc(repairs, func(_ string, r repair) bool { return time.Since(r.since) >= repairExpiry })
}

// hasDigestOf reports whether an image has a digest in the repository of the given name. A pull adds
// the digest, but an import does not. The runtime adds the default registry to names without one.
func hasDigestOf(image runtime.Image, name string) bool {
	repository := verify.Repository(name)
	return slices.ContainsFunc(image.Digests, func(digest string) bool {
		digestRepository := verify.Repository(digest)
		return digestRepository == repository || digestRepository == "docker.io/"+repository || digestRepository == "docker.io/library/"+repository
	})
}

// beginRepair returns the stage of the repair of an image. If there is no repair, or if it has
// expired, beginRepair returns 0 and records that the image is being removed.
func (p *Puller) beginRepair(ref string) repairStage {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropExpired(p.repairs)
	stage := p.repairs[ref].stage
	if stage == 0 {
		p.repairs[ref] = repair{repairRemoving, time.Now()}
	}
	return stage
}

// markRemoved records that a damaged image was removed, unless a pull has already replaced it.
func (p *Puller) markRemoved(ref string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.repairs[ref].stage == repairRemoving {
		p.repairs[ref] = repair{repairPending, time.Now()}
	}
}

// markReplaced records that a user or another program has replaced a damaged image that podd has
// removed. The image was present at the given time.
func (p *Puller) markReplaced(ref string, presentAt time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.repairs[ref]; r.stage == repairPending && r.since.Before(presentAt) {
		p.repairs[ref] = repair{repairReplaced, time.Now()}
	}
}

// cancelRepair records that an image was not removed.
func (p *Puller) cancelRepair(ref string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.repairs, ref)
}

// EndRepair ends the repair of an image that was pulled or imported again, because a container was
// created from it. If the image is damaged again later, Repair removes it again.
func (p *Puller) EndRepair(ref string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.repairs[ref].stage == repairReplaced {
		delete(p.repairs, ref)
	}
}
