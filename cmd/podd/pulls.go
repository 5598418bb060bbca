package main

import (
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// pulling is what a terminal shows while images of these pods are fetched; nil
// while none is.
func pulling(pods ...*server.PodView) func(time.Time) string {
	var all []progress.Pull
	for _, p := range pods {
		if p != nil {
			all = append(all, pullsOf(p)...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(now time.Time) string { return plain(progress.Text(all, now)) }
}

func pullsOf(p *server.PodView) []progress.Pull {
	var all []progress.Pull
	for _, q := range p.Pulls {
		all = append(all, progress.Pull(q))
	}
	return all
}

// pulledImages names what is fetched for a pod, whenever it began.
func pulledImages(p *server.PodView) string {
	var images []string
	for _, q := range p.Pulls {
		images = append(images, q.Image)
	}
	slices.Sort(images)
	return strings.Join(slices.Compact(images), " ")
}
