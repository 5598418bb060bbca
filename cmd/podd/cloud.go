package main

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
	"podd/cmd/podd/internal/metadata"
	"podd/manifest/durable"
	"podd/reconcile/plan"
)

// askCloud takes from the cloud what the user did not say of the node, where that is
// asked for. It waits for an answer, since pods have the node's name; what runs runs on.
func askCloud(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	if cfg.Cloud == "" {
		return nil
	}
	k := &cloudKeeper{
		ask:  func(ctx context.Context) (metadata.Machine, error) { return metadata.Ask(ctx, cfg.Cloud, "") },
		path: filepath.Join(cfg.RootDir, "cloud.json"), machine: systemInfo(cfg.AsKubelet).SystemUUID, cloud: cfg.Cloud, log: log,
	}
	m, err := k.learn(ctx)
	if err != nil {
		return err
	}
	return takeCloud(cfg, m)
}

// takeCloud: what the user says wins.
func takeCloud(cfg *config.Config, m metadata.Machine) error {
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

// cloudTries is after how many a machine without its cloud starts from what it was
// told before.
const cloudTries = 3

// cloudKeeper asks a cloud what this machine is, and remembers it.
type cloudKeeper struct {
	ask     func(ctx context.Context) (metadata.Machine, error)
	path    string // of the file
	machine string // an id of the machine; "" when unknown, and nothing is remembered
	cloud   string
	log     *slog.Logger
}

// toldOnce is what the file has: a disk may be another machine's by now.
type toldOnce struct {
	Machine string           `json:"machine"`
	Cloud   string           `json:"cloud"`
	Told    metadata.Machine `json:"told"`
}

// learn returns when the cloud, or else the file, has told what the machine is.
func (k *cloudKeeper) learn(ctx context.Context) (metadata.Machine, error) {
	for n := 1; ; n++ {
		m, err := k.ask(ctx)
		if err == nil {
			k.remember(m)
			return m, nil
		}
		if m, ok := k.recall(); ok && n >= cloudTries {
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

// remember writes what is new: a cut of the power finds the file whole.
func (k *cloudKeeper) remember(m metadata.Machine) {
	if known, ok := k.recall(); k.machine == "" || ok && known == m {
		return
	}
	data, err := json.Marshal(toldOnce{k.machine, k.cloud, m})
	if err == nil {
		err = durable.Write(k.path, data)
	}
	if err != nil {
		k.log.Warn("what the cloud says of the node is not remembered", "err", err)
	}
}

// recall is what the file has of this machine.
func (k *cloudKeeper) recall() (metadata.Machine, bool) {
	var t toldOnce
	data, err := os.ReadFile(k.path)
	if err != nil || json.Unmarshal(data, &t) != nil || k.machine == "" || t.Machine != k.machine || t.Cloud != k.cloud {
		return metadata.Machine{}, false
	}
	return t.Told, t.Told.Check() == nil
}
