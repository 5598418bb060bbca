package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"podd/reconcile/gc"
	"podd/runtime"
)

// An Image is an image on the node with its names.
type Image struct {
	gc.Image
	// Names contains the tags of the image or, if it has none, its digests. It may be empty.
	Names []string
}

// maxSize limits the sizes that the runtime reports, so that the sum of all sizes does not overflow.
const maxSize = 1 << 50

// displayName returns a name of the image for messages.
func (i *Image) displayName() string {
	if len(i.Names) > 0 {
		return i.Names[0]
	}
	return i.ID
}

// isProtected reports whether the image must not be removed, not even at the request of a user.
func (i *Image) isProtected() bool { return gc.Prune([]gc.Image{i.Image}).Kept[i.ID] != "" }

// detect lists the images with their users, and updates the records of their use. It returns an
// error if a user of an image may be missing in the result.
func (m *Manager) detect(ctx context.Context) ([]Image, error) {
	runtimeImages, err := m.o.Runtime.ListImages(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	m.idsByName = make(map[string]string, 3*len(runtimeImages))
	f := m.newFinder()
	for i := range runtimeImages {
		f.index(&runtimeImages[i])
	}
	if err := m.findUsers(ctx, f); err != nil {
		return nil, err
	}
	isSandboxImage, err := m.sandboxImages(ctx, f)
	if err != nil {
		return nil, err
	}
	now := m.clock().Now
	images, records := make([]Image, 0, len(runtimeImages)), make(map[string]record, len(runtimeImages))
	for _, i := range runtimeImages {
		r, isRecorded := m.records[i.ID]
		if !isRecorded {
			r = record{firstDetected: now}
		}
		users := slices.Sorted(maps.Keys(f.users[i.ID]))
		if len(users) > 0 {
			r.lastUsed = now
		}
		names := i.Tags
		if len(names) == 0 {
			names = i.Digests
		}
		records[i.ID] = r
		images = append(images, Image{gc.Image{
			ID: i.ID, SizeBytes: int64(min(i.SizeBytes, maxSize)), Pinned: i.Pinned, IsSandboxImage: isSandboxImage[i.ID],
			FirstDetected: r.firstDetected, LastUsed: r.lastUsed, Users: users,
		}, names})
	}
	m.records = records
	return images, nil
}

// isStillRemovable checks an image of the last list again. It reports whether the image is still on the
// node, is not pinned and has no users. It returns an error if a user of the image may be missing.
func (m *Manager) isStillRemovable(ctx context.Context, i Image) (bool, error) {
	image, isPresent, err := m.o.Runtime.ImageStatus(ctx, i.ID)
	if err != nil {
		return false, fmt.Errorf("querying image %s: %w", i.displayName(), err)
	}
	if !isPresent || image.ID != i.ID {
		return false, nil
	}
	f := m.newFinder()
	f.index(&image) // the image may have new names since the last list
	if err := m.findUsers(ctx, f); err != nil {
		return false, err
	}
	i.Pinned, i.Users = image.Pinned, slices.Sorted(maps.Keys(f.users[i.ID]))
	if len(i.Users) > 0 {
		r := m.records[i.ID]
		r.lastUsed = m.clock().Now
		m.records[i.ID] = r
	}
	return !i.isProtected(), nil
}

// findUsers adds the users of all images to f: the pods of this podd, and all containers of the
// runtime with their image volumes.
func (m *Manager) findUsers(ctx context.Context, f *finder) error {
	for name, pods := range m.o.Pods.users() {
		if err := f.addUsers(ctx, name, pods...); err != nil {
			return err
		}
	}
	containers, err := m.o.Runtime.ListContainerImages(ctx)
	if err != nil {
		return fmt.Errorf("listing the containers that use images: %w", err)
	}
	mounted := make(map[string][]string, len(containers))
	for _, c := range containers {
		volumes, isKnown := m.mountedImages[c.ID]
		if !isKnown {
			if volumes, err = m.o.Runtime.MountedImages(ctx, c.ID); errors.Is(err, runtime.ErrNotFound) {
				continue // removed in the meantime
			} else if err != nil {
				return fmt.Errorf("querying the image volumes of container %s: %w", c.ID, err)
			}
		}
		mounted[c.ID] = volumes
		for _, image := range append([]string{c.Image}, volumes...) {
			if err := f.addUsers(ctx, image, containerUser(c)); err != nil {
				return err
			}
		}
	}
	m.mountedImages = mounted
	return nil
}

// containerUser returns the name under which a container is listed as the user of an image. This is
// the name of its pod, or the ID of the container if the pod is unknown.
func containerUser(c runtime.ContainerImage) string {
	if c.Pod.Name == "" {
		return "container " + c.ID
	}
	return c.Pod.String()
}

// sandboxImages returns the IDs of the images from which the runtime creates sandboxes.
func (m *Manager) sandboxImages(ctx context.Context, f *finder) (map[string]bool, error) {
	settings, err := m.o.Runtime.Settings(ctx)
	if err != nil {
		return nil, fmt.Errorf("querying the sandbox image: %w", err)
	}
	ids := map[string]bool{}
	for _, name := range []string{m.o.SandboxImage, settings.SandboxImage} {
		id, err := f.find(ctx, name)
		if err != nil {
			return nil, err
		}
		if id != "" {
			ids[id] = true
		}
	}
	return ids, nil
}

// A finder finds the IDs of images by the names that pods and containers use.
type finder struct {
	runtime    Runtime
	idsByName  map[string]string          // IDs by the names in the list of images
	queriedIDs map[string]string          // IDs by other names; "" if the image is not on the node
	users      map[string]map[string]bool // users by ID
}

// newFinder returns a finder that knows the names in the last list of images.
func (m *Manager) newFinder() *finder {
	return &finder{runtime: m.o.Runtime, idsByName: m.idsByName, queriedIDs: map[string]string{}, users: map[string]map[string]bool{}}
}

// index adds the names that the runtime reports for an image.
func (f *finder) index(i *runtime.Image) {
	for _, name := range slices.Concat(i.Tags, i.Digests, []string{i.ID, strings.TrimPrefix(i.ID, "sha256:")}) {
		f.idsByName[name] = i.ID
	}
}

// addUsers adds users of an image. It does nothing if the image is not on the node.
func (f *finder) addUsers(ctx context.Context, image string, users ...string) error {
	id, err := f.find(ctx, image)
	if err != nil || id == "" {
		return err
	}
	if f.users[id] == nil {
		f.users[id] = map[string]bool{}
	}
	for _, u := range users {
		f.users[id][u] = true
	}
	return nil
}

// find returns the ID of an image, or "" if the image is not on the node. It requests the ID of a
// name that is in no list, because only the runtime knows the registry of a short name such as
// "busybox".
func (f *finder) find(ctx context.Context, name string) (id string, err error) {
	if id, isListed := f.idsByName[name]; isListed || name == "" {
		return id, nil
	}
	if id, isKnown := f.queriedIDs[name]; isKnown {
		return id, nil
	}
	image, isPresent, err := f.runtime.ImageStatus(ctx, name)
	if err != nil {
		return "", fmt.Errorf("querying image %s: %w", name, err)
	}
	if isPresent {
		id = image.ID
	}
	f.queriedIDs[name] = id
	return id, nil
}
