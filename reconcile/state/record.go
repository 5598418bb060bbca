package state

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
)

// A Record is the part of the history of one pod UID that survives a restart of podd. Package
// journal stores it on disk. If the runtime reports a different fact, the runtime takes
// precedence. If the record is lost,
//
//   - a finished pod runs again if its containers were also removed from the runtime;
//   - an evicted pod starts again at once, and its back-off begins again;
//   - a termination in progress starts again with its whole grace period and its preStop hooks;
//   - a postStart hook in progress counts as done;
//   - restart counts are read from container annotations and logs;
//   - containers with probes are not ready, or not started, until the probe passes again;
//   - resized containers are resized again;
//   - ephemeral containers that were added and not created yet are not created;
//   - a pod that was taken over from a kubelet belongs to the kubelet again, unless podd runs
//     with --adopt.
type Record struct {
	Version      int                             `json:"version,omitempty"` // version of the format, set by package journal; 0 in the first format
	Key          types.NamespacedName            `json:"key"`
	UID          types.UID                       `json:"uid"`
	Hash         string                          `json:"hash"`
	TakenOver    bool                            `json:"taken,omitempty"` // whether the pod was taken over from a kubelet
	HasVolumes   bool                            `json:"volumes,omitempty"`
	StartTime    time.Time                       `json:"startTime,omitzero"` // equals the start time in the pod's status
	Finished     *plan.PodEnd                    `json:"finished,omitempty"`
	Stopping     *plan.SandboxTermination        `json:"stopping,omitempty"`
	Containers   map[string]ContainerRecord      `json:"containers,omitempty"`
	ProbeStates  map[string]plan.ContainerProbes `json:"probed,omitempty"`    // by container ID
	Terminations map[string]plan.Termination     `json:"endings,omitempty"`   // by container ID
	Sizes        map[string]plan.Size            `json:"sizes,omitempty"`     // see plan.History
	Evictions    int                             `json:"evictions,omitempty"` // see plan.History
	// Ephemeral contains the ephemeral containers that were added to the pod and not created
	// yet. Their size is limited by validate.MaxEphemeralBytes.
	Ephemeral []v1.EphemeralContainer `json:"ephemeral,omitempty"`
	// Clock is nil in the records of older versions of podd.
	Clock *RecordClock `json:"clock,omitempty"`

	// MonotonicStartTime is StartTime with a monotonic clock reading, which steps of the wall clock
	// do not change. It is not stored.
	MonotonicStartTime time.Time `json:"-"`
}

// A ContainerRecord is the part of a Record about one container.
type ContainerRecord struct {
	Attempt  uint32     `json:"attempt,omitempty"`
	Skipped  uint32     `json:"skipped,omitempty"` // Attempt minus plan.ContainerHistory.Restarts; if Skipped is lost, restart counts are too high by this number
	LastExit *plan.Exit `json:"lastExit,omitempty"`
	// RestartRequestedID and PostStart are the fields of plan.ContainerHistory.
	RestartRequestedID string              `json:"restartID,omitempty"`
	PostStart          plan.PostStartState `json:"postStart,omitzero"`
}

// A ClockReading contains the values of the host's clocks at one moment. Package clock reads them.
type ClockReading struct {
	// Now is the wall clock, with a monotonic clock reading.
	Now time.Time
	// BootID is the random ID of the current boot of the host; "" if it cannot be read.
	BootID string
	// SinceBoot is the time since the boot, including the time during which the host was suspended
	// (CLOCK_BOOTTIME). It is 0 if BootID is "".
	SinceBoot time.Duration
}

// RecordClock contains the times of a record on the clock that counts from the boot of the host.
// The times in the record itself are wall clock times, for users and for versions of podd without
// this field. The wall clock may be set at any moment.
//
// If the host was not booted since the record was written, the time since a moment is exact.
// Otherwise it is the sum of two durations: from the moment to the last write of the record, and
// from the current boot to now. The time from the last write to the current boot is not counted,
// because only the wall clock measures it, and the wall clock may be wrong. So after a boot, a
// deadline or a grace period may end too late, but never too early.
type RecordClock struct {
	BootID string `json:"boot"`
	// SinceBoot is the time since the boot at which the record was written.
	SinceBoot time.Duration `json:"up"`
	// Moments contains the duration from the boot to each time in the record, by the name of
	// the field. The duration is negative if the time was before the boot.
	Moments map[string]time.Duration `json:"moments,omitempty"`
}

// isDurable reports whether r must survive a power cut. Without its record, a finished pod would
// run again. Ephemeral containers that a user has added would be lost, although the request has
// succeeded. Write.Durable is also true for a record that replaces a durable record, because the
// file may otherwise be empty after a power cut on some file systems (XFS).
func (r *Record) isDurable() bool { return r.Finished != nil || len(r.Ephemeral) > 0 }

// WithClock returns r with Clock set, for a write at now.
func (r Record) WithClock(now ClockReading) Record {
	r.Clock = nil
	if now.BootID == "" {
		return r
	}
	moments := map[string]time.Duration{}
	r.replaceTimes(func(field string, t time.Time) time.Time {
		moments[field] = now.SinceBoot - now.Now.Sub(t)
		return t
	})
	r.Clock = &RecordClock{BootID: now.BootID, SinceBoot: now.SinceBoot, Moments: moments}
	return r
}

// WithMonotonicTimes returns r with a monotonic clock reading in each time, so that later steps of
// the wall clock do not change the times. now is the reading of the clocks at which r was read.
func (r Record) WithMonotonicTimes(now ClockReading) Record {
	r.MonotonicStartTime = r.StartTime
	r.replaceTimes(func(field string, t time.Time) time.Time {
		return now.Now.Add(-max(r.Clock.since(field, t, now), 0))
	})
	return r
}

// since returns the duration from t to now. field is the name of the field that contains t. k may
// be nil. If k does not contain the field, as in the records of older versions of podd, since uses
// the wall clock.
func (k *RecordClock) since(field string, t time.Time, now ClockReading) time.Duration {
	if k != nil && now.BootID != "" {
		if moment, ok := k.Moments[field]; ok && k.BootID == now.BootID {
			return now.SinceBoot - moment
		} else if ok {
			return max(k.SinceBoot-moment, 0) + now.SinceBoot
		}
	}
	return now.Now.Sub(t)
}

// replaceTimes replaces each time in r by the result of f. Values that r may share with other
// records are copied first.
func (r *Record) replaceTimes(f func(field string, t time.Time) time.Time) {
	replace := func(field string, t *time.Time) {
		if !t.IsZero() {
			*t = f(field, *t)
		}
	}
	replace("startTime", &r.MonotonicStartTime)
	if r.Finished != nil {
		fin := *r.Finished
		replace("finished", &fin.At)
		r.Finished = &fin
	}
	if r.Stopping != nil {
		termination := *r.Stopping
		replace("stopping", &termination.Since)
		r.Stopping = &termination
	}
	r.Terminations = maps.Clone(r.Terminations)
	for id, e := range r.Terminations {
		replace("ending/"+id, &e.Since)
		r.Terminations[id] = e
	}
}

// WithoutMessages returns r without the termination messages of its containers, for a record that
// would be too large. The worker that reads the record reads the messages again if they still
// exist.
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
