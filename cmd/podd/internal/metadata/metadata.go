package metadata

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Clouds contains the names of the supported clouds.
var Clouds = []string{"ec2", "gce", "openstack"}

// A Machine is the metadata of an instance.
type Machine struct {
	Name       string `json:"name"`       // name of the node, in lower case
	ProviderID string `json:"providerID"` // in the format of the cloud's controller
	Zone       string `json:"zone"`
	Region     string `json:"region,omitempty"` // "" if unknown
	Type       string `json:"type,omitempty"`   // instance type; "" if unknown
}

// Labels returns the labels of the node.
func (m Machine) Labels() map[string]string {
	labels := map[string]string{}
	for name, value := range map[string]string{
		v1.LabelTopologyZone: m.Zone, v1.LabelTopologyRegion: m.Region, v1.LabelInstanceTypeStable: m.Type,
	} {
		if value != "" {
			labels[name] = value
		}
	}
	return labels
}

// Fetch requests the metadata of this instance from the service of a cloud, which must be
// one of Clouds. base is the URL of the service; "" is the default.
func Fetch(ctx context.Context, cloud, base string) (Machine, error) {
	c := newClient(base)
	defer c.close()
	var m Machine
	var err error
	switch cloud {
	case "ec2":
		m, err = c.ec2(ctx)
	case "gce":
		m, err = c.gce(ctx)
	case "openstack":
		m, err = c.openstack(ctx)
	default:
		err = fmt.Errorf("unsupported cloud; want %s", strings.Join(Clouds, ", "))
	}
	if err == nil {
		m.Name = strings.ToLower(m.Name)
		err = m.Check()
	}
	if err != nil {
		return Machine{}, fmt.Errorf("reading the metadata service of cloud %s: %w", cloud, err)
	}
	return m, nil
}

// providerID matches the provider IDs of all clouds.
var providerID = regexp.MustCompile(`^(aws|gce|openstack)://[A-Za-z0-9._:-]*/[A-Za-z0-9._-]*/?[A-Za-z0-9._-]+$`)

// Check returns an error if a name, ID or label is invalid.
func (m Machine) Check() error {
	if why := validation.IsDNS1123Subdomain(m.Name); why != nil {
		return fmt.Errorf("invalid instance name %.80q: %s", m.Name, why[0])
	}
	if len(m.ProviderID) > 256 || !providerID.MatchString(m.ProviderID) {
		return fmt.Errorf("invalid provider ID %.120q", m.ProviderID)
	}
	if m.Zone == "" {
		return errors.New("the zone is missing")
	}
	for name, value := range m.Labels() {
		if why := validation.IsValidLabelValue(value); why != nil {
			return fmt.Errorf("invalid value %.80q of label %s: %s", value, name, why[0])
		}
	}
	return nil
}
