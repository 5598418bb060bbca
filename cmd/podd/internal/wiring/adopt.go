package wiring

import (
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
)

// IncludesUnlabelled reports whether sandboxes without podd's label may belong to this podd. It
// returns true if --adopt is set, or if a journal shows that podd has adopted a pod of a kubelet.
func IncludesUnlabelled(cfg *config.Config) (bool, error) {
	if cfg.Adopt {
		return true, nil
	}
	return rootdir.Journals(cfg.RootDir).HasTakenOverPod()
}
