package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/reconcile/checksum"
	"podd/reconcile/device/allocation"
	"podd/runtime/atomicfile"
)

// A record describes a Grant in the file.
type record struct {
	Key              types.NamespacedName `json:"key"`
	UID              types.UID            `json:"uid"`
	Hash             string               `json:"hash"`
	Container        string               `json:"container"`
	Resource         string               `json:"resource"`
	IDs              []string             `json:"ids"`
	NUMA             map[string][]int64   `json:"numa,omitempty"`
	RequiresPreStart bool                 `json:"prepares,omitempty"`
	Response         []byte               `json:"response"` // protobuf encoding of Grant.Response
}

// fileVersion is the version of the files that podd writes. It must be incremented with each change
// of the format that an older podd would misread. An older podd does not read a file with a newer
// version. The first format has no version and is an array of records.
const fileVersion = 1

// fileContents contains the fields of the file, except the checksum.
type fileContents struct {
	Version   int      `json:"version"`
	Resources []string `json:"resources,omitempty"` // the resources of plugins, sorted; an older podd ignores them
	Records   []record `json:"records"`
}

const (
	// maxFileBytes is the maximum number of bytes that are read from the file.
	maxFileBytes = 256 << 20
	// UnreadableSuffix is appended to the name of an unreadable file that is kept.
	UnreadableSuffix = ".unreadable"
)

// Open returns a Manager with the allocations in a file, and with the resources that plugins served
// when the file was written. The file need not exist. If the file cannot be read, Open returns an
// error and a Manager without resources and allocations, which gets allocations from SetHolders. When
// the Manager writes the file for the first time, it renames the unreadable file with UnreadableSuffix,
// and replaces a file that was renamed earlier.
func Open(file string) (*Manager, error) {
	m := &Manager{
		file: file, openedAt: time.Now(), changed: make(chan struct{}, 1), resourcesChanged: make(chan struct{}, 1), resources: map[string]*pluginResource{},
		pods: map[allocation.PodVersion]grantMap{}, usesInProgress: map[allocation.PodVersion]int{}, allocationsInProgress: map[allocation.PodVersion]chan struct{}{},
	}
	contents, err := read(file)
	if m.isNew = errors.Is(err, fs.ErrNotExist); m.isNew {
		return m, nil
	}
	if err != nil {
		m.isUnreadable = true
		return m, fmt.Errorf("reading the device allocations: %w", err)
	}
	m.savedNames = contents.Resources
	for _, name := range contents.Resources {
		m.recordLocked(name)
	}
	for _, r := range contents.Records {
		g := Grant{Resource: r.Resource, IDs: r.IDs, NUMA: r.NUMA, RequiresPreStart: r.RequiresPreStart}
		response := &v1beta1.ContainerAllocateResponse{}
		if proto.Unmarshal(r.Response, response) == nil {
			g.Response = response
		}
		h := allocation.PodVersion{Key: r.Key, UID: r.UID, Hash: r.Hash}
		if m.pods[h] == nil {
			m.pods[h] = grantMap{}
		}
		m.pods[h].put(r.Container, g)
		m.recordLocked(r.Resource)
	}
	return m, nil
}

// recordLocked adds a resource that a plugin served before the Manager was opened. It does nothing
// if m.resources contains the resource.
func (m *Manager) recordLocked(name string) {
	if m.resources[name] == nil {
		m.resources[name] = &pluginResource{changedAt: time.Now(), isRecorded: true}
		m.signalResources()
	}
}

// read returns the contents of a file.
func read(file string) (fileContents, error) {
	data, err := atomicfile.Read(file, maxFileBytes)
	if err != nil {
		return fileContents{}, err
	}
	c, err := decodeContents(data)
	if err != nil {
		return fileContents{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// decodeContents returns the contents of a file in any format. The first format has neither a
// version nor a checksum.
func decodeContents(data []byte) (c fileContents, err error) {
	if bytes.HasPrefix(data, []byte("[")) {
		if err := json.Unmarshal(data, &c.Records); err != nil {
			return fileContents{}, fmt.Errorf("invalid JSON: %w", err)
		}
		return c, nil
	}
	if err := checksum.CheckVersion(data, fileVersion); err != nil {
		return fileContents{}, err
	}
	if err := checksum.Verify(data); err != nil {
		return fileContents{}, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return fileContents{}, fmt.Errorf("invalid JSON: %w", err)
	}
	return c, nil
}

// save writes the file if the allocations have changed since the last call. The allocations survive
// a power failure after save has returned.
func (m *Manager) save() error {
	return m.writeUnless(func() bool { return m.revision == m.savedRevision })
}

// saveNames writes the file if the names of the resources have changed since it was last written.
func (m *Manager) saveNames() error {
	return m.writeUnless(func() bool { return slices.Equal(m.namesLocked(), m.savedNames) })
}

// writeUnless writes the file unless isSaved returns true. It calls isSaved with m.saveMu and m.mu
// locked.
func (m *Manager) writeUnless(isSaved func() bool) error {
	m.saveMu.Lock()
	defer m.saveMu.Unlock()
	m.mu.Lock()
	saved := isSaved()
	m.mu.Unlock()
	if saved {
		return nil
	}
	c, revision, err := m.contents()
	if err != nil {
		return err
	}
	data, err := checksum.Marshal(c)
	if err == nil {
		err = m.renameUnreadable()
	}
	if err == nil {
		err = atomicfile.Write(m.file, data)
	}
	if err != nil {
		return fmt.Errorf("saving the device allocations: %w", err)
	}
	m.savedRevision, m.savedNames = revision, c.Resources
	return nil
}

// renameUnreadable renames a file that Open could not read. It appends UnreadableSuffix to the name.
func (m *Manager) renameUnreadable() error {
	if !m.isUnreadable {
		return nil
	}
	if err := os.Rename(m.file, m.file+UnreadableSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renaming the unreadable file: %w", err)
	}
	m.isUnreadable = false
	return nil
}

// namesLocked returns the names of the recorded resources, sorted.
func (m *Manager) namesLocked() []string {
	var names []string
	for name, s := range m.resources {
		if s.isRecorded {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// contents returns the contents to save, and the revision of the allocations. It omits grants
// without a response, because their devices are still being allocated. If podd exits now, the devices
// of these grants are either unused or recorded in the annotation of a container.
func (m *Manager) contents() (fileContents, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := fileContents{Version: fileVersion, Resources: m.namesLocked(), Records: []record{}}
	for h, pod := range m.pods {
		for container, grants := range pod {
			for _, g := range grants {
				if g.Response == nil {
					continue
				}
				response, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Response)
				if err != nil {
					return fileContents{}, 0, fmt.Errorf("saving the devices of %s: %w", h.Key, err)
				}
				c.Records = append(c.Records, record{h.Key, h.UID, h.Hash, container, g.Resource, g.IDs, g.NUMA, g.RequiresPreStart, response})
			}
		}
	}
	return c, m.revision, nil
}
