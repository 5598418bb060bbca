package plan

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"podd/runtime"
)

// TestExcess checks which exited containers are removed. Each number is the age of an attempt in
// minutes, from attempt 0 on.
func TestExcess(t *testing.T) {
	now := time.Now()
	const unlimited = -1
	tests := map[string]struct {
		minAge time.Duration
		extra  int
		ages   []int
		want   []uint32      // removed attempts, sorted by number
		wait   time.Duration // time until the next decision; 0 if there is none
	}{
		"none":                                  {0, 0, nil, nil, 0},
		"only the newest":                       {0, 0, []int{9}, nil, 0},
		"default":                               {0, 0, []int{9, 8, 7}, []uint32{0, 1}, 0},
		"two more":                              {0, 2, []int{9, 8, 7, 6}, []uint32{0}, 0},
		"not more than the maximum":             {0, 2, []int{9, 8, 7}, nil, 0},
		"no maximum":                            {0, unlimited, []int{9, 8, 7, 6}, nil, 0},
		"no maximum with a minimum age":         {time.Minute, unlimited, []int{9, 8, 7, 6}, nil, 0},
		"highest maximum":                       {0, math.MaxInt32 - 1, []int{9, 8, 7}, nil, 0},
		"all too young":                         {10 * time.Minute, 0, []int{9, 8, 7}, nil, time.Minute},
		"young containers do not count":         {8 * time.Minute, 0, []int{9, 7, 6}, nil, time.Minute},
		"old containers beyond the maximum":     {8 * time.Minute, 0, []int{10, 9, 7}, []uint32{0}, time.Minute},
		"exactly the minimum age":               {8 * time.Minute, 0, []int{9, 8, 7}, []uint32{0}, time.Minute},
		"both":                                  {5 * time.Minute, 1, []int{9, 8, 7, 4}, []uint32{0}, time.Minute},
		"created in the future, without an age": {0, 0, []int{-5, -6}, []uint32{0}, 0},
		"created in the future, with a minimum age": {time.Minute, 0, []int{-5, -6}, nil, time.Minute},
		"the clock was set back between attempts":   {6 * time.Minute, 0, []int{1, 9, 8}, []uint32{1}, 5 * time.Minute},
		"the newest attempt is old, others young":   {6 * time.Minute, 0, []int{1, 2, 9}, nil, 4 * time.Minute},
		"creation time far in the past":             {time.Minute, 0, []int{1 << 24, 1 << 24}, []uint32{0}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var dead []*runtime.Container
			for attempt, minutes := range test.ages {
				dead = append(dead, &runtime.Container{Attempt: uint32(attempt), CreatedAt: now.Add(-time.Duration(minutes) * time.Minute).Round(0)})
			}
			remove, next := DeadContainerPolicy{MinAge: test.minAge, Extra: test.extra}.excess(dead, now)
			var got []uint32
			for _, c := range remove {
				got = append(got, c.Attempt)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("removed attempts (-want +got):\n%s", diff)
			}
			if wait := next.Sub(now).Round(time.Second); next.IsZero() != (test.wait == 0) || !next.IsZero() && wait != test.wait {
				t.Errorf("next decision: got %s (in %s), want in %s", next, wait, test.wait)
			}
		})
	}
}

// TestExcess_Laws checks for random containers that the newest container and the young containers
// remain, that no more old containers remain than the maximum, and that no wait exceeds the minimum
// age.
func TestExcess_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		p := DeadContainerPolicy{
			MinAge: time.Duration(rapid.IntRange(0, 5).Draw(t, "minAge")) * time.Minute,
			Extra:  rapid.IntRange(-1, 3).Draw(t, "extra"),
		}
		var dead []*runtime.Container
		for attempt := range rapid.IntRange(0, 8).Draw(t, "count") {
			created := now.Add(time.Duration(rapid.IntRange(-8, 2).Draw(t, "created")) * time.Minute)
			dead = append(dead, &runtime.Container{ID: fmt.Sprint(attempt), Attempt: uint32(attempt), CreatedAt: created.Round(0)})
		}
		dead = rapid.Permutation(dead).Draw(t, "order")
		remove, next := p.excess(slices.Clone(dead), now)
		if !next.IsZero() && (!next.After(now) || next.Sub(now) > p.MinAge) {
			t.Errorf("time until the next decision: got %s, want at most the minimum age %s", next.Sub(now), p.MinAge)
		}
		old := 0
		for _, c := range dead {
			isRemoved, isOld := slices.Contains(remove, c), now.Sub(c.CreatedAt) >= p.MinAge || p.MinAge == 0
			switch {
			case isRemoved && int(c.Attempt) == len(dead)-1:
				t.Errorf("attempt %d, the newest container: got it removed, want it kept", c.Attempt)
			case isRemoved && !isOld:
				t.Errorf("attempt %d, younger than %s: got it removed, want it kept", c.Attempt, p.MinAge)
			case isRemoved && p.Extra < 0:
				t.Errorf("attempt %d without a maximum: got it removed, want it kept", c.Attempt)
			case !isRemoved && isOld:
				old++
			}
		}
		if p.Extra >= 0 && old > p.Extra+1 {
			t.Errorf("remaining old containers: got %d, want at most %d", old, p.Extra+1)
		}
	})
}
