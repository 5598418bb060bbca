package gc_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"podd/reconcile/gc"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// ago returns the time at the given duration before now.
func ago(d time.Duration) time.Time { return now.Add(-d) }

const day = 24 * time.Hour

// policy has the defaults of the kubelet.
var policy = gc.Policy{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute}

// disk returns a disk of 1000 bytes with the given usage in percent.
func disk(percent int64) gc.Disk {
	return gc.Disk{CapacityBytes: 1000, AvailableBytes: 1000 - 10*percent}
}

func ids(d gc.Decision) []string {
	all := []string{}
	for _, r := range d.Removals {
		all = append(all, r.ID)
	}
	return all
}

func TestDecide(t *testing.T) {
	old := func(id string, size int64, lastUsed time.Duration) gc.Image {
		return gc.Image{ID: id, SizeBytes: size, FirstDetected: ago(30 * day), LastUsed: ago(lastUsed)}
	}
	unusedImage := gc.Image{ID: "never", SizeBytes: 30, FirstDetected: ago(day)}
	for name, test := range map[string]struct {
		images []gc.Image
		disk   gc.Disk
		policy gc.Policy
		want   []string
		kept   map[string]string
		goal   int64
	}{
		"usage below the high threshold": {
			images: []gc.Image{old("a", 30, day)}, disk: disk(84), policy: policy,
			want: []string{}, kept: map[string]string{"a": "disk usage 84% is below 85%"},
		},
		"usage at the high threshold: the least recently used images, until the low threshold": {
			images: []gc.Image{old("a", 30, day), old("b", 30, 3*day), old("c", 30, 2*day)}, disk: disk(85), policy: policy,
			want: []string{"b", "c"}, kept: map[string]string{"a": "removing other images is enough to reach 80%"}, goal: 50,
		},
		"an image that was never used is removed before used images": {
			images: []gc.Image{old("a", 30, 20*day), unusedImage}, disk: disk(85), policy: policy,
			want: []string{"never", "a"}, goal: 50, kept: map[string]string{},
		},
		"images that are in use, pinned or the sandbox image are kept": {
			images: []gc.Image{
				{ID: "used", SizeBytes: 1, Users: []string{"default/web"}, FirstDetected: ago(day)},
				{ID: "pinned", SizeBytes: 1, Pinned: true, FirstDetected: ago(day)},
				{ID: "pause", SizeBytes: 1, IsSandboxImage: true, FirstDetected: ago(day)},
				{ID: "young", SizeBytes: 1, FirstDetected: ago(2*time.Minute - 1)},
				{ID: "future", SizeBytes: 1, FirstDetected: ago(-time.Hour)},
				{ID: "grown", SizeBytes: 1, FirstDetected: ago(2 * time.Minute)},
			}, disk: disk(100), policy: policy,
			want: []string{"grown"}, goal: 200, kept: map[string]string{
				"used": "in use", "pinned": "pinned", "pause": "sandbox image", "young": "younger than 2m", "future": "younger than 2m",
			},
		},
		"a high threshold of 100 without maximum age disables the collection": {
			images: []gc.Image{old("a", 30, day)}, disk: disk(100), policy: gc.Policy{HighPercent: 100, LowPercent: 80},
			want: []string{}, kept: map[string]string{"a": "garbage collection is disabled"},
		},
		"maximum age": {
			images: []gc.Image{
				old("week", 30, 7*day), old("older", 30, 7*day+1), unusedImage,
				{ID: "used", LastUsed: ago(8 * day), Users: []string{"default/web"}},
			}, disk: disk(10), policy: gc.Policy{HighPercent: 100, LowPercent: 80, MaxAge: 7 * day},
			want: []string{"older"}, kept: map[string]string{
				"week": "disk usage 10% is below 100%", "never": "disk usage 10% is below 100%", "used": "in use",
			},
		},
		"images that exceed the maximum age count for the space": {
			images: []gc.Image{old("old", 50, 8*day), old("new", 30, day)}, disk: disk(85),
			policy: gc.Policy{HighPercent: 85, LowPercent: 80, MaxAge: 7 * day},
			want:   []string{"old"}, kept: map[string]string{"new": "removing other images is enough to reach 80%"}, goal: 50,
		},
		"a disk without capacity": {
			images: []gc.Image{old("a", 30, day)}, policy: policy,
			want: []string{}, kept: map[string]string{"a": "the disk usage is unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := gc.Decide(test.images, test.disk, test.policy, now)
			if diff := cmp.Diff(test.want, ids(d)); diff != "" {
				t.Errorf("removals (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.kept, d.Kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if d.GoalBytes != test.goal {
				t.Errorf("goal: got %d bytes, want %d", d.GoalBytes, test.goal)
			}
		})
	}
}

func TestDecide_Messages(t *testing.T) {
	images := []gc.Image{{ID: "a", SizeBytes: 1, LastUsed: ago(8 * day)}, {ID: "b", SizeBytes: 1, LastUsed: ago(day)}}
	d := gc.Decide(images, disk(90), gc.Policy{HighPercent: 85, LowPercent: 80, MaxAge: 7 * day}, now)
	want := []gc.Removal{{"a", 1, gc.Age, "not used for more than 7d"}, {"b", 1, gc.Space, "disk usage 90% has reached 85%"}}
	if diff := cmp.Diff(want, d.Removals); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
}

func TestReclaimAndPrune(t *testing.T) {
	images := []gc.Image{
		{ID: "used", Users: []string{"default/web"}}, {ID: "pinned", Pinned: true},
		{ID: "old", FirstDetected: ago(day)}, {ID: "young", FirstDetected: ago(time.Second)},
	}
	if got, want := ids(gc.Reclaim(images, policy, now)), []string{"old"}; !slices.Equal(got, want) {
		t.Errorf("Reclaim: got %v, want %v", got, want)
	}
	if got, want := ids(gc.ReclaimAll(images)), []string{"old", "young"}; !slices.Equal(got, want) {
		t.Errorf("ReclaimAll: got %v, want %v", got, want)
	}
	if got, want := ids(gc.Prune(images)), []string{"old", "young"}; !slices.Equal(got, want) {
		t.Errorf("Prune: got %v, want %v", got, want)
	}
}

func TestUsedPercent(t *testing.T) {
	for _, test := range []struct {
		disk gc.Disk
		want int
	}{
		{gc.Disk{CapacityBytes: 100, AvailableBytes: 29}, 71},
		{gc.Disk{CapacityBytes: 1000, AvailableBytes: 999}, 1},
		{gc.Disk{CapacityBytes: 1000, AvailableBytes: 2000}, 0},
		{gc.Disk{CapacityBytes: 1000, AvailableBytes: -1}, 100},
		{gc.Disk{CapacityBytes: math.MaxInt64, AvailableBytes: math.MaxInt64 / 2}, 51},
		{gc.Disk{}, 0},
	} {
		if got := test.disk.UsedPercent(); got != test.want {
			t.Errorf("%+v: got %d, want %d", test.disk, got, test.want)
		}
	}
}

// images generates images with extreme sizes and times.
func images(t *rapid.T) []gc.Image {
	at := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "isZero") {
			return time.Time{}
		}
		return ago(time.Duration(rapid.Int64Range(-10*365*int64(day), 10*365*int64(day)).Draw(t, "ago")))
	})
	all := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) gc.Image {
		return gc.Image{
			ID: rapid.StringMatching("[a-z]{1,2}").Draw(t, "id"), SizeBytes: rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1000)).Draw(t, "size"),
			Pinned: rapid.Float64Range(0, 1).Draw(t, "pinned") < .1, IsSandboxImage: rapid.Float64Range(0, 1).Draw(t, "sandbox") < .1,
			FirstDetected: at.Draw(t, "detected"), LastUsed: at.Draw(t, "used"),
			Users: rapid.SliceOfN(rapid.String(), 0, 1).Draw(t, "users"),
		}
	}), 0, 12, func(i gc.Image) string { return i.ID })
	return all.Draw(t, "images")
}

