package main

import (
	"path/filepath"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
)

// cacheDir keeps the last good contents of the sources.
func cacheDir(cfg *config.Config) string { return filepath.Join(cfg.RootDir, "sources") }

// claimsDir has what outlives pods, those of a run to completion too.
func claimsDir(cfg *config.Config) string { return filepath.Join(cfg.RootDir, "claims") }

func podsDir(root string) string { return filepath.Join(root, "pods") }

func journals(root string) reconcile.Journals { return reconcile.Journals{Root: podsDir(root)} }
