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
	ImageStatus(ctx context.Context, image string) (found runtime.Image, present bool, err error)
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
	s.modified = map[string]bool{}
}

// endPass ends what beginPass has begun.
func (s *Store) endPass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modified = nil
}

// resolveIntents replaces the intents of pulls that may have changed an image. If removeOld is true, it
// also removes the intents that are older than minIntentAge and for which no pull is in progress. As in
// the kubelet, an intent that cannot be read remains, because without it the image would count as
// preloaded. The next pull of the image replaces it.
func (s *Store) resolveIntents(ctx context.Context, images Images, removeOld bool) error {
	files, err := listFiles(s.pulling)
	if err != nil {
		return err
	}
	var failed []error
	for _, file := range files {
		name, err := readIntent(s.pulling, file)
		switch {
		case err == nil:
			err = s.resolveIntent(ctx, images, name, removeOld && isOlderThan(filepath.Join(s.pulling, file), minIntentAge))
		case errors.Is(err, fs.ErrNotExist), removeOld: // Recover has reported an intent that cannot be read
			err = nil
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// resolveIntent replaces the intent of an image by a record if the pull may have changed the image. If
// it has not, resolveIntent removes the intent only if it is old. It does nothing while a pull of the
// image is in progress.
func (s *Store) resolveIntent(ctx context.Context, images Images, name string, isOld bool) error {
	found, present, err := images.ImageStatus(ctx, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[name] > 0 {
		return nil
	}
	isChanged := false
	if present {
		if isChanged, err = s.isInterrupted(name, found.ID); err != nil {
			return err
		}
	}
	if isChanged {
		if err := s.addLocked(found.ID, verify.Repository(name), kubelet.ImagePullCredentials{}); err != nil {
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
	files, err := listFiles(s.pulled)
	if err != nil || len(files) == 0 {
		return err
	}
	present, err := images.ListImages(ctx)
	if err != nil {
		return err
	}
	isPresent := map[string]bool{}
	for i := range present {
		isPresent[fileName(present[i].ID)] = true
	}
	var failed []error
	for _, file := range files {
		if !isPresent[file] {
			failed = append(failed, s.pruneRecord(ctx, images, file))
		}
	}
	return errors.Join(failed...)
}

// pruneRecord removes a record that belongs to none of the listed images. It keeps the record if the
// runtime knows the image by the ID in the record, or if Add modified the record after the images were
// listed.
func (s *Store) pruneRecord(ctx context.Context, images Images, file string) error {
	if r, err := readRecord(filepath.Join(s.pulled, file)); err == nil && fileName(r.ImageRef) == file {
		if _, present, err := images.ImageStatus(ctx, r.ImageRef); err != nil || present {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.modified[file] {
		return nil
	}
	return removeFiles(s.pulled, file)
}
