package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/manifest/durable"
)

// record is a Grant in the file.
type record struct {
	Key       types.NamespacedName `json:"key"`
	UID       types.UID            `json:"uid"`
	Hash      string               `json:"hash"`
	Container string               `json:"container"`
	Resource  string               `json:"resource"`
	IDs       []string             `json:"ids"`
	NUMA      map[string][]int64   `json:"numa,omitempty"`
	Prepares  bool                 `json:"prepares,omitempty"`
	Response  []byte               `json:"response"` // as the plugin sent it
}

// fileLimit bounds what is read back.
const fileLimit = 256 << 20

// Open returns the ledger kept in a file, which need not be there. An error comes
// with a ledger that knows nothing of the past but what Hold will tell.
func Open(file string) (*Ledger, error) {
	l := &Ledger{
		file: file, changed: make(chan struct{}, 1), resources: map[string]*supply{},
		pods: map[Holder]given{}, using: map[Holder]int{}, turns: map[Holder]chan struct{}{},
	}
	records, err := read(file)
	if err != nil {
		return l, fmt.Errorf("reading which devices pods have: %w", err)
	}
	for _, r := range records {
		g := Grant{Resource: r.Resource, IDs: r.IDs, NUMA: r.NUMA, Prepares: r.Prepares}
		response := &v1beta1.ContainerAllocateResponse{}
		if proto.Unmarshal(r.Response, response) == nil {
			g.Response = response
		}
		h := Holder{r.Key, r.UID, r.Hash}
		if l.pods[h] == nil {
			l.pods[h] = given{}
		}
		l.pods[h].put(r.Container, g)
	}
	return l, nil
}

func read(file string) ([]record, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	data, err := io.ReadAll(io.LimitReader(f, fileLimit))
	if err != nil {
		return nil, err
	}
	var records []record
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return records, nil
}

// save writes what changed since it was last called; it has reached the disk when
// save returns.
func (l *Ledger) save() error {
	l.saving.Lock()
	defer l.saving.Unlock()
	records, revision, err := l.records()
	if err != nil || revision == l.saved {
		return err
	}
	data, err := json.Marshal(records)
	if err == nil {
		err = durable.Write(l.file, data)
	}
	if err != nil {
		return fmt.Errorf("remembering which devices pods have: %w", err)
	}
	l.saved = revision
	return nil
}

// records are what the file is to hold. Those without a response are being
// allocated: should podd end now, nothing has them yet, or a container tells.
func (l *Ledger) records() ([]record, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := []record{}
	if l.revision == l.saved {
		return nil, l.revision, nil
	}
	for h, pod := range l.pods {
		for container, grants := range pod {
			for _, g := range grants {
				if g.Response == nil {
					continue
				}
				response, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Response)
				if err != nil {
					return nil, 0, fmt.Errorf("remembering the devices of %s: %w", h.Key, err)
				}
				records = append(records, record{h.Key, h.UID, h.Hash, container, g.Resource, g.IDs, g.NUMA, g.Prepares, response})
			}
		}
	}
	return records, l.revision, nil
}