func policies(t *rapid.T) gc.Policy {
	high := rapid.IntRange(1, 100).Draw(t, "high")
	return gc.Policy{
		HighPercent: high, LowPercent: rapid.IntRange(0, high-1).Draw(t, "low"),
		MinAge: time.Duration(rapid.Int64Range(0, int64(day)).Draw(t, "min")),
		MaxAge: time.Duration(rapid.SampledFrom([]time.Duration{0, time.Hour, 7 * day}).Draw(t, "max")),
	}
}

func disks(t *rapid.T) gc.Disk {
	capacity := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 5000))
	return gc.Disk{CapacityBytes: capacity.Draw(t, "capacity"), AvailableBytes: rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 5000)).Draw(t, "available")}
}

// TestDecide_Properties checks the laws of a decision: each image is either removed or kept, a
// protected image is never removed, and an image is removed for space only if the usage has reached
// the high threshold and no more images than necessary are removed.
func TestDecide_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, d, p := images(t), disks(t), policies(t)
		got := gc.Decide(all, d, p, now)
		checkPartition(t, all, got)
		var freed int64
		for n, r := range got.Removals {
			switch r.Reason {
			case gc.Space:
				if d.CapacityBytes <= 0 || got.UsedPercent < p.HighPercent || p.IsDisabled() {
					t.Fatalf("image %s: got it removed for space at a usage of %d%% of disk %+v with policy %+v; want it kept", r.ID, got.UsedPercent, d, p)
				}
				if freed >= got.GoalBytes {
					t.Fatalf("image %s: got it removed, want it kept because removal %d has reached the goal", r.ID, n-1)
				}
			case gc.Age:
				if p.MaxAge == 0 {
					t.Fatalf("image %s: got it removed for its age, want it kept because there is no maximum age", r.ID)
				}
			default:
				t.Fatalf("image %s: got the unknown reason %q, want Space or Age", r.ID, r.Reason)
			}
			if size := max(r.SizeBytes, 0); freed > math.MaxInt64-size {
				freed = math.MaxInt64
			} else {
				freed += size
			}
		}
		if again := gc.Decide(reversed(all), d, p, now); !cmp.Equal(got, again) {
			t.Fatalf("images in reverse order: got another decision (-given +reverse):\n%s", cmp.Diff(got, again))
		}
	})
}

