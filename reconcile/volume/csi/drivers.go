package csi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"podd/manifest/order"
	"podd/runtime/bootid"
)

// Options are the options of Drivers. Root and Log are required.
type Options struct {
	Root     string // absolute path of the root directory
	NodeName string // name of the node, for the data files of volumes
	Log      *slog.Logger
	// OnCall is called after every call to a driver. It must not block. It may be nil.
	OnCall func(driver, method, code string, took time.Duration)
	// OnUpdateFailed is called if updating a volume in use has failed. The error is a *StepError.
	// OnUpdateFailed must not block. It may be nil.
	OnUpdateFailed func(Volume, error)
	// CallTimeout is the timeout of a call to a driver; 0 means two minutes, as in the
	// kubelet.
	CallTimeout time.Duration
	// RepublishInterval is the interval between NodePublishVolume calls for a volume in use, if its
	// driver requires republishing; 0 means 90 seconds.
	RepublishInterval time.Duration
}

// A Driver is a registered driver. It is immutable.
type Driver struct {
	Name, Endpoint string
	// NodeID is the ID of this node that the driver reported.
	NodeID   string
	Topology map[string]string
	// MaxVolumes is the maximum number of volumes on this node; 0 means no limit.
	MaxVolumes int64
}

// A VolumeID identifies a volume by the name of its driver and the handle, which is the driver's
// name for the volume.
type VolumeID struct{ Driver, Handle string }

// Drivers manages the drivers of this node and their volumes. Its methods may be called
// concurrently, except that Publish and Unpublish must not overlap for the same pod.
type Drivers struct {
	o      Options
	bootID string // ID of the current boot of the host

	wake chan struct{} // capacity 1: contains a value if Run must check for tasks

	mu               sync.Mutex // guards all following fields
	drivers          map[string]*registration
	locks            map[VolumeID]*volumeLock
	inUse            map[VolumeID]bool          // volumes that are, or may be, staged or published
	expanded         map[VolumeID]Expansion     // volumes with a successful last expansion
	failedExpansions map[VolumeID]Expansion     // volumes with a failed last expansion
	published        map[string]publishedVolume // by target path
	pausedUntil      map[string]time.Time       // time until which podd requests no statistics, by driver name
	// withoutStats contains the target paths of published volumes without statistics.
	withoutStats map[string]bool
	// unreadable contains the directories for which an unreadable data file was logged. Only root
	// can create these directories, so the map stays small.
	unreadable map[string]bool
	// driversChanged is closed at the next change of drivers, and inUseChanged at the next change
	// of inUse. expansionsChanged is closed at the next change of expanded or failedExpansions.
	driversChanged, inUseChanged, expansionsChanged chan struct{}
}

// New returns a Drivers without registered drivers. It reads the staged and published volumes from
// the data files on disk.
func New(o Options) (*Drivers, error) {
	o.CallTimeout, o.RepublishInterval = cmp.Or(o.CallTimeout, 2*time.Minute), cmp.Or(o.RepublishInterval, 90*time.Second)
	boot, err := bootid.Get()
	if err != nil {
		return nil, err
	}
	d := &Drivers{
		o: o, bootID: boot, wake: make(chan struct{}, 1),
		drivers: map[string]*registration{}, locks: map[VolumeID]*volumeLock{}, inUse: map[VolumeID]bool{}, expanded: map[VolumeID]Expansion{}, failedExpansions: map[VolumeID]Expansion{}, published: map[string]publishedVolume{}, pausedUntil: map[string]time.Time{}, withoutStats: map[string]bool{}, unreadable: map[string]bool{},
		driversChanged: make(chan struct{}), inUseChanged: make(chan struct{}), expansionsChanged: make(chan struct{}),
	}
	if err := d.loadState(); err != nil {
		return nil, fmt.Errorf("listing the volumes of CSI drivers: %w", err)
	}
	d.wakeRun()
	return d, nil
}

