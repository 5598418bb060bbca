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
	"podd/runtime/beneath"
)

// Unpublish has the volumes of a pod taken from it, by what is on disk. None that
// is left keeps another; what is left is tried again with the next call. Whoever
// then uses them no more unstages them is Run.
func (d *Drivers) Unpublish(ctx context.Context, pod types.UID) error {
	if !manifest.SafeUID(pod) {
		return fmt.Errorf("pod uid %q cannot be a directory name", pod)
	}
	volumes, err := beneath.Names(filepath.Join(d.pods(), string(pod), "volumes", PodPlugin))
	if err != nil {
		return err
	}
	devices, err := beneath.Names(filepath.Join(d.pods(), string(pod), DevicesDir, PodPlugin))
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range volumes {
		failed = append(failed, d.unpublish(ctx, name, pod, d.mount(Use{}, name, pod)))
	}
	for _, name := range devices {
		failed = append(failed, d.unpublish(ctx, name, pod, d.device(name, pod)))
	}
	return errors.Join(failed...)
}

func (d *Drivers) unpublish(ctx context.Context, name string, pod types.UID, p place) error {
	d.mu.Lock()
	delete(d.wanted, p.target)
	delete(d.unmeasured, p.target)
	d.mu.Unlock()
	f, err := load(p.data)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnreadable) {
		is, looked := isMounted(p.target)
		switch {
		case looked != nil:
			return looked
		case is:
			return fmt.Errorf("unpublishing volume %q of pod %s: what is mounted at %s is a CSI driver's, and nothing says which; umount it", name, pod, p.target)
		case p.link != "":
			return remove(p.link)
		}
		d.look()
		return nil // goes with the pod's directory
	}
	if err != nil {
		return fmt.Errorf("unpublishing volume %q of pod %s: %w", name, pod, err)
	}
	u := Use{f[keyDriver], f[keyHandle]}
	end, err := d.take(ctx, u)
	if err == nil {
		defer end()
		err = d.unpublishOne(ctx, u, p)
	}
	if err != nil {
		return fmt.Errorf("unpublishing volume %q of pod %s: %w", name, pod, err)
	}
	d.look()
	return nil
}

// unpublishOne is called by who has the turn at the volume.
func (d *Drivers) unpublishOne(ctx context.Context, u Use, p place) error {
	f, err := load(p.data)
	if err != nil {
		return err
	}
	if f[p.state] != announced {
		if err := d.askUnpublish(ctx, u, p.target); err != nil {
			return err
		}
	}
	switch is, err := isMounted(p.target); {
	case err != nil:
		return err
	case is:
		return fmt.Errorf("driver %s says that it took it away, and it is mounted at %s; see to the driver, or umount it", u.Driver, p.target)
	}
	if err := remove(p.target); err != nil {
		return err
	}
	if p.link != "" {
		return d.forgetDevice(f, p)
	}
	if wasStaged(f) { // else nothing would say so
		if err := d.restore(u, filepath.Base(p.data)); err != nil {
			return err
		}
	}
	return forget(p.data)
}

func (d *Drivers) askUnpublish(ctx context.Context, u Use, target string) error {
	s, err := d.reach(u.Driver)
	if err != nil {
		return err
	}
	defer s.close()
	err = s.call(ctx, func(ctx context.Context) error {
		_, err := s.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: u.Handle, TargetPath: target})
		return err
	})
	return unlessGone(err, target)
}

// unlessGone takes a volume that the driver does not know, and that is not there,
// for one that was taken away.
func unlessGone(err error, at string) error {
	if e, is := errors.AsType[*Error](err); is && e.Code == codes.NotFound {
		if there, looked := isMounted(at); !there {
			return looked
		}
	}
	return err
}

// forgetDevice removes a pod's part of the facts of a device, and what a kubelet
// made beside.
func (d *Drivers) forgetDevice(f facts, p place) error {
	delete(f, p.state)
	delete(f, p.name)
	if err := f.save(p.data); err != nil {
		return err
	}
	mapped := filepath.Join(filepath.Dir(p.data), "dev", filepath.Base(p.target))
	if is, err := isMounted(mapped); err != nil {
		return err
	} else if is {
		if err := unix.Unmount(mapped, unix.UMOUNT_NOFOLLOW); err != nil {
			return &os.PathError{Op: "unmount", Path: mapped, Err: err}
		}
	}
	if err := remove(mapped); err != nil {
		return err
	}
	return remove(p.link)
}
