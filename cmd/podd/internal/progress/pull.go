package progress

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// A Pull is an image pull for a container.
type Pull struct {
	Container, Image string
	Since            time.Time
}

// Text formats the pulls and their durations, the longest first, or returns "" if there
// are none. CRI does not report how much of an image has been pulled.
func Text(pulls []Pull, now time.Time) string {
	first := map[string]time.Time{}
	for _, p := range pulls {
		if since, ok := first[p.Image]; !ok || p.Since.Before(since) {
			first[p.Image] = p.Since
		}
	}
	var images []Pull
	for image, since := range first {
		images = append(images, Pull{Image: image, Since: since})
	}
	slices.SortFunc(images, func(a, b Pull) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Image, b.Image)) })
	var words []string
	for _, p := range images {
		words = append(words, p.Image+" for "+duration.HumanDuration(max(now.Sub(p.Since), 0)))
	}
	if len(words) == 0 {
		return ""
	}
	return "pulling " + strings.Join(words, ", ")
}
