package gc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// dead returns containers from words such as "a2@9": attempt 2 of container a, created 9 minutes
// before now. A word that ends with ! is a container that podd needs.
func dead(t *testing.T, now time.Time, words string) (all []DeadContainer) {
	t.Helper()
	for word := range strings.FieldsSeq(words) {
		c := DeadContainer{ID: word, PodUID: "u", Name: word[:1], IsNeeded: strings.HasSuffix(word, "!")}
		var minutes int
		if _, err := fmt.Sscanf(strings.TrimSuffix(word, "!")[1:], "%d@%d", &c.Attempt, &minutes); err != nil {
			t.Fatal(err)
		}
		c.CreatedAt = now.Add(-time.Duration(minutes) * time.Minute)
		all = append(all, c)
	}
	return all
}

func TestContainerPolicy(t *testing.T) {
	tests := map[string]struct {
		max    int
		minAge time.Duration
		all    string
		want   string
	}{
		"no containers":                              {0, 0, "", ""},
		"no maximum":                                 {-1, 0, "a0@9 a1@8 b0@7", ""},
		"not more than the maximum":                  {3, 0, "a0@9 a1@8 b0@7", ""},
		"one name":                                   {2, 0, "a2@7 a0@9 a1@8", "a0@9"},
		"equal share of each name":                   {4, 0, "a0@9 a1@8 a2@7 a3@6 b0@20 b1@19", "a0@9 a1@8"},
		"share is rounded down":                      {5, 0, "a0@9 a1@8 a2@7 a3@6 b0@20 b1@19", "a0@9 a1@8"},
		"one of each name, then the oldest":          {1, 0, "a0@9 a1@8 b0@20 b1@19", "b0@20 a0@9 b1@19"},
		"none":                                       {0, 0, "a0@9 a1@8 b0@20", "a0@9 b0@20 a1@8"},
		"needed containers remain":                   {0, 0, "a0@9 a1@8! b0@20!", "a0@9"},
		"needed containers count":                    {2, 0, "a0@9 a1@8! b0@20! c0@30", "a0@9 c0@30"},
		"young containers remain":                    {0, 8 * time.Minute, "a0@9 a1@8 b0@7", "a0@9 a1@8"},
		"young containers do not count":              {2, 8 * time.Minute, "a0@9 a1@8 b0@7", ""},
		"created in the future":                      {0, time.Minute, "a0@-9", ""},
		"created in the future, no minimum":          {0, 0, "a0@-9", "a0@-9"},
		"same creation time":                         {1, 0, "a1@9 a0@9", "a0@9"},
		"more names than the maximum, newest remain": {2, 0, "a0@9 b0@8 c0@7 d0@6", "a0@9 b0@8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			var got []string
			for _, c := range (ContainerPolicy{Max: test.max, MinAge: test.minAge}).Excess(dead(t, now, test.all), now) {
				got = append(got, c.ID)
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestContainerPolicy_Laws checks three laws for random containers: needed and young containers
// remain, no container is removed unless the maximum is exceeded, and only needed containers exceed
// the maximum.
func TestContainerPolicy_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		p := ContainerPolicy{Max: rapid.IntRange(-1, 8).Draw(t, "max"), MinAge: time.Duration(rapid.IntRange(0, 3).Draw(t, "minAge")) * time.Minute}
		var all []DeadContainer
		for i := range rapid.IntRange(0, 12).Draw(t, "count") {
			all = append(all, DeadContainer{
				ID: fmt.Sprint(i), PodUID: types.UID(rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid")),
				Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), Attempt: uint32(i),
				CreatedAt: now.Add(-time.Duration(rapid.IntRange(-1, 5).Draw(t, "age")) * time.Minute), IsNeeded: rapid.Bool().Draw(t, "needed"),
			})
		}
		before := slices.Clone(all)
		remove := p.Excess(all, now)
		if !slices.Equal(before, all) {
			t.Error("argument of Excess: got it modified, want it unchanged")
		}
		old, needed := 0, 0
		for _, c := range all {
			isRemoved, isOld := slices.Contains(remove, c), p.MinAge == 0 || now.Sub(c.CreatedAt) >= p.MinAge
			if isOld {
				old++
			}
			if isOld && c.IsNeeded {
				needed++
			}
			if isRemoved && (c.IsNeeded || !isOld || p.Max < 0) {
				t.Errorf("container %s: got it removed, want it kept because it is needed or young, or because there is no maximum", c.ID)
			}
		}
		left := old - len(remove)
		if p.Max >= 0 && left > max(p.Max, needed) {
			t.Errorf("remaining old containers: got %d, want at most the %d that are needed or the maximum of %d", left, needed, p.Max)
		}
		if old <= p.Max && len(remove) > 0 {
			t.Errorf("removed containers: got %d, want none because there are not more than %d", len(remove), p.Max)
		}
	})
}
