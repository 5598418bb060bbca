package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// fakeImages implements server.Images in memory. It removes only images that no pod uses.
type fakeImages struct{ list server.ImageList }

func (f *fakeImages) List(context.Context) (server.ImageList, error) { return f.list, nil }

func (f *fakeImages) Remove(_ context.Context, name string) (server.Image, error) {
	for n, i := range f.list.Images {
		switch {
		case imageNames(i)[0] != name:
		case len(i.Users) > 0:
			return server.Image{}, &server.Error{Status: http.StatusConflict, Message: "image is in use by " + i.Users[0]}
		default:
			f.list.Images = append(f.list.Images[:n:n], f.list.Images[n+1:]...)
			return i, nil
		}
	}
	return server.Image{}, server.NewNotFoundError("no such image")
}

func (f *fakeImages) Prune(context.Context) (server.PrunedImages, error) {
	var p server.PrunedImages
	var kept []server.Image
	for _, i := range f.list.Images {
		if i.InUse() {
			kept = append(kept, i)
		} else {
			p.Removed = append(p.Removed, i)
		}
	}
	f.list.Images = kept
	return p, nil
}

func TestImages(t *testing.T) {
	ago := func(d time.Duration) *time.Time { at := time.Now().Add(-d); return &at }
	detected := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	list := server.ImageList{DiskUsedPercent: 91, HighThresholdPercent: 85, Images: []server.Image{
		{ID: id("0"), Bytes: 300 << 20, FirstDetected: detected, LastUsed: ago(50 * time.Hour), Removal: &server.ImageRemoval{Reason: "space", Message: "disk usage 91% has reached 85%", Order: 1}},
		{ID: id("1"), Names: []string{"docker.io/library/busybox:1", "docker.io/library/busybox:latest"}, Bytes: 4404019, FirstDetected: detected, LastUsed: ago(0), Users: []string{"default/a", "default/b", "default/c"}, KeepReason: "in use"},
		{ID: id("2"), Names: []string{"registry.example/\x1b[31mred:1"}, Bytes: 100, FirstDetected: detected, Users: []string{}, Removal: &server.ImageRemoval{Reason: "age", Message: "not used for more than 7d", Order: 2}},
		{ID: id("3"), Names: []string{"registry.k8s.io/pause:3.10"}, Bytes: 700 << 10, FirstDetected: detected, IsSandboxImage: true, Users: []string{}, KeepReason: "sandbox image"},
		{ID: id("4"), Names: []string{"registry.k8s.io/pause:3.9"}, Bytes: 700 << 10, FirstDetected: detected, IsPinned: true, Users: []string{}, KeepReason: "pinned"},
		{ID: id("5"), Names: []string{"registry.example/agent:1"}, Bytes: 900 << 10, FirstDetected: detected, LastUsed: ago(0), IsPinned: true, Users: []string{"default/d"}, KeepReason: "in use"},
	}}
	f := &poddtest.Podd{LatestView: server.NewLatestView(poddtest.NewView()), Dir: poddtest.ShortDir(t), Images: &fakeImages{list}}
	f.Start(t)
	var text strings.Builder
	for _, words := range [][]string{
		{"images"}, {"images", "ls", "-o", "wide"}, {"images", "-o", "name"},
		{"images", "rm", "docker.io/library/busybox:1", "absent:1", id("0")}, {"images", "prune"}, {"images", "prune"}, {"images", "ls"},
		{"images", "rm"}, {"images", "prune", "busybox"}, {"images", "ls", "busybox"}, {"images", "prune", "-o", "json"},
	} {
		got := podd(t, f, words...)
		text.WriteString("$ podd " + strings.Join(words, " ") + "\n" + got.Out + got.Err)
	}
	compareGolden(t, "images", text.String())
}

// TestImages_Summary checks the summary if the disk usage is unknown, and if podd does not remove
// images to free space (HighThresholdPercent is 100).
func TestImages_Summary(t *testing.T) {
	for want, list := range map[string]server.ImageList{
		"podd: 0 images, 0 not in use (0); the disk usage is unknown: input/output error": {DiskError: "input/output error"},
		"podd: 0 images, 0 not in use (0); disk usage 30%":                                {DiskUsedPercent: 30, HighThresholdPercent: 100},
	} {
		if got := imageSummary(list); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
