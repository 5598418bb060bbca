// Package record stores the credentials with which images were pulled. The files have the format and
// the paths of the kubelet, so that podd and a kubelet can replace each other:
//
//	<root>/image_manager/pulling/sha256-<hash of the image name>   an ImagePullIntent
//	<root>/image_manager/pulled/sha256-<hash of the image ID>      an ImagePulledRecord
//
// An intent is written before a pull. It is removed after the record of the image was written, or
// when the pull has failed. So podd knows after a power cut which images it may have pulled without a
// record. The file pulling/present-<hash> belongs to podd: it contains the ID of a preloaded image
// with the name in the intent. If the name still refers to this ID after an interrupted pull, the
// image is still a preloaded one.
//
// A record contains hashes of credentials, but no credentials. If a record is lost, its image counts
// as preloaded, as in the kubelet. The next pull of an image replaces a record or an intent that
// cannot be read. Until then, every pod must pull the image.
package record

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/pull/verify"
	"podd/runtime/atomicfile"
)

// A Store stores records below a root directory. It is safe for concurrent use.
//
// The daemon and "podd run --runonce" may use the same directory. If both write the record of one image
// at the same time, one of the additions can be lost, and the pod that needs it pulls the image again.
// If one of them starts during a pull of the other, it can remove the intent of this pull. Then the
// image counts as preloaded if the process that pulls is killed before it writes the record.
type Store struct {
	pullingDir, pulledDir string // directories of the intents and of the records

	mu              sync.Mutex      // guards all following fields, and is held while files are changed
	pullCounts      map[string]int  // number of pulls in progress by image name
	modifiedRecords map[string]bool // names of the records modified during a call of Prune; nil between calls
}

// New returns the Store below a root directory. It does not access the directory.
func New(root string) *Store {
	dir := filepath.Join(root, "image_manager")
	return &Store{
		pullingDir: filepath.Join(dir, "pulling"), pulledDir: filepath.Join(dir, "pulled"), pullCounts: map[string]int{},
	}
}

// fileName returns the name of the file for the name or ID of an image.
func fileName(image string) string { return kubeletPrefix + hashOf(image) }

// presentName returns the name of the file with the ID of the preloaded image that has this name.
func presentName(image string) string { return presentPrefix + hashOf(image) }

func hashOf(image string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(image))) }

// Lookup returns the records of an image. name is the name of the image in a pod, and id is the ID of
// the present image with this name. The error describes a file that cannot be read.
func (s *Store) Lookup(name, id string) (verify.Records, error) {
	// The intent is read before the record, because a pull removes the intent after it has written
	// the record.
	interrupted, intentErr := s.isInterrupted(name, id)
	r, err := readRecordOf(filepath.Join(s.pulledDir, fileName(id)), id)
	switch {
	case err == nil:
		credentials := r.CredentialMapping
		if interrupted || intentErr != nil {
			// The image may have this name because of the pull. Without an entry, the name would count
			// as preloaded.
			credentials, _ = verify.Merge(credentials, verify.Repository(name), kubelet.ImagePullCredentials{})
		}
		return verify.Records{State: verify.Recorded, Credentials: credentials}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return verify.Records{State: verify.Unreadable}, fmt.Errorf("reading the pull record of image %s: %w", name, err)
	case intentErr != nil:
		return verify.Records{State: verify.Unreadable}, fmt.Errorf("reading the pull intent of image %s: %w", name, intentErr)
	case interrupted:
		return verify.Records{State: verify.Interrupted}, nil
	}
	return verify.Records{State: verify.Preloaded}, nil
}

// isInterrupted reports whether a pull that has begun and has no recorded result may have pulled the
// image with this ID.
func (s *Store) isInterrupted(name, id string) (bool, error) {
	switch _, err := readIntent(s.pullingDir, fileName(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	preloadedID, err := atomicfile.Read(filepath.Join(s.pullingDir, presentName(name)), maxIntentSize)
	return err != nil || string(preloadedID) != id, nil
}

// BeginPull records that a pull of an image begins. preloadedID is the ID of the preloaded image
// that has this name, or "". The caller must call EndPull.
func (s *Store) BeginPull(name, preloadedID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pullCounts[name] == 0 {
		if err := s.writeIntent(name, preloadedID); err != nil {
			return fmt.Errorf("recording that the pull of image %s begins: %w", name, err)
		}
	}
	s.pullCounts[name]++
	return nil
}

// writeIntent writes the files of an intent. The intent is written last, because an intent without
// the file of the preloaded image applies to every image with this name.
func (s *Store) writeIntent(name, preloadedID string) error {
	path := filepath.Join(s.pullingDir, presentName(name))
	if preloadedID != "" {
		if err := atomicfile.Write(path, []byte(preloadedID)); err != nil {
			return err
		}
	} else if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := encodeIntent(name)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.pullingDir, fileName(name)), data)
}

// EndPull ends a pull that BeginPull has recorded. isKnown reports whether the result of the pull is
// known: the pull has failed, or Add has recorded it. If it is not known, the intent remains until
// Recover or Prune removes it.
func (s *Store) EndPull(name string, isKnown bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pullCounts[name]--; s.pullCounts[name] > 0 {
		return nil
	}
	delete(s.pullCounts, name)
	if !isKnown {
		return nil
	}
	return s.removeIntent(name)
}

// removeIntent removes the files of an intent, the intent first.
func (s *Store) removeIntent(name string) error {
	return removeFiles(s.pullingDir, fileName(name), presentName(name))
}

// Add records that an image was pulled from a repository with credentials. The zero value of
// credentials means that they are unknown, so that every pod must prove that it may use the image.
func (s *Store) Add(id, repository string, credentials kubelet.ImagePullCredentials) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addLocked(id, repository, credentials)
}

func (s *Store) addLocked(id, repository string, credentials kubelet.ImagePullCredentials) error {
	name := fileName(id)
	if s.modifiedRecords != nil {
		s.modifiedRecords[name] = true
	}
	path := filepath.Join(s.pulledDir, name)
	oldRecord, readErr := readRecordOf(path, id) // an unreadable record is replaced
	newEntries, hasChanged := verify.Merge(oldRecord.CredentialMapping, repository, credentials)
	if readErr == nil && !hasChanged {
		return nil
	}
	data, err := encodeRecord(id, newEntries)
	if err == nil {
		err = atomicfile.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("recording the credentials of image %s: %w", id, err)
	}
	return nil
}
