package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/metadata"
	"podd/reconcile/plan"
	"podd/runtime/atomicfile"
)

// applyCloudMetadata sets what cfg leaves open from the metadata service of its cloud, if
// one is configured. It waits for a response, because the names of pods contain the name
// of the node. Containers that run are not affected.
func applyCloudMetadata(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if cfg.Cloud == "" {
		return nil
	}
	k := &cloudMetadata{
		fetch: func(ctx context.Context) (metadata.Machine, error) { return metadata.Fetch(ctx, cfg.Cloud, "") },
		path:  filepath.Join(cfg.RootDir, "cloud.json"), machine: host.SystemInfo(cfg.AsKubelet).SystemUUID, cloud: cfg.Cloud, log: log,
	}
	m, err := k.get(ctx)
	if err != nil {
		return err
	}
	return applyMachine(cfg, m)
}

// applyMachine applies m. Values that the user has set take precedence.
func applyMachine(cfg *config.Config, m metadata.Machine) error {
	if !cfg.Named {
		name, err := config.NodeName(m.Name)
		if err != nil {
			return fmt.Errorf("naming the node as cloud %s does: %w", cfg.Cloud, err)
		}
		cfg.NodeName = name
	}
	labels := m.Labels()
	maps.Copy(labels, cfg.NodeLabels)
	cfg.NodeLabels = labels
	if cfg.Cluster.ProviderID == "" {
		cfg.Cluster.ProviderID = m.ProviderID
	}
	return nil
}

// cloudTries is the number of failed requests after which podd starts with the cached
// metadata.
const cloudTries = 3

// cloudMetadata gets the metadata of this machine from its cloud, and caches it in a
// file.
type cloudMetadata struct {
	fetch   func(ctx context.Context) (metadata.Machine, error)
	path    string // of the cache
	machine string // an ID of the machine; "" if unknown, which disables the cache
	cloud   string
	log     *slog.Logger
}

// cachedMachine is the content of the cache. It names the machine, because the disk may
// since have been attached to another one.
type cachedMachine struct {
	Machine  string           `json:"machine"`
	Cloud    string           `json:"cloud"`
	Reported metadata.Machine `json:"told"`
}

// get returns the metadata from the cloud, or from the cache after cloudTries failures.
func (k *cloudMetadata) get(ctx context.Context) (metadata.Machine, error) {
	for n := 1; ; n++ {
		m, err := k.fetch(ctx)
		if err == nil {
			k.store(m)
			return m, nil
		}
		if m, ok := k.load(); ok && n >= cloudTries {
			k.log.Warn("the node is what its cloud said earlier", "err", err, "name", m.Name)
			return m, nil
		}
		wait := plan.RetryDelay(n)
		k.log.Warn("pods wait for the node's name", "err", err, "next try in", wait)
		notify(k.log, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (wait+time.Minute).Microseconds()))
		notify(k.log, "STATUS=waiting for the metadata service of cloud "+k.cloud)
		select {
		case <-ctx.Done():
			return metadata.Machine{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// store writes m to the cache if it differs. The file is replaced atomically.
func (k *cloudMetadata) store(m metadata.Machine) {
	if known, ok := k.load(); k.machine == "" || ok && known == m {
		return
	}
	data, err := json.Marshal(cachedMachine{k.machine, k.cloud, m})
	if err == nil {
		err = atomicfile.Write(k.path, data)
	}
	if err != nil {
		k.log.Warn("what the cloud says of the node is not remembered", "err", err)
	}
}

// load returns the cached metadata of this machine.
func (k *cloudMetadata) load() (metadata.Machine, bool) {
	var t cachedMachine
	data, err := os.ReadFile(k.path)
	if err != nil || json.Unmarshal(data, &t) != nil || k.machine == "" || t.Machine != k.machine || t.Cloud != k.cloud {
		return metadata.Machine{}, false
	}
	return t.Reported, t.Reported.Check() == nil
}
