package state

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/clock"
	"podd/reconcile/plan"
)

// A Record is the history of one pod UID that survives podd, because package journal stores
// it on disk. If the runtime reports something else, the runtime is right. If the record is
// lost,
//
//   - a finished pod runs again if the runtime lost its containers, too;
//   - a termination in progress gets its whole grace and its preStop hooks again;
//   - a postStart hook in progress counts as done;
//   - restart counts come from container annotations and logs;
//   - containers with probes are not ready, or not started, until the probe passes again;
//   - resized containers are resized again;
//   - ephemeral containers that were added and not created yet are not created;
//   - a pod that was taken over from a kubelet belongs to the kubelet again, unless podd runs
//     with --adopt.
type Record struct {
	Version      int                         `json:"version,omitempty"` // of the format, set by package journal; 0 in the first format
	Key          types.NamespacedName        `json:"key"`
	UID          types.UID                   `json:"uid"`
	Hash         string                      `json:"hash"`
	Taken        bool                        `json:"taken,omitempty"` // taken over from a kubelet
	Volumes      bool                        `json:"volumes,omitempty"`
	StartTime    time.Time                   `json:"startTime,omitzero"` // the start time in the pod's status
	Finished     *plan.Finished              `json:"finished,omitempty"`
	Stopping     *plan.Stopping              `json:"stopping,omitempty"`
	Containers   map[string]ContainerRecord  `json:"containers,omitempty"`
	Probed       map[string]plan.Probed      `json:"probed,omitempty"`  // by container ID
	Terminations map[string]plan.Termination `json:"endings,omitempty"` // by container ID
	Sizes        map[string]plan.Size        `json:"sizes,omitempty"`   // see plan.History
	// Ephemeral are the containers that were added to the pod and not created yet. They
	// have at most validate.MaxEphemeralBytes bytes.
	Ephemeral []v1.EphemeralContainer `json:"ephemeral,omitempty"`
	// Clock is nil in the records of older versions of podd.
	Clock *RecordClock `json:"clock,omitempty"`

	// Started is the moment of StartTime on the monotonic clock, which steps of the wall
	// clock do not move. It is not stored.
	Started time.Time `json:"-"`
}

// A ContainerRecord is the part of a Record about one container.
type ContainerRecord struct {
	Attempt  uint32     `json:"attempt,omitempty"`
	Skipped  uint32     `json:"skipped,omitempty"` // Attempt minus plan.ContainerHistory.Restarts; without it, restart counts are too high by this number
	LastExit *plan.Exit `json:"lastExit,omitempty"`
	// RestartID and PostStart are those of plan.ContainerHistory.
	RestartID string    `json:"restartID,omitempty"`
	PostStart plan.Hook `json:"postStart,omitzero"`
}

// RecordClock has the times of a record by the clock that counts from the boot. The times
// in the record itself are of the wall clock, which may be set at any moment. They are for
// users and for versions of podd that do not know this field.
//
// In the boot in which the record was written, the time since a moment is exact. In a
// later boot it is the time that is known to have passed: from the moment to the last write
// of the record, and since the present boot. The time in between does not count, because
// only the wall clock measures it, and the wall clock may have been wrong then or may be
// wrong now. So after a boot a deadline may come later, but never too early, and a grace
// that began before the boot never ends too early.
type RecordClock struct {
	Boot string `json:"boot"`
	// Up is the time since the boot at which the record was written.
	Up time.Duration `json:"up"`
	// Moments has the time from the boot to each moment, by field. It is negative for a
	// moment before the boot.
	Moments map[string]time.Duration `json:"moments,omitempty"`
}

// durable reports whether r must survive a power cut: without its end the pod would run
// again, and a user was told that its ephemeral containers were added. A record that
// replaces such a one must be synced too, because some file systems (XFS) may otherwise
// have an empty file in its place after a power cut.
func (r *Record) durable() bool { return r.Finished != nil || len(r.Ephemeral) > 0 }

// Stamped returns r with its times by the clock that counts from the boot.
func (r Record) Stamped(now clock.Reading) Record {
	r.Clock = nil
	if now.Boot == "" {
		return r
	}
	moments := map[string]time.Duration{}
	r.eachMoment(func(field string, t time.Time) time.Time {
		moments[field] = now.Up - now.Now.Sub(t)
		return t
	})
	r.Clock = &RecordClock{Boot: now.Boot, Up: now.Up, Moments: moments}
	return r
}

// Anchored returns r with its times measured back from now, so that they have a monotonic
// reading and nothing moves them any more.
func (r Record) Anchored(now clock.Reading) Record {
	r.Started = r.StartTime
	r.eachMoment(func(field string, t time.Time) time.Time {
		return now.Now.Add(-max(r.Clock.since(field, t, now), 0))
	})
	return r
}

// since returns the time since a moment. k may be nil. A moment without a time since the
// boot, as in the records of older versions of podd, is measured by the wall clock.
func (k *RecordClock) since(field string, t time.Time, now clock.Reading) time.Duration {
	if k != nil && now.Boot != "" {
		if at, ok := k.Moments[field]; ok && k.Boot == now.Boot {
			return now.Up - at
		} else if ok {
			return max(k.Up-at, 0) + now.Up
		}
	}
	return now.Now.Sub(t)
}

// eachMoment replaces each time of r by the result of f. Values that r shares with other
// records are copied first.
func (r *Record) eachMoment(f func(field string, t time.Time) time.Time) {
	move := func(field string, t *time.Time) {
		if !t.IsZero() {
			*t = f(field, *t)
		}
	}
	move("startTime", &r.Started)
	if r.Finished != nil {
		fin := *r.Finished
		move("finished", &fin.At)
		r.Finished = &fin
	}
	if r.Stopping != nil {
		stopping := *r.Stopping
		move("stopping", &stopping.Since)
		r.Stopping = &stopping
	}
	r.Terminations = maps.Clone(r.Terminations)
	for id, e := range r.Terminations {
		move("ending/"+id, &e.Since)
		r.Terminations[id] = e
	}
}

// WithoutMessages returns r without the termination messages of its containers, in case
// they are too large to store. The worker that reads the record reads the messages again if
// they still exist.
func (r Record) WithoutMessages() Record {
	r.Containers = maps.Clone(r.Containers)
	for name, c := range r.Containers {
		if c.LastExit != nil {
			exit := *c.LastExit
			exit.TerminationMessage, exit.MessageRead, exit.Message = "", false, ""
			c.LastExit = &exit
			r.Containers[name] = c
		}
	}
	return r
}
