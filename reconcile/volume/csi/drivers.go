package csi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are the options of Drivers. Root and Log are required.
type Options struct {
	Root string // absolute path of the root directory
	Node string // name of the node, for the data files of volumes
	Log  *slog.Logger
	// Called is called after every call to a driver. It must not block. It may be nil.
	Called func(driver, method, code string, took time.Duration)
	// Failed is called if a volume in use cannot be updated. Its error is a *StepError. Failed
	// must not block. It may be nil.
	Failed func(Volume, error)
	// CallTime is the timeout of a call to a driver; 0 means two minutes, as in the
	// kubelet.
	CallTime time.Duration
	// Republish is the interval between NodePublishVolume calls for a volume in use, if its
	// driver requires republishing; 0 means 90 seconds.
	Republish time.Duration
}

// A Driver is a registered driver. It is immutable.
type Driver struct {
	Name, Endpoint string
	// NodeID is the driver's ID of this node.
	NodeID   string
	Topology map[string]string
	// MaxVolumes is the maximum number of volumes on this node; 0 means no limit.
	MaxVolumes int64
}

// A Use identifies a volume for its driver. The volume is, or may be, in use on this node.
type Use struct{ Driver, Handle string }

// Drivers manages the drivers of this node and their volumes. Its methods may be called
// concurrently, except that Publish and Unpublish must not overlap for the same pod.
type Drivers struct {
	o    Options
	boot string // boot ID of the host

	wake chan struct{} // capacity 1: contains a value if Run must check for tasks

	mu        sync.Mutex // guards all following fields
	drivers   map[string]*registration
	locks     map[Use]*volumeLock
	uses      map[Use]bool
	grown     map[Use]Growth
	failing   map[Use]Growth             // volumes whose last expansion failed
	published map[string]publishedVolume // by target path
	silent    map[string]time.Time       // until when a driver is not queried for statistics, by driver name
	// unmeasured contains the target paths of published volumes without statistics.
	unmeasured map[string]bool
	// unreadable contains the directories whose unreadable data files were logged. Only root
	// can create these directories, so the map stays small.
	unreadable map[string]bool
	// Each channel is closed at the next change of drivers, of uses, or of grown and failing.
	driversChanged, usesChanged, grownChanged chan struct{}
}

// New returns Drivers without registered drivers. It reads the staged and published volumes from
// the data files on disk.
func New(o Options) (*Drivers, error) {
	o.CallTime, o.Republish = cmp.Or(o.CallTime, 2*time.Minute), cmp.Or(o.Republish, 90*time.Second)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("reading the boot ID of the host: %w", err)
	}
	d := &Drivers{
		o: o, boot: strings.TrimSpace(string(boot)), wake: make(chan struct{}, 1),
		drivers: map[string]*registration{}, locks: map[Use]*volumeLock{}, uses: map[Use]bool{}, grown: map[Use]Growth{}, failing: map[Use]Growth{}, published: map[string]publishedVolume{}, silent: map[string]time.Time{}, unmeasured: map[string]bool{}, unreadable: map[string]bool{},
		driversChanged: make(chan struct{}), usesChanged: make(chan struct{}), grownChanged: make(chan struct{}),
	}
	if err := d.loadState(); err != nil {
		return nil, fmt.Errorf("listing the volumes of CSI drivers: %w", err)
	}
	d.wakeRun()
	return d, nil
}

// loadState sets uses and grown according to the data files on disk.
func (d *Drivers) loadState() error {
	by, err := d.used()
	if err != nil {
		return err
	}
	for u, name := range by.staged {
		d.uses[u] = true
		if err := d.restoreStaged(u, name); err != nil { // the data file of the published volume still identifies the volume
			d.o.Log.Error("restoring the lost data file of a staged volume failed", "err", err)
		}
	}
	all, err := d.staged()
	for _, s := range all {
		if s.announced() {
			continue
		}
		d.uses[s.Use] = true
		if n := s.facts.capacity(); n > 0 {
			d.grown[s.Use] = Growth{Use: s.Use, Volume: s.facts[keyVolume], Capacity: n}
		}
	}
	return err
}

// Registered returns the registered drivers, sorted by name, and a channel that is closed at the
// next change of the registered drivers.
func (d *Drivers) Registered() ([]Driver, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Driver, 0, len(d.drivers))
	for _, name := range slices.Sorted(maps.Keys(d.drivers)) {
		all = append(all, d.drivers[name].Driver)
	}
	return all, d.driversChanged
}

// InUse returns the volumes that the cluster must not detach from this node, and a channel
// that is closed at the next change of these volumes.
func (d *Drivers) InUse() ([]Use, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Keys(d.uses), compareUses), d.usesChanged
}

// compareUses orders uses by driver and handle.
func compareUses(a, b Use) int {
	return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Handle, b.Handle))
}

// setUse records whether a volume is in use. was reports whether the volume was in use before.
func (d *Drivers) setUse(u Use, is bool) (was bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if was = d.uses[u]; was == is {
		return was
	}
	if is {
		d.uses[u] = true
	} else {
		delete(d.uses, u)
		delete(d.grown, u)
		delete(d.failing, u)
	}
	signalChange(&d.usesChanged)
	return was
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
	free    chan struct{} // capacity 1: has a value if the lock is free
	waiting int           // number of goroutines that wait for the lock or hold it; guarded by Drivers.mu
}

// lockVolume waits for the lock of a volume until ctx is done. If device, the data directory of
// a block device, is not "", lockVolume also waits for the lock of the directory: it belongs
// to a PersistentVolume, whose handle can change. The caller must call unlock.
func (d *Drivers) lockVolume(ctx context.Context, u Use, device string) (unlock func(), err error) {
	unlock, err = d.lock(ctx, u, u.Driver)
	if err != nil || device == "" {
		return unlock, err
	}
	unlockDevice, err := d.lock(ctx, Use{Handle: device}, u.Driver)
	if err != nil {
		unlock()
		return nil, err
	}
	unlockVolume := unlock
	return func() { unlockDevice(); unlockVolume() }, nil
}

// lock waits for the lock with a key until ctx is done. driver is for the error. The caller must
// call unlock.
func (d *Drivers) lock(ctx context.Context, u Use, driver string) (unlock func(), err error) {
	d.mu.Lock()
	t := d.locks[u]
	if t == nil {
		t = &volumeLock{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		d.locks[u] = t
	}
	t.waiting++
	d.mu.Unlock()
	release := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(d.locks, u)
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