func TestReclaim_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, p := images(t), policies(t)
		checkPartition(t, all, gc.Reclaim(all, p, now))
		checkPartition(t, all, gc.ReclaimAll(all))
		checkPartition(t, all, gc.Prune(all))
		d := gc.Decide(all, disks(t), gc.Policy{HighPercent: p.HighPercent, LowPercent: p.LowPercent, MinAge: p.MinAge}, now)
		for _, id := range ids(d) {
			if !slices.Contains(ids(gc.Reclaim(all, p, now)), id) {
				t.Fatalf("Reclaim: got image %s kept, want it removed because Decide removes it for space", id)
			}
		}
	})
}

// checkPartition checks that each image is either removed once or kept with a reason, and that no
// protected image is removed.
func checkPartition(t *rapid.T, all []gc.Image, d gc.Decision) {
	var got, want []string
	for _, i := range all {
		want = append(want, i.ID)
		if slices.Contains(ids(d), i.ID) && (len(i.Users) > 0 || i.Pinned || i.IsSandboxImage) {
			t.Fatalf("protected image %+v: got it removed, want it kept", i)
		}
	}
	got = append(ids(d), slices.Collect(maps.Keys(d.Kept))...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("removed and kept images: got %v, want each image once: %v", got, want)
	}
	for id, why := range d.Kept {
		if strings.TrimSpace(why) == "" {
			t.Fatalf("kept image %s: got no reason, want one", id)
		}
	}
}

func reversed(all []gc.Image) []gc.Image {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}
