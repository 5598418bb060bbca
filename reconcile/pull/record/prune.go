package record

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/pull/verify"
	"podd/runtime"
)

// Images finds the images on the node.
type Images interface {
	ImageStatus(ctx context.Context, image string) (status runtime.Image, isPresent bool, err error)
	ListImages(ctx context.Context) ([]runtime.Image, error)
}

// Recover replaces the intent of each interrupted pull that may have changed an image by a record
// whose credentials are unknown. Every pod must then prove that it may use the image, even if the
// pod names the image by another name or by its ID. The error contains the intents that cannot be
// read; they remain.
func (s *Store) Recover(ctx context.Context, images Images) error {
	return s.resolveIntents(ctx, images, false)
}

// minIntentAge is the age at which an intent is removed if its pull has changed no image. Until then,
// the pull may be in progress in another process, or the runtime may complete it after the process was
// killed.
const minIntentAge = time.Hour

// Prune removes the records of images that are no longer on the node, records that cannot be read and
// belong to no image, and intents that are older than an hour. An intent whose pull may have changed an
// image is replaced, as in Recover. An intent that cannot be read remains.
func (s *Store) Prune(ctx context.Context, images Images) error {
	s.beginPass()
	defer s.endPass()
	return errors.Join(s.resolveIntents(ctx, images, true), s.pruneRecords(ctx, images), s.removeLeftovers())
}

// beginPass begins to collect the names of the records that Add modifies.
func (s *Store) beginPass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modifiedRecords = map[string]bool{}
}

// endPass ends the collection of names that beginPass has begun.
func (s *Store) endPass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modifiedRecords = nil
}

// resolveIntents replaces the intents of pulls that may have changed an image. If removeOld is true, it
// also removes the intents that are older than minIntentAge and for which no pull is in progress. As in
// the kubelet, an intent that cannot be read remains, because without it the image would count as
// preloaded. The next pull of the image replaces it.
func (s *Store) resolveIntents(ctx context.Context, images Images, removeOld bool) error {
	files, err := listFiles(s.pullingDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		name, err := readIntent(s.pullingDir, file)
		switch {
		case err == nil:
			err = s.resolveIntent(ctx, images, name, removeOld && isOlderThan(filepath.Join(s.pullingDir, file), minIntentAge))
		case errors.Is(err, fs.ErrNotExist), removeOld:
			err = nil // Recover has already reported an intent that cannot be read
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// resolveIntent replaces the intent of an image by a record if the pull may have changed the image.
// If the pull has not changed the image, resolveIntent removes the intent only if isOld is true. It
// does nothing while a pull of the image is in progress.
func (s *Store) resolveIntent(ctx context.Context, images Images, name string, isOld bool) error {
	imageStatus, isPresent, err := images.ImageStatus(ctx, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pullCounts[name] > 0 {
		return nil
	}
	isChanged := false
	if isPresent {
		if isChanged, err = s.isInterrupted(name, imageStatus.ID); err != nil {
			return err
		}
	}
	if isChanged {
		if err := s.addLocked(imageStatus.ID, verify.Repository(name), kubelet.ImagePullCredentials{}); err != nil {
			return err
		}
	}
	if !isChanged && !isOld {
		return nil
	}
	return s.removeIntent(name)
}

// pruneRecords removes the records of images that are no longer on the node.
func (s *Store) pruneRecords(ctx context.Context, images Images) error {
	files, err := listFiles(s.pulledDir)
	if err != nil || len(files) == 0 {
		return err
	}
	presentImages, err := images.ListImages(ctx)
	if err != nil {
		return err
	}
	isPresent := map[string]bool{}
	for i := range presentImages {
		isPresent[fileName(presentImages[i].ID)] = true
	}
	var errs []error
	for _, file := range files {
		if !isPresent[file] {
			errs = append(errs, s.pruneRecord(ctx, images, file))
		}
	}
	return errors.Join(errs...)
}

// pruneRecord removes a record that belongs to none of the listed images. It keeps the record if the
// runtime knows the image by the ID in the record, or if Add modified the record after the images were
// listed.
func (s *Store) pruneRecord(ctx context.Context, images Images, file string) error {
	if r, err := readRecord(filepath.Join(s.pulledDir, file)); err == nil && fileName(r.ImageRef) == file {
		if _, isPresent, err := images.ImageStatus(ctx, r.ImageRef); err != nil || isPresent {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.modifiedRecords[file] {
		return nil
	}
	return removeFiles(s.pulledDir, file)
}
