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

// An Instance contains the metadata of a virtual machine in a cloud.
type Instance struct {
	Name       string `json:"name"`       // name of the node, in lower case
	ProviderID string `json:"providerID"` // spec.providerID, in the format of the cloud controller
	Zone       string `json:"zone"`
	Region     string `json:"region,omitempty"` // "" if unknown
	Type       string `json:"type,omitempty"`   // instance type; "" if unknown
}

// Labels returns the topology and instance type labels of the node. It omits unknown values.
func (i Instance) Labels() map[string]string {
	labels := map[string]string{}
	for name, value := range map[string]string{
		v1.LabelTopologyZone: i.Zone, v1.LabelTopologyRegion: i.Region, v1.LabelInstanceTypeStable: i.Type,
	} {
		if value != "" {
			labels[name] = value
		}
	}
	return labels
}

// Fetch requests the metadata of this instance from the metadata service of a cloud, which must be
// one of Clouds. base is the URL of the service; "" means the link-local address. Fetch validates
// the result with Validate.
func Fetch(ctx context.Context, cloud, base string) (Instance, error) {
	c := newClient(base)
	defer c.close()
	var m Instance
	var err error
	switch cloud {
	case "ec2":
		m, err = c.fetchEC2(ctx)
	case "gce":
		m, err = c.fetchGCE(ctx)
	case "openstack":
		m, err = c.fetchOpenStack(ctx)
	default:
		err = fmt.Errorf("unsupported cloud; must be one of %s", strings.Join(Clouds, ", "))
	}
	if err == nil {
		m.Name = strings.ToLower(m.Name)
		err = m.Validate()
	}
	if err != nil {
		return Instance{}, fmt.Errorf("reading the metadata service of cloud %s: %w", cloud, err)
	}
	return m, nil
}

// providerIDPattern matches the provider IDs of all Clouds.
var providerIDPattern = regexp.MustCompile(`^(aws|gce|openstack)://[A-Za-z0-9._:-]*/[A-Za-z0-9._-]*/?[A-Za-z0-9._-]+$`)

// Validate returns an error if the name or the provider ID is missing or invalid, the zone is missing,
// or a value is not valid as the value of a label.
func (i Instance) Validate() error {
	if reasons := validation.IsDNS1123Subdomain(i.Name); reasons != nil {
		return fmt.Errorf("invalid instance name %.80q: %s", i.Name, reasons[0])
	}
	if len(i.ProviderID) > 256 || !providerIDPattern.MatchString(i.ProviderID) {
		return fmt.Errorf("invalid provider ID %.120q", i.ProviderID)
	}
	if i.Zone == "" {
		return errors.New("the zone is missing")
	}
	for name, value := range i.Labels() {
		if reasons := validation.IsValidLabelValue(value); reasons != nil {
			return fmt.Errorf("invalid value %.80q of label %s: %s", value, name, reasons[0])
		}
	}
	return nil
}
