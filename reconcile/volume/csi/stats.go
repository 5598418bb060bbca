package csi

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// Stats are the statistics of a volume from its driver.
type Stats struct {
	Bytes, Inodes Amount
	Driver        string
	Took          time.Duration // duration of the calls of the driver
}

// An Amount contains numbers of bytes or inodes. Fields that the driver does not report are 0.
type Amount struct{ Total, Used, Available uint64 }

// statsTimeout is the timeout of a driver's NodeGetVolumeStats. After a timeout the driver
// is not called again for statsPause.
const (
	statsTimeout = 5 * time.Second
	statsPause   = time.Minute
)

// maxStatsCalls is the maximum number of concurrent NodeGetVolumeStats calls for a pod.
const maxStatsCalls = 8

// Stats returns the statistics of a pod's volumes, by the name of the volume in the pod. The result
// omits volumes without statistics. Stats queries several volumes concurrently.
func (d *Drivers) Stats(ctx context.Context, pod types.UID) (map[string]Stats, error) {
	if !manifest.IsSafeUID(pod) {
		return nil, fmt.Errorf("pod uid %q cannot be a directory name", pod)
	}
	paths := d.podVolumePaths(pod)
	results := make([]struct {
		name string
		*Stats
	}, len(paths))
	var calls errgroup.Group
	calls.SetLimit(maxStatsCalls)
	for i, p := range paths {
		calls.Go(func() error {
			results[i].name, results[i].Stats = d.volumeStats(ctx, p)
			return nil
		})
	}
	_ = calls.Wait() // all functions return nil
	byName := map[string]Stats{}
	for _, r := range results {
		if r.Stats != nil {
			byName[r.name] = *r.Stats
		}
	}
	return byName, nil
}

// volumeStats returns the statistics of the volume with the paths p, and the name of the volume in
// the pod. stats is nil if there are no statistics.
func (d *Drivers) volumeStats(ctx context.Context, p volumePaths) (name string, stats *Stats) {
	f, err := readFacts(p.dataDir)
	if err != nil || f[p.nameKey] == "" || !d.isStateCurrent(f[p.stateKey], p.target) || d.isPaused(f[keyDriver]) {
		return "", nil
	}
	s, err := d.openSession(f[keyDriver])
	if err != nil {
		return "", nil
	}
	defer s.close()
	callCtx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	began := time.Now()
	stats, err = s.stats(callCtx, f[keyHandle], p.target)
	switch {
	case err == nil:
		d.setWithoutStats(p.target, false)
		if stats != nil {
			stats.Driver, stats.Took = f[keyDriver], time.Since(began)
		}
		return f[p.nameKey], stats
	case ctx.Err() != nil:
	case callCtx.Err() != nil:
		d.pauseStats(f[keyDriver])
	case d.setWithoutStats(p.target, true):
		d.o.Log.Warn("getting the statistics of a volume failed", "driver", f[keyDriver], "volume", f[keyHandle], "path", p.target, "err", err)
	}
	return "", nil
}

// stats calls NodeGetVolumeStats. It returns nil and no error if the driver does not support
// statistics.
func (s *session) stats(ctx context.Context, handle, path string) (*Stats, error) {
	caps, err := s.capabilities(ctx)
	if err != nil || !caps.supportsStats() {
		return nil, err
	}
	var stats Stats
	err = s.call(ctx, func(ctx context.Context) error {
		r, err := s.nodeClient.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: handle, VolumePath: path})
		if err != nil {
			return err
		}
		for _, u := range r.GetUsage() {
			switch a := toAmount(u); u.GetUnit() {
			case csi.VolumeUsage_BYTES:
				stats.Bytes = a
			case csi.VolumeUsage_INODES:
				stats.Inodes = a
			}
		}
		return nil
	})
	return &stats, err
}

// toAmount converts u. Negative values become 0.
func toAmount(u *csi.VolumeUsage) Amount {
	at := func(n int64) uint64 { return uint64(max(n, 0)) }
	return Amount{at(u.GetTotal()), at(u.GetUsed()), at(u.GetAvailable())}
}

func (d *Drivers) isPaused(driver string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.pausedUntil[driver])
}

func (d *Drivers) pauseStats(driver string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.pausedUntil[driver]) {
		return // already paused, because a call for another volume of this driver timed out
	}
	d.pausedUntil[driver] = time.Now().Add(statsPause)
	d.o.Log.Warn("getting the statistics of a CSI driver's volumes timed out; retrying later", "driver", driver, "within", statsTimeout, "next", statsPause)
}

// setWithoutStats records whether the statistics of a published volume are unavailable. changed
// reports whether the record has changed.
func (d *Drivers) setWithoutStats(target string, isUnmeasured bool) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wasUnmeasured := d.withoutStats[target]
	if isUnmeasured {
		d.withoutStats[target] = true
	} else {
		delete(d.withoutStats, target)
	}
	return wasUnmeasured != isUnmeasured
}
