package device

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime/atomicfile"
)

// KubeletFile is the name of the file in which a kubelet records devices. It is in the directory of
// the sockets of device plugins.
const KubeletFile = "kubelet_internal_checkpoint"

// Limits for reading a kubelet's file, because the pods of device plugins may write to the file.
const (
	maxKubeletFileBytes = 16 << 20
	maxKubeletResources = 64
)

// ImportKubelet adds the resources in a kubelet's file to those that plugins have served. It does
// nothing if the Manager's own file exists. Without ImportKubelet, podd does not know the resources of
// a kubelet that it replaces until the plugins register. ImportKubelet returns an error if the file
// cannot be read, and fs.ErrNotExist if it does not exist. In both cases it adds no resources.
func (m *Manager) ImportKubelet(file string) error {
	if !m.isNew {
		return nil
	}
	data, err := atomicfile.Read(file, maxKubeletFileBytes)
	if err != nil {
		return fmt.Errorf("reading the devices of a kubelet: %w", err)
	}
	var c struct {
		Data struct{ RegisteredDevices map[string][]string }
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("reading the devices of a kubelet: %s: invalid JSON: %w", file, err)
	}
	if n := len(c.Data.RegisteredDevices); n > maxKubeletResources {
		return fmt.Errorf("reading the devices of a kubelet: %s contains %d resources (limit %d)", file, n, maxKubeletResources)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range c.Data.RegisteredDevices {
		if manifest.IsExtendedResource(v1.ResourceName(name)) {
			m.recordLocked(name)
		}
	}
	return nil
}
