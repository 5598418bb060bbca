package csi

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plugins"
)

// Stats are what a driver says that a volume holds.
type Stats struct {
	Bytes, Inodes Amount
	// Condition is how the volume is; nil: the driver does not tell.
	Condition *Condition
}

// Amount is of a whole volume; zero where the driver does not say.
type Amount struct{ Total, Used, Available uint64 }

// Condition is what a driver knows of a volume that is not as it should be.
type Condition struct {
	Abnormal bool
	Message  string
}

// statsTime is how long a driver may take to tell; one that did not is not asked
// again for statsPause.
const (
	statsTime  = 5 * time.Second
	statsPause = time.Minute
)

// statsCalls bounds how many volumes of a pod are asked after at once.
const statsCalls = 8

// Stats asks the drivers of a pod's volumes, by the volume's name in the pod. A
// volume that its driver says nothing of is left out; nobody waits for another's.
func (d *Drivers) Stats(ctx context.Context, pod types.UID) (map[string]Stats, error) {
	if !manifest.SafeUID(pod) {
		return nil, fmt.Errorf("pod uid %q cannot be a directory name", pod)
	}
	places := d.placesOf(pod)
	told := make([]struct {
		name string
		*Stats
	}, len(places))
	var calls errgroup.Group
	calls.SetLimit(statsCalls)
	for i, p := range places {
		calls.Go(func() error {
			told[i].name, told[i].Stats = d.statsAt(ctx, p)
			return nil
		})
	}
	_ = calls.Wait() // none is one's error
	all := map[string]Stats{}
	for _, t := range told {
		if t.Stats != nil {
			all[t.name] = *t.Stats
		}
	}
	return all, nil
}

// statsAt is nil where nobody tells any.
func (d *Drivers) statsAt(ctx context.Context, p place) (name string, stats *Stats) {
	f, err := load(p.data)
	if err != nil || f[p.name] == "" || !d.stands(f[p.state], p.target) || d.isSilent(f[keyDriver]) {
		return "", nil
	}
	s, err := d.reach(f[keyDriver])
	if err != nil {
		return "", nil
	}
	defer s.close()
	limited, cancel := context.WithTimeout(ctx, statsTime)
	defer cancel()
	stats, err = s.stats(limited, f[keyHandle], p.target)
	switch {
	case err == nil:
		d.setUnmeasured(p.target, false)
		return f[p.name], stats
	case ctx.Err() != nil:
	case limited.Err() != nil:
		d.setSilent(f[keyDriver])
	case d.setUnmeasured(p.target, true):
		d.o.Log.Warn("a CSI driver does not tell what a volume holds", "driver", f[keyDriver], "volume", f[keyHandle], "path", p.target, "err", err)
	}
	return "", nil
}

// stats is nil where the driver has none.
func (s *session) stats(ctx context.Context, handle, path string) (*Stats, error) {
	can, err := s.able(ctx)
	if err != nil || !can.stats() {
		return nil, err
	}
	var out Stats
	err = s.call(ctx, func(ctx context.Context) error {
		r, err := s.node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: handle, VolumePath: path})
		if err != nil {
			return err
		}
		for _, u := range r.GetUsage() {
			switch a := amountOf(u); u.GetUnit() {
			case csi.VolumeUsage_BYTES:
				out.Bytes = a
			case csi.VolumeUsage_INODES:
				out.Inodes = a
			}
		}
		if c := r.GetVolumeCondition(); c != nil && can.condition() {
			out.Condition = &Condition{c.GetAbnormal(), plugins.Bounded(c.GetMessage())}
		}
		return nil
	})
	return &out, err
}

// amountOf makes nothing of what is less than nothing.
func amountOf(u *csi.VolumeUsage) Amount {
	at := func(n int64) uint64 { return uint64(max(n, 0)) }
	return Amount{at(u.GetTotal()), at(u.GetUsed()), at(u.GetAvailable())}
}

func (d *Drivers) isSilent(driver string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.silent[driver])
}

func (d *Drivers) setSilent(driver string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.silent[driver]) {
		return // another volume's call was first
	}
	d.silent[driver] = time.Now().Add(statsPause)
	d.o.Log.Warn("a CSI driver did not tell what its volumes hold; it is asked again later", "driver", driver, "within", statsTime, "next", statsPause)
}

// setUnmeasured notes that a driver told nothing of a published volume, or did, and
// gives whether that is new.
func (d *Drivers) setUnmeasured(target string, is bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.unmeasured[target]
	if is {
		d.unmeasured[target] = true
	} else {
		delete(d.unmeasured, target)
	}
	return was != is
}
