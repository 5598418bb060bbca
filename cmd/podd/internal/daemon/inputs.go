package daemon

import (
	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/sources"
	"podd/manifest/apidir"
	"podd/manifest/source"
	"podd/reconcile/volume/csi"
)

// inputs contains the sources of desired pods.
type inputs struct {
	sources []source.Source  // including the cluster
	apiDir  *apidir.Dir      // nil if the API is read-only
	cluster *cluster.Cluster // nil without a cluster
	csi     *csi.Drivers
}

// openInputs opens the configured sources. It does not read them. hasPort is set if the kubelet API
// listens on a port.
func openInputs(b processState, t telemetry, hasPort bool) (inputs, error) {
	cfg := b.cfg
	dir, err := openAPIDir(cfg)
	if err != nil {
		return inputs{}, err
	}
	cache := rootdir.SourcesPath(cfg.RootDir)
	podSources, err := sources.New(cfg, source.Options{Log: b.log, CacheDir: cache})
	if err != nil {
		return inputs{}, err
	}
	drivers, err := newCSIDrivers(b, t)
	if err != nil {
		return inputs{}, err
	}
	nodeCluster := newCluster(b, t, drivers, hasPort)
	if nodeCluster != nil {
		podSources = append(podSources, nodeCluster.Source())
	}
	if err := source.Prune(cache, podSources...); err != nil {
		b.log.Warn("failed to remove the cached content of sources that are no longer configured", "err", err)
	}
	return inputs{sources: podSources, apiDir: dir, cluster: nodeCluster, csi: drivers}, nil
}

// openAPIDir returns the directory that the API writes, or nil if none is configured.
func openAPIDir(cfg *config.Config) (*apidir.Dir, error) {
	if cfg.APIManifestDir == "" {
		return nil, nil
	}
	if err := sources.CheckAPIDir(&cfg.Sources); err != nil {
		return nil, err
	}
	hadContent := sources.NewAPIDir(&cfg.Sources, source.Options{CacheDir: rootdir.SourcesPath(cfg.RootDir)}).HasCachedContent()
	return apidir.Open(cfg.APIManifestDir, hadContent)
}
