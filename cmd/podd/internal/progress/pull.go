package progress

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"podd/manifest/order"
)

// A Pull is an image pull in progress for a container.
type Pull struct {
	Container, Image string
	Since            time.Time
}

// FormatPulls formats pulls and their durations on one line, the longest pull first. It returns
// "" if there are no pulls. The line contains no percentages, because CRI does not report how
// much of an image has been pulled.
func FormatPulls(pulls []Pull, now time.Time) string {
	firstStart := map[string]time.Time{}
	for _, p := range pulls {
		if since, ok := firstStart[p.Image]; !ok || p.Since.Before(since) {
			firstStart[p.Image] = p.Since
		}
	}
	var images []Pull
	for image, since := range firstStart {
		images = append(images, Pull{Image: image, Since: since})
	}
	order.Slice(images, func(a, b Pull) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Image, b.Image)) })
	var words []string
	for _, p := range images {
		words = append(words, p.Image+" for "+duration.HumanDuration(max(now.Sub(p.Since), 0)))
	}
	if len(words) == 0 {
		return ""
	}
	return "pulling " + strings.Join(words, ", ")
}
