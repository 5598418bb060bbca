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

// Limits of the data that a driver returns from NodeGetInfo.
const (
	maxDriverName     = 63
	maxNodeID         = 256
	maxSegments       = 64
	maxTopologyLength = 512
)

// NodeGetInfo is retried for registerTimeout if the driver is not ready. The delay doubles after
// each attempt.
const (
	registerTimeout = time.Minute
	firstInfoDelay  = 250 * time.Millisecond
	maxInfoDelay    = 5 * time.Second
)

// A registration is the registration of a driver. Only MaxVolumes may change after addRegistration;
// Drivers.mu guards it.
type registration struct {
	Driver
	version *version.Version
	drivers *Drivers
	endOnce sync.Once
	done    chan struct{}
}

var _ plugins.Handler = (*Drivers)(nil)

// Register implements plugins.Handler. It returns after NodeGetInfo has succeeded, because the
// scheduler needs the result to assign pods with volumes of the driver to this node.
func (d *Drivers) Register(ctx context.Context, p plugins.Plugin) (plugins.Registration, error) {
	if err := checkDriver(p.Name); err != nil {
		return nil, err
	}
	highestVersion, err := newestVersion(p.Versions)
	if err != nil {
		return nil, err
	}
	r := &registration{Driver: Driver{Name: p.Name, Endpoint: p.Endpoint}, version: highestVersion, drivers: d, done: make(chan struct{})}
	if err := d.checkVersion(r); err != nil {
		return nil, err
	}
	if err := d.getInfo(ctx, &r.Driver); err != nil {
		return nil, err
	}
	if err := d.addRegistration(r); err != nil {
		return nil, err
	}
	d.o.Log.Info("CSI driver registered", "driver", r.Name, "endpoint", r.Endpoint, "nodeID", r.NodeID)
	return r, nil
}

// checkDriver returns an error if the name of a driver is invalid. Paths contain the name, so it
// must differ from DevicesDir.
func checkDriver(name string) error {
	if name == DevicesDir || len(name) > maxDriverName || len(validation.IsDNS1123Subdomain(strings.ToLower(name))) > 0 {
		return fmt.Errorf("%q is not a valid name of a CSI driver; the name may have at most %[2]d letters, digits, '-' and '.', and must not be %[3]s", name, maxDriverName, DevicesDir)
	}
	return nil
}

// newestVersion returns the highest of the given versions that podd supports. podd supports CSI
// 1.x.
func newestVersion(versions []string) (*version.Version, error) {
	var highest *version.Version
	for _, text := range versions {
		v, err := version.ParseGeneric(text)
		if err == nil && v.Major() == 1 && (highest == nil || highest.LessThan(v)) {
			highest = v
		}
	}
	if highest == nil {
		return nil, fmt.Errorf("the driver supports the CSI versions %q; podd supports 1.x", versions)
	}
	return highest, nil
}

// checkVersion returns an error if a driver with the name of r is already registered with the
// version of r or a newer one.
func (d *Drivers) checkVersion(r *registration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.checkVersionLocked(r)
}

func (d *Drivers) checkVersionLocked(r *registration) error {
	if registered := d.drivers[r.Name]; registered != nil && !registered.version.LessThan(r.version) {
		return fmt.Errorf("another driver %s is registered, at %s, with version %s; remove one of the two drivers", r.Name, registered.Endpoint, registered.version)
	}
	return nil
}

// addRegistration registers r. If a driver with the same name and an older version is registered, r
// displaces that driver.
func (d *Drivers) addRegistration(r *registration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkVersionLocked(r); err != nil {
		return err
	}
	if olderDriver := d.drivers[r.Name]; olderDriver != nil {
		olderDriver.endOnce.Do(func() { close(olderDriver.done) })
	}
	d.drivers[r.Name] = r
	signalChange(&d.driversChanged)
	d.wakeRun()
	return nil
}

// getInfo calls NodeGetInfo until the driver is ready, for at most registerTimeout, and stores the
// result in driver.
func (d *Drivers) getInfo(ctx context.Context, driver *Driver) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	for delay := firstInfoDelay; ; delay = min(2*delay, maxInfoDelay) {
		err := d.getInfoOnce(ctx, driver)
		e, ok := errors.AsType[*callError](err)
		if err == nil || !ok || !e.IsUncertain || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(delay):
		}
	}
}

func (d *Drivers) getInfoOnce(ctx context.Context, driver *Driver) error {
	s, err := d.connect(*driver)
	if err != nil {
		return err
	}
	defer s.close()
	return s.call(ctx, func(ctx context.Context) error {
		info, err := s.nodeClient.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		if err != nil {
			return err
		}
		driver.NodeID, driver.MaxVolumes, driver.Topology = info.GetNodeId(), max(info.GetMaxVolumesPerNode(), 0), info.GetAccessibleTopology().GetSegments()
		return nil
	}, func() error { return checkInfo(driver) })
}

func checkInfo(driver *Driver) error {
	switch {
	case driver.NodeID == "" || len(driver.NodeID) > maxNodeID:
		return fmt.Errorf("the node ID of driver %s has %d characters; it must have 1 to %d", driver.Name, len(driver.NodeID), maxNodeID)
	case len(driver.Topology) > maxSegments:
		return fmt.Errorf("driver %s has %d topology segments, more than %d", driver.Name, len(driver.Topology), maxSegments)
	}
	for key, value := range driver.Topology {
		if len(key) > maxTopologyLength || len(value) > maxTopologyLength {
			return fmt.Errorf("driver %s has a topology segment of more than %d characters", driver.Name, maxTopologyLength)
		}
	}
	return nil
}

// Done implements plugins.Registration.
func (r *registration) Done() <-chan struct{} { return r.done }

// Displaced implements plugins.Registration. It always returns true, because the channel of Done is
// closed only if another driver displaces this driver, or by Unregister.
func (r *registration) Displaced() bool { return true }

// Unregister implements plugins.Registration.
func (r *registration) Unregister() {
	d := r.drivers
	d.mu.Lock()
	defer d.mu.Unlock()
	r.endOnce.Do(func() { close(r.done) })
	if d.drivers[r.Name] == r {
		delete(d.drivers, r.Name)
		signalChange(&d.driversChanged)
		d.o.Log.Info("CSI driver unregistered; its volumes stay unchanged until the driver registers again", "driver", r.Name)
	}
}
