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

// Options say where. Root and Log are required.
type Options struct {
	Root string // directory, absolute
	Node string // name, which a kubelet would know its volumes by
	Log  *slog.Logger
	// Called is told of every call of a driver, and must not block; nil: nobody is.
	Called func(driver, method, code string, took time.Duration)
	// Failed is told of volumes in use that are not as they should be any more, in
	// the kubelet's words; nil: nobody is. It must not block.
	Failed func(Volume, error)
	// CallTime is how long a driver may take for a call; zero: two minutes, as the
	// kubelet has it.
	CallTime time.Duration
	// Republish is how often volumes are published again whose drivers want that;
	// zero: a minute and a half.
	Republish time.Duration
}

// Driver is one that registered. Immutable.
type Driver struct {
	Name, Endpoint string
	// NodeID is the driver's name of this machine.
	NodeID   string
	Topology map[string]string
	// MaxVolumes is how many it can have here; 0: any number.
	MaxVolumes int64
}

// Use is a PersistentVolume that its driver has, or may have, on this machine.
type Use struct{ Driver, Handle string }

// Drivers are those of this machine. Methods may be called concurrently; Publish
// and Unpublish must not overlap for one pod.
type Drivers struct {
	o    Options
	boot string // of the machine: its ID

	wake chan struct{} // has an element when Run has to look

	mu      sync.Mutex // guards all following fields
	drivers map[string]*registration
	turns   map[Use]*turn
	uses    map[Use]bool
	grown   map[Use]Growth
	failing map[Use]Growth       // those that are to grow and do not
	wanted  map[string]wish      // volumes that are published, by target
	silent  map[string]time.Time // drivers that told no stats, until when they are not asked
	// unmeasured are volumes that drivers told no stats of, by target.
	unmeasured map[string]bool
	// unreadable are the directories whose trouble was told; there are few, or root made them.
	unreadable map[string]bool
	// closed with the next change of what they are named for
	driversChanged, usesChanged, grownChanged chan struct{}
}

// New finds what is staged, and published.
func New(o Options) (*Drivers, error) {
	o.CallTime, o.Republish = cmp.Or(o.CallTime, 2*time.Minute), cmp.Or(o.Republish, 90*time.Second)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("looking which start of the machine this is: %w", err)
	}
	d := &Drivers{
		o: o, boot: strings.TrimSpace(string(boot)), wake: make(chan struct{}, 1),
		drivers: map[string]*registration{}, turns: map[Use]*turn{}, uses: map[Use]bool{}, grown: map[Use]Growth{}, failing: map[Use]Growth{}, wanted: map[string]wish{}, silent: map[string]time.Time{}, unmeasured: map[string]bool{}, unreadable: map[string]bool{},
		driversChanged: make(chan struct{}), usesChanged: make(chan struct{}), grownChanged: make(chan struct{}),
	}
	if err := d.find(); err != nil {
		return nil, fmt.Errorf("looking for volumes of CSI drivers: %w", err)
	}
	d.look()
	return d, nil
}

// find notes what is here of volumes, by what is on disk.
func (d *Drivers) find() error {
	by, err := d.used()
	if err != nil {
		return err
	}
	for u, name := range by.staged {
		d.uses[u] = true
		if err := d.restore(u, name); err != nil { // its pods say it for now
			d.o.Log.Error("what is known of a volume of a CSI driver is lost, and cannot be written anew", "err", err)
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

// Registered are the drivers that are there, by name, and what is closed with the
// next change.
func (d *Drivers) Registered() ([]Driver, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Driver, 0, len(d.drivers))
	for _, name := range slices.Sorted(maps.Keys(d.drivers)) {
		all = append(all, d.drivers[name].Driver)
	}
	return all, d.driversChanged
}

// InUse are the volumes that the cluster must not give to another machine, and what
// is closed with the next change.
func (d *Drivers) InUse() ([]Use, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Keys(d.uses), compareUses), d.usesChanged
}

func compareUses(a, b Use) int {
	return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Handle, b.Handle))
}

// setUse notes that a volume is in use, or no more, and gives what was noted before.
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
	renew(&d.usesChanged)
	return was
}

// renew tells that something has changed.
func renew(changed *chan struct{}) {
	close(*changed)
	*changed = make(chan struct{})
}

// look has Run look.
func (d *Drivers) look() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// turn is the right to have something done with one volume.
type turn struct {
	free    chan struct{} // has an element when nobody has it
	waiting int           // for it, and who has it; guarded by Drivers.mu
}

// take waits for the turn at a volume; end gives it back.
func (d *Drivers) take(ctx context.Context, u Use) (end func(), err error) {
	d.mu.Lock()
	t := d.turns[u]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		d.turns[u] = t
	}
	t.waiting++
	d.mu.Unlock()
	leave := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(d.turns, u)
		}
	}
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("waiting until driver %s has done something else with the volume: %w", u.Driver, context.Cause(ctx))
	}
}
