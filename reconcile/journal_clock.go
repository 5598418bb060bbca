package reconcile

import (
	"maps"
	"time"

	"podd/reconcile/clock"
)

// journalClock has the times of a journal by the clock that counts from the boot. The times
// in the journal itself are of the wall clock, which may be set at any moment. They are for
// users and for versions of podd that do not know this field.
//
// In the boot in which the journal was written, the time since a moment is exact. In a
// later boot it is the time that is known to have passed: from the moment to the last write
// of the journal, and since the present boot. The time in between does not count, because
// only the wall clock measures it, and the wall clock may have been wrong then or may be
// wrong now. So after a boot a deadline may come later, but never too early, and a grace
// that began before the boot never ends too early.
type journalClock struct {
	Boot string `json:"boot"`
	// Up is the time since the boot at which the journal was written.
	Up time.Duration `json:"up"`
	// Moments has the time from the boot to each moment, by field. It is negative for a
	// moment before the boot.
	Moments map[string]time.Duration `json:"moments,omitempty"`
}

// stamped returns j with its times by the clock that counts from the boot.
func (j journal) stamped(now clock.Reading) journal {
	j.Clock = nil
	if now.Boot == "" {
		return j
	}
	moments := map[string]time.Duration{}
	j.eachMoment(func(field string, t time.Time) time.Time {
		moments[field] = now.Up - now.Now.Sub(t)
		return t
	})
	j.Clock = &journalClock{Boot: now.Boot, Up: now.Up, Moments: moments}
	return j
}

// anchored returns j with its times measured back from now, so that they have a monotonic
// reading and nothing moves them any more.
func (j journal) anchored(now clock.Reading) journal {
	j.started = j.StartTime
	j.eachMoment(func(field string, t time.Time) time.Time {
		return now.Now.Add(-max(j.Clock.since(field, t, now), 0))
	})
	return j
}

// since returns the time since a moment. k may be nil. A moment without a time since the
// boot, as in the journals of older versions of podd, is measured by the wall clock.
func (k *journalClock) since(field string, t time.Time, now clock.Reading) time.Duration {
	if k != nil && now.Boot != "" {
		if at, ok := k.Moments[field]; ok && k.Boot == now.Boot {
			return now.Up - at
		} else if ok {
			return max(k.Up-at, 0) + now.Up
		}
	}
	return now.Now.Sub(t)
}

// eachMoment replaces each time of j by the result of f. Values that j shares with other
// journals are copied first.
func (j *journal) eachMoment(f func(field string, t time.Time) time.Time) {
	move := func(field string, t *time.Time) {
		if !t.IsZero() {
			*t = f(field, *t)
		}
	}
	move("startTime", &j.started)
	if j.Finished != nil {
		fin := *j.Finished
		move("finished", &fin.At)
		j.Finished = &fin
	}
	if j.Stopping != nil {
		stopping := *j.Stopping
		move("stopping", &stopping.Since)
		j.Stopping = &stopping
	}
	j.Terminations = maps.Clone(j.Terminations)
	for id, e := range j.Terminations {
		move("ending/"+id, &e.Since)
		j.Terminations[id] = e
	}
}
