package csi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"podd/reconcile/plugins"
)

// Bounds on what a driver says of itself.
const (
	longestDriver = 63
	longestNodeID = 256
	mostSegments  = 64
	longestText   = 512
)

// A driver that is not ready yet is asked again for as long as registerTime, after
// a wait that doubles.
const (
	registerTime = time.Minute
	firstAsk     = 250 * time.Millisecond
	lastAsk      = 5 * time.Second
)

// registration is a driver while it is registered.
type registration struct {
	Driver
	version *version.Version
	drivers *Drivers
	end     sync.Once
	gone    chan struct{}
}

var _ plugins.Kind = (*Drivers)(nil)

// Register implements plugins.Kind. It returns when the driver has told about this
// machine, for until then none of its volumes can come here.
func (d *Drivers) Register(ctx context.Context, p plugins.Plugin) (plugins.Registration, error) {
	if err := checkDriver(p.Name); err != nil {
		return nil, err
	}
	newest, err := newestVersion(p.Versions)
	if err != nil {
		return nil, err
	}
	r := &registration{Driver: Driver{Name: p.Name, Endpoint: p.Endpoint}, version: newest, drivers: d, gone: make(chan struct{})}
	if err := d.mayTake(r); err != nil {
		return nil, err
	}
	if err := d.askInfo(ctx, &r.Driver); err != nil {
		return nil, err
	}
	if err := d.put(r); err != nil {
		return nil, err
	}
	d.o.Log.Info("a CSI driver is registered", "driver", r.Name, "endpoint", r.Endpoint, "nodeID", r.NodeID)
	return r, nil
}

// checkDriver guards every path: a driver's name is in some, beside DevicesDir.
func checkDriver(name string) error {
	if name == DevicesDir || len(name) > longestDriver || len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0 {
		return fmt.Errorf("%q is no name of a CSI driver: letters, digits, '-' and '.', at most %d, and not %s", name, longestDriver, DevicesDir)
	}
	return nil
}

// newestVersion is the highest that podd speaks too, which is any 1.x.
func newestVersion(all []string) (*version.Version, error) {
	var newest *version.Version
	for _, text := range all {
		v, err := version.ParseGeneric(text)
		if err == nil && v.Major() == 1 && (newest == nil || newest.LessThan(v)) {
			newest = v
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("it speaks CSI %q; podd speaks 1.x", all)
	}
	return newest, nil
}

func (d *Drivers) mayTake(r *registration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mayTakeLocked(r)
}

func (d *Drivers) mayTakeLocked(r *registration) error {
	if have := d.drivers[r.Name]; have != nil && !have.version.LessThan(r.version) {
		return fmt.Errorf("another driver %s is registered, at %s, with version %s; remove one of the two", r.Name, have.Endpoint, have.version)
	}
	return nil
}

func (d *Drivers) put(r *registration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.mayTakeLocked(r); err != nil {
		return err
	}
	if before := d.drivers[r.Name]; before != nil {
		before.end.Do(func() { close(before.gone) })
	}
	d.drivers[r.Name] = r
	renew(&d.driversChanged)
	d.look()
	return nil
}

// askInfo asks a driver about this machine until it knows.
func (d *Drivers) askInfo(ctx context.Context, of *Driver) error {
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	for wait := firstAsk; ; wait = min(2*wait, lastAsk) {
		err := d.askOnce(ctx, of)
		failed, known := errors.AsType[*Error](err)
		if err == nil || !known || !failed.Uncertain || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

func (d *Drivers) askOnce(ctx context.Context, of *Driver) error {
	s, err := d.connect(*of)
	if err != nil {
		return err
	}
	defer s.close()
	return s.call(ctx, func(ctx context.Context) error {
		info, err := s.node.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		if err != nil {
			return err
		}
		of.NodeID, of.MaxVolumes, of.Topology = info.GetNodeId(), max(info.GetMaxVolumesPerNode(), 0), info.GetAccessibleTopology().GetSegments()
		return nil
	}, func() error { return checkInfo(of) })
}

func checkInfo(of *Driver) error {
	switch {
	case of.NodeID == "" || len(of.NodeID) > longestNodeID:
		return fmt.Errorf("the node ID that driver %s gives has %d characters; it must have 1 to %d", of.Name, len(of.NodeID), longestNodeID)
	case len(of.Topology) > mostSegments:
		return fmt.Errorf("driver %s names %d topology segments; podd takes %d", of.Name, len(of.Topology), mostSegments)
	}
	for key, value := range of.Topology {
		if len(key) > longestText || len(value) > longestText {
			return fmt.Errorf("driver %s names a topology segment of more than %d characters", of.Name, longestText)
		}
	}
	return nil
}

// Gone implements plugins.Registration.
func (r *registration) Gone() <-chan struct{} { return r.gone }

// Displaced implements plugins.Registration: nothing else makes a driver go.
func (r *registration) Displaced() bool { return true }

// End implements plugins.Registration.
func (r *registration) End() {
	d := r.drivers
	d.mu.Lock()
	defer d.mu.Unlock()
	r.end.Do(func() { close(r.gone) })
	if d.drivers[r.Name] == r {
		delete(d.drivers, r.Name)
		renew(&d.driversChanged)
		d.o.Log.Info("a CSI driver is gone; volumes stay as they are until it is back", "driver", r.Name)
	}
}
