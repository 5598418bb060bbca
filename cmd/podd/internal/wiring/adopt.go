package wiring

import (
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
)

// IncludesUnlabelled reports whether sandboxes without podd's label may belong to podd: with
// --adopt, or if a journal shows that podd has taken over a pod.
func IncludesUnlabelled(cfg *config.Config) (bool, error) {
	if cfg.Adopt {
		return true, nil
	}
	return rootdir.Journals(cfg.RootDir).HasTakenOver()
}
