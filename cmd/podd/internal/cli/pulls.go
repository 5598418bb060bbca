package cli

import (
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// pullProgress returns a function that formats the progress of all pulls for pods. It
// returns nil if there are no pulls.
func pullProgress(pods ...*server.PodView) func(time.Time) string {
	var pulls []progress.Pull
	for _, p := range pods {
		if p != nil {
			pulls = append(pulls, podPulls(p)...)
		}
	}
	if len(pulls) == 0 {
		return nil
	}
	return func(now time.Time) string { return printer.Escape(progress.FormatPulls(pulls, now)) }
}

// podPulls returns the pulls in progress for a pod.
func podPulls(p *server.PodView) []progress.Pull {
	var pulls []progress.Pull
	for _, q := range p.Pulls {
		pulls = append(pulls, progress.Pull(q))
	}
	return pulls
}

// formatImagesInPull returns the images that are being pulled for a pod.
func formatImagesInPull(p *server.PodView) string {
	var images []string
	for _, q := range p.Pulls {
		images = append(images, q.Image)
	}
	slices.Sort(images)
	return strings.Join(slices.Compact(images), " ")
}
