package wiring

import (
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
)

// IncludesUnlabelled reports whether sandboxes without the label of podd may belong to
// it.
func IncludesUnlabelled(cfg *config.Config) (bool, error) {
	if cfg.Adopt {
		return true, nil
	}
	return rootdir.Journals(cfg.RootDir).HasTakenOver()
}
