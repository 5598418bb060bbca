package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime/safepath"
)

// Unpublish unpublishes the volumes of a pod according to the data files on disk. It continues
// after an error. If Unpublish returns an error, the caller must call it again, to retry the
// volumes that failed. Run later unstages the volumes that no pod uses any more.
func (d *Drivers) Unpublish(ctx context.Context, pod types.UID) error {
	if !manifest.IsSafeUID(pod) {
		return fmt.Errorf("pod uid %q cannot be a directory name", pod)
	}
	volumes, err := safepath.Names(filepath.Join(d.podsDir(), string(pod), "volumes", PodPluginDir))
	if err != nil {
		return err
	}
	devices, err := safepath.Names(filepath.Join(d.podsDir(), string(pod), DevicesDir, PodPluginDir))
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range volumes {
		errs = append(errs, d.unpublish(ctx, name, pod, d.mountPaths(VolumeID{}, name, pod)))
	}
	for _, name := range devices {
		errs = append(errs, d.unpublish(ctx, name, pod, d.devicePaths(name, pod)))
	}
	return errors.Join(errs...)
}

func (d *Drivers) unpublish(ctx context.Context, name string, pod types.UID, p volumePaths) error {
	d.mu.Lock()
	delete(d.published, p.target)
	delete(d.withoutStats, p.target)
	d.mu.Unlock()
	f, err := readFacts(p.dataDir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable) {
		isMount, err := isMounted(p.target)
		switch {
		case err != nil:
			return err
		case isMount:
			return fmt.Errorf("unpublishing volume %q of pod %s: the CSI driver of the mount at %s is unknown; unmount it", name, pod, p.target)
		case p.link != "":
			return remove(p.link)
		}
		d.wakeRun()
		return nil // the files are removed with the pod's directory
	}
	if err != nil {
		return fmt.Errorf("unpublishing volume %q of pod %s: %w", name, pod, err)
	}
	id := VolumeID{f[keyDriver], f[keyHandle]}
	unlock, err := d.lockVolume(ctx, id, p.deviceDataDir())
	if err == nil {
		defer unlock()
		err = d.unpublishOne(ctx, id, p)
	}
	if err != nil {
		return fmt.Errorf("unpublishing volume %q of pod %s: %w", name, pod, err)
	}
	d.wakeRun()
	return nil
}

// unpublishOne unpublishes the volume with the paths p. The caller must hold the lock of the volume
// id.
func (d *Drivers) unpublishOne(ctx context.Context, id VolumeID, p volumePaths) error {
	f, err := readFacts(p.dataDir)
	if err != nil {
		return err
	}
	if f[p.stateKey] != stateAnnounced {
		if err := d.callUnpublish(ctx, id, p.target); err != nil {
			return err
		}
	}
	switch isMount, err := isMounted(p.target); {
	case err != nil:
		return err
	case isMount:
		return fmt.Errorf("driver %s reported that it unpublished the volume, but it is still mounted at %s; check the driver, or unmount it", id.Driver, p.target)
	}
	if err := remove(p.target); err != nil {
		return err
	}
	if p.link != "" {
		return d.removePodFacts(f, p)
	}
	if wasStaged(f) { // removeFacts removes a data file of the volume, so restore the other one, that of the staged volume, if it was lost
		if err := d.restoreStaged(id, publishedUse{filepath.Base(p.dataDir), f[keySELinux]}); err != nil {
			return err
		}
	}
	return removeFacts(p.dataDir)
}

func (d *Drivers) callUnpublish(ctx context.Context, id VolumeID, target string) error {
	s, err := d.openSession(id.Driver)
	if err != nil {
		return err
	}
	defer s.close()
	err = s.call(ctx, func(ctx context.Context) error {
		_, err := s.nodeClient.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id.Handle, TargetPath: target})
		return err
	})
	return ignoreNotFound(err, target)
}

// ignoreNotFound returns nil if err has the code NotFound and nothing is mounted at path, which
// means that the volume was deleted. Otherwise, ignoreNotFound returns err.
func ignoreNotFound(err error, path string) error {
	if e, ok := errors.AsType[*callError](err); ok && e.Code == codes.NotFound {
		if isMount, err := isMounted(path); !isMount {
			return err
		}
	}
	return err
}

// removePodFacts removes the pod's keys from the data file of a block device, the link in the
// pod's directory, and a mount that a kubelet created.
func (d *Drivers) removePodFacts(f facts, p volumePaths) error {
	delete(f, p.stateKey)
	delete(f, p.nameKey)
	if err := f.save(p.dataDir); err != nil {
		return err
	}
	kubeletMount := filepath.Join(filepath.Dir(p.dataDir), "dev", filepath.Base(p.target))
	if isMount, err := isMounted(kubeletMount); err != nil {
		return err
	} else if isMount {
		if err := unix.Unmount(kubeletMount, unix.UMOUNT_NOFOLLOW); err != nil {
			return &os.PathError{Op: "unmount", Path: kubeletMount, Err: err}
		}
	}
	if err := remove(kubeletMount); err != nil {
		return err
	}
	return remove(p.link)
}
