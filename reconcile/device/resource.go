package device

import (
	"maps"
	"slices"
	"time"
)

// The intervals after which the state of a resource without a plugin changes. They start when the
// last plugin disconnects, or when the Manager is opened.
const (
	// awaitPeriod is how long pods of a cluster wait for a plugin before they are rejected. A
	// kubelet rejects them at once, but plugins need a few seconds to register after a restart.
	awaitPeriod = 30 * time.Second
	// stopGracePeriod is how long the devices count as capacity. The kubelet uses the same duration
	// (endpointStopGracePeriod in pkg/kubelet/cm/devicemanager/types.go).
	stopGracePeriod = 5 * time.Minute
	// forgetPeriod is how long the Manager keeps the resource. It exceeds stopGracePeriod so
	// that a Node with capacity 0 can be written before the Manager removes the resource.
	forgetPeriod = 2 * stopGracePeriod
)

// A pluginResource is an extended resource that plugins serve, or have served.
type pluginResource struct {
	// plugins contains the registered plugins in the order of their registration. There are
	// several plugins while one of them is updated without downtime.
	plugins []*registeredPlugin
	// devices contains the devices in the newest list of the plugin in use. The devices are
	// kept when the last plugin disconnects.
	devices map[string]Device
	// changedAt is when a plugin was last registered or unregistered, or when the Manager was opened.
	changedAt time.Time
	// wasListed reports whether a plugin has listed devices since the Manager was opened. isRecorded
	// reports whether a plugin has listed devices since the resource was last forgotten, so that the
	// file must contain the resource.
	wasListed, isRecorded bool
}

// A registeredPlugin is a plugin with the devices in its newest list. devices is nil before the
// first list.
type registeredPlugin struct {
	Plugin
	devices map[string]Device
}

// activePlugin returns the plugin that allocates devices. This is the newest plugin that has listed
// its devices. If no plugin has listed devices, it is the newest plugin. activePlugin returns nil
// if no plugin is registered.
func (s *pluginResource) activePlugin() *registeredPlugin {
	if s == nil || len(s.plugins) == 0 {
		return nil
	}
	for _, p := range slices.Backward(s.plugins) {
		if p.devices != nil {
			return p
		}
	}
	return s.plugins[len(s.plugins)-1]
}

// isServed reports whether a registered plugin has listed devices.
func (s *pluginResource) isServed() bool {
	p := s.activePlugin()
	return p != nil && p.devices != nil
}

// isHealthy reports whether a registered plugin lists the device as healthy.
func (s *pluginResource) isHealthy(id string) bool { return s.isServed() && s.devices[id].Healthy }

// isAwaited reports whether a plugin is expected to list devices soon.
func (s *pluginResource) isAwaited(now time.Time) bool {
	return !s.isServed() && now.Sub(s.changedAt) < awaitPeriod
}

// countsDevices reports whether the devices are part of the capacity of the node.
func (s *pluginResource) countsDevices(now time.Time) bool {
	return len(s.plugins) > 0 || now.Sub(s.changedAt) < stopGracePeriod
}

// isExpired reports whether the resource has had no plugin for forgetPeriod, so that the Manager
// must remove it.
func (s *pluginResource) isExpired(now time.Time) bool {
	return len(s.plugins) == 0 && now.Sub(s.changedAt) >= forgetPeriod
}

// nextChange returns the duration until isAwaited, countsDevices or isExpired changes without
// another event; zero if none of them will change.
func (s *pluginResource) nextChange(now time.Time) time.Duration {
	periods := []time.Duration{awaitPeriod, stopGracePeriod, forgetPeriod}
	switch {
	case s.isServed():
		return 0
	case len(s.plugins) > 0:
		periods = periods[:1]
	}
	for _, period := range periods {
		if remaining := period - now.Sub(s.changedAt); remaining > 0 {
			return remaining
		}
	}
	return 0
}

// register adds a plugin. If the plugin is already registered, register removes its list of
// devices.
func (s *pluginResource) register(plugin Plugin, now time.Time) {
	s.remove(plugin)
	s.plugins = append(s.plugins, &registeredPlugin{Plugin: plugin})
	s.changedAt = now
}

// unregister removes a plugin, and reports whether it was registered.
func (s *pluginResource) unregister(plugin Plugin, now time.Time) bool {
	if !s.remove(plugin) {
		return false
	}
	s.changedAt = now
	s.updateDevices()
	return true
}

func (s *pluginResource) remove(plugin Plugin) bool {
	n := len(s.plugins)
	s.plugins = slices.DeleteFunc(s.plugins, func(p *registeredPlugin) bool { return p.Plugin == plugin })
	return len(s.plugins) < n
}

// setDevices sets the list of a plugin, and reports whether the result of Manager.Counts may have
// changed. It does nothing if the plugin is not registered.
func (s *pluginResource) setDevices(plugin Plugin, devices map[string]Device) bool {
	i := slices.IndexFunc(s.plugins, func(p *registeredPlugin) bool { return p.Plugin == plugin })
	if i < 0 {
		return false
	}
	wasServed, previousDevices := s.isServed(), s.devices
	s.plugins[i].devices, s.wasListed, s.isRecorded = devices, true, true
	s.updateDevices()
	return !wasServed || !maps.EqualFunc(previousDevices, s.devices, func(a, b Device) bool { return a.Healthy == b.Healthy })
}

// updateDevices sets s.devices to the list of the plugin in use. If there is no list, s.devices does
// not change.
func (s *pluginResource) updateDevices() {
	if p := s.activePlugin(); p != nil && p.devices != nil {
		s.devices = p.devices
	}
}
