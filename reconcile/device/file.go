package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

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
	Version int      `json:"version"`
	Records []record `json:"records"`
}

const (
	// maxFileBytes is the maximum number of bytes that are read from the file.
	maxFileBytes = 256 << 20
	// UnreadableSuffix is appended to the name of an unreadable file that is kept.
	UnreadableSuffix = ".unreadable"
)

// Open returns a Manager with the allocations in a file. The file need not exist. If the file cannot
// be read, Open returns an error and a Manager without allocations, which gets allocations from
// SetHolders. When the Manager saves its allocations for the first time, it renames the unreadable
// file with UnreadableSuffix, and replaces a file that was renamed earlier.
func Open(file string) (*Manager, error) {
	m := &Manager{
		file: file, changed: make(chan struct{}, 1), resources: map[string]*pluginResource{},
		pods: map[allocation.PodVersion]grantMap{}, usesInProgress: map[allocation.PodVersion]int{}, allocating: map[allocation.PodVersion]chan struct{}{},
	}
	records, err := read(file)
	if err != nil {
		m.unreadable = true
		return m, fmt.Errorf("reading the device allocations: %w", err)
	}
	for _, r := range records {
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
	}
	return m, nil
}

func read(file string) ([]record, error) {
	data, err := atomicfile.Read(file, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records, err := decodeRecords(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return records, nil
}

// decodeRecords returns the records of a file in any format. The first format has neither a
// version nor a checksum.
func decodeRecords(data []byte) ([]record, error) {
	var c fileContents
	if bytes.HasPrefix(data, []byte("[")) {
		if err := json.Unmarshal(data, &c.Records); err != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
		return c.Records, nil
	}
	if err := checksum.CheckVersion(data, fileVersion); err != nil {
		return nil, err
	}
	if err := checksum.Verify(data); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	return c.Records, nil
}

// save writes the file if the allocations have changed since the last call. The allocations survive
// a power failure after save has returned.
func (m *Manager) save() error {
	m.saveMu.Lock()
	defer m.saveMu.Unlock()
	records, revision, err := m.records()
	if err != nil || revision == m.savedRevision {
		return err
	}
	data, err := checksum.Marshal(fileContents{fileVersion, records})
	if err == nil {
		err = m.renameUnreadable()
	}
	if err == nil {
		err = atomicfile.Write(m.file, data)
	}
	if err != nil {
		return fmt.Errorf("saving the device allocations: %w", err)
	}
	m.savedRevision = revision
	return nil
}

// renameUnreadable renames a file that Open could not read. It appends UnreadableSuffix to the name.
func (m *Manager) renameUnreadable() error {
	if !m.unreadable {
		return nil
	}
	if err := os.Rename(m.file, m.file+UnreadableSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renaming the unreadable file: %w", err)
	}
	m.unreadable = false
	return nil
}

// records returns the records to save, and the revision of the allocations. It returns nil if the
// file already has this revision. It omits grants without a response, because their devices are
// still being allocated. If podd exits now, the devices of these grants are either unused or
// recorded in the annotation of a container.
func (m *Manager) records() ([]record, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := []record{}
	if m.revision == m.savedRevision {
		return nil, m.revision, nil
	}
	for h, pod := range m.pods {
		for container, grants := range pod {
			for _, g := range grants {
				if g.Response == nil {
					continue
				}
				response, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Response)
				if err != nil {
					return nil, 0, fmt.Errorf("saving the devices of %s: %w", h.Key, err)
				}
				records = append(records, record{h.Key, h.UID, h.Hash, container, g.Resource, g.IDs, g.NUMA, g.RequiresPreStart, response})
			}
		}
	}
	return records, m.revision, nil
}
