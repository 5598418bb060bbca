package render

import (
	"errors"
	"fmt"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// blockDevices returns the container's block volumes. The container has the permissions mrw, or
// r if the volume is read-only.
func blockDevices(in *ContainerInput) ([]*cri.Device, error) {
	var devices []*cri.Device
	for i := range in.Container.VolumeDevices {
		d := &in.Container.VolumeDevices[i]
		host := in.Volumes[d.Name]
		if host == "" {
			err := errors.New("the volume is not ready")
			return nil, fmt.Errorf("adding block device volume %q to container %q at %q: %w", d.Name, in.Container.Name, d.DevicePath, err)
		}
		permissions := "mrw"
		if isReadOnly(in, findVolume(in, d.Name)) {
			permissions = "r"
		}
		devices = append(devices, &cri.Device{HostPath: host, ContainerPath: d.DevicePath, Permissions: permissions})
	}
	return devices, nil
}
