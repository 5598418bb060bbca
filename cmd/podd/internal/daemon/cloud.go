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

// applyCloudMetadata requests metadata from the configured cloud and sets the fields of cfg that
// the user has not set. It does nothing if no cloud is configured. It blocks until the metadata is
// available, because the names of pods contain the name of the node. While it blocks, containers
// keep running.
func applyCloudMetadata(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if cfg.Cloud == "" {
		return nil
	}
	c := &cloudMetadataClient{
		fetch: func(ctx context.Context) (metadata.Instance, error) { return metadata.Fetch(ctx, cfg.Cloud, "") },
		path:  filepath.Join(cfg.RootDir, "cloud.json"), hostID: host.SystemInfo(&cfg.Node).SystemUUID, cloud: cfg.Cloud, log: log,
	}
	m, err := c.get(ctx)
	if err != nil {
		return err
	}
	return applyMetadata(cfg, m)
}

// applyMetadata sets fields of cfg from m. Values that the user has set take precedence.
func applyMetadata(cfg *config.Config, m metadata.Instance) error {
	if !cfg.NodeNameSetByUser {
		name, err := config.NormalizeNodeName(m.Name)
		if err != nil {
			return fmt.Errorf("using the instance name from the metadata service of cloud %s as the node name: %w", cfg.Cloud, err)
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

// maxCloudAttempts is the number of failed requests after which podd starts with the cached
// metadata.
const maxCloudAttempts = 3

// A cloudMetadataClient requests the metadata of this host from its cloud, and caches the metadata in a
// file.
type cloudMetadataClient struct {
	fetch  func(ctx context.Context) (metadata.Instance, error)
	path   string // path of the cache
	hostID string // ID of the host; "" if the ID cannot be read, which disables the cache
	cloud  string
	log    *slog.Logger
}

// A cachedMetadata is the content of the cache. It contains the ID of the host, because the disk
// with the cache may be attached to another host later.
type cachedMetadata struct {
	HostID   string            `json:"machine"`
	Cloud    string            `json:"cloud"`
	Reported metadata.Instance `json:"reported"`
}

// get returns the metadata from the cloud, or from the cache after maxCloudAttempts failures.
func (c *cloudMetadataClient) get(ctx context.Context) (metadata.Instance, error) {
	for n := 1; ; n++ {
		m, err := c.fetch(ctx)
		if err == nil {
			c.store(m)
			return m, nil
		}
		if m, ok := c.load(); ok && n >= maxCloudAttempts {
			c.log.Warn("requesting the cloud metadata failed; using the cached metadata", "name", m.Name, "err", err)
			return m, nil
		}
		wait := plan.RetryDelay(n)
		c.log.Warn("requesting the cloud metadata failed; no pod starts until the metadata service responds", "retryAfter", wait, "err", err)
		notifySystemd(c.log, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (wait+time.Minute).Microseconds()))
		notifySystemd(c.log, "STATUS=waiting for the metadata service of cloud "+c.cloud)
		select {
		case <-ctx.Done():
			return metadata.Instance{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// store writes m to the cache if m differs from the cached metadata. The file is replaced
// atomically.
func (c *cloudMetadataClient) store(m metadata.Instance) {
	if stored, ok := c.load(); c.hostID == "" || ok && stored == m {
		return
	}
	data, err := json.Marshal(cachedMetadata{c.hostID, c.cloud, m})
	if err == nil {
		err = atomicfile.Write(c.path, data)
	}
	if err != nil {
		c.log.Warn("caching the cloud metadata failed; the next start of podd waits for the metadata service", "err", err)
	}
}

// load returns the cached metadata of this host. ok is false if the cache is empty, invalid or
// from another host.
func (c *cloudMetadataClient) load() (m metadata.Instance, ok bool) {
	var t cachedMetadata
	data, err := os.ReadFile(c.path)
	if err != nil || json.Unmarshal(data, &t) != nil || c.hostID == "" || t.HostID != c.hostID || t.Cloud != c.cloud {
		return metadata.Instance{}, false
	}
	return t.Reported, t.Reported.Validate() == nil
}