// loadState sets inUse and expanded according to the data files on disk.
func (d *Drivers) loadState() error {
	u, err := d.readUsage()
	if err != nil {
		return err
	}
	for id, use := range u.staged {
		d.inUse[id] = true
		if err := d.restoreStaged(id, use); err != nil { // continue without this data file, because the data file of the published volume also identifies the volume
			d.o.Log.Error("restoring the lost data file of a staged volume failed", "err", err)
		}
	}
	stagedVolumes, err := d.readStaged()
	for _, s := range stagedVolumes {
		if s.isAnnounced() {
			continue
		}
		d.inUse[s.VolumeID] = true
		if n := s.facts.capacity(); n > 0 {
			d.expanded[s.VolumeID] = Expansion{VolumeID: s.VolumeID, Volume: s.facts[keyPersistentVolume], Capacity: n}
		}
	}
	return err
}

// Registered returns the registered drivers, sorted by name, and a channel. The channel is closed
// when the registered drivers change.
func (d *Drivers) Registered() ([]Driver, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	drivers := make([]Driver, 0, len(d.drivers))
	for _, name := range slices.Sorted(maps.Keys(d.drivers)) {
		drivers = append(drivers, d.drivers[name].Driver)
	}
	return drivers, d.driversChanged
}

// VolumesInUse returns the volumes that the cluster must not detach from this node, and a channel.
// The channel is closed when these volumes change.
func (d *Drivers) VolumesInUse() ([]VolumeID, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := slices.Collect(maps.Keys(d.inUse))
	order.Slice(ids, compareVolumeIDs)
	return ids, d.inUseChanged
}

// compareVolumeIDs orders volumes by driver and handle.
func compareVolumeIDs(a, b VolumeID) int {
	return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Handle, b.Handle))
}

// setInUse records whether a volume is in use. wasInUse reports whether the volume was in use
// before.
func (d *Drivers) setInUse(id VolumeID, inUse bool) (wasInUse bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wasInUse = d.inUse[id]; wasInUse == inUse {
		return wasInUse
	}
	if inUse {
		d.inUse[id] = true
	} else {
		delete(d.inUse, id)
		delete(d.expanded, id)
		delete(d.failedExpansions, id)
	}
	signalChange(&d.inUseChanged)
	return wasInUse
}

// signalChange closes *changed and sets *changed to a new channel.
func signalChange(changed *chan struct{}) {
	close(*changed)
	*changed = make(chan struct{})
}

// wakeRun makes Run check for tasks.
func (d *Drivers) wakeRun() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// A volumeLock is the lock of a volume.
type volumeLock struct {
	free  chan struct{} // capacity 1: contains a value if the lock is free
	users int           // number of goroutines that wait for the lock or hold it; guarded by Drivers.mu
}

// lockVolume waits for the lock of a volume until ctx is done. If the volume is a block device,
// device is its data directory, otherwise "". lockVolume also waits for the lock of this directory.
// The directory is named after the PersistentVolume, so that volumes with different handles may use
// the same directory, one after the other. The caller must call unlock.
func (d *Drivers) lockVolume(ctx context.Context, id VolumeID, device string) (unlock func(), err error) {
	unlock, err = d.lock(ctx, id, id.Driver)
	if err != nil || device == "" {
		return unlock, err
	}
	unlockDevice, err := d.lock(ctx, VolumeID{Handle: device}, id.Driver)
	if err != nil {
		unlock()
		return nil, err
	}
	unlockVolume := unlock
	return func() { unlockDevice(); unlockVolume() }, nil
}

// lock waits until ctx is done for the lock with this key. driver is the name of the driver for the
// error. The caller must call unlock.
func (d *Drivers) lock(ctx context.Context, key VolumeID, driver string) (unlock func(), err error) {
	d.mu.Lock()
	t := d.locks[key]
	if t == nil {
		t = &volumeLock{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		d.locks[key] = t
	}
	t.users++
	d.mu.Unlock()
	release := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(d.locks, key)
		}
	}
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; release() }, nil
	case <-ctx.Done():
		release()
		return nil, fmt.Errorf("waiting for another operation of driver %s on the volume: %w", driver, context.Cause(ctx))
	}
}
