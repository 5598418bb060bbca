package metadata

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// openstack uses the name of the server. OpenStack has no region in its metadata.
func (c *client) openstack(ctx context.Context) (Machine, error) {
	var server struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
		Zone string `json:"availability_zone"`
	}
	if err := c.object(ctx, "/openstack/latest/meta_data.json", nil, &server); err != nil {
		return Machine{}, err
	}
	instanceType, err := c.line(ctx, ec2Root+"meta-data/instance-type", nil)
	if err != nil && !errors.Is(err, errNotFound) { // not every OpenStack has this path
		return Machine{}, err
	}
	return Machine{Name: server.Name, ProviderID: "openstack:///" + server.UUID, Zone: server.Zone, Type: instanceType}, nil
}

const ec2Root = "/latest/"

// ec2 uses the private DNS name of the instance, the first if there are several.
func (c *client) ec2(ctx context.Context) (Machine, error) {
	token, err := c.get(ctx, http.MethodPut, ec2Root+"api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
	if err != nil {
		return Machine{}, err
	}
	header := map[string]string{"X-aws-ec2-metadata-token": strings.TrimSpace(string(token))}
	var instance struct {
		ID     string `json:"instanceId"`
		Type   string `json:"instanceType"`
		Zone   string `json:"availabilityZone"`
		Region string `json:"region"`
	}
	if err := c.object(ctx, ec2Root+"dynamic/instance-identity/document", header, &instance); err != nil {
		return Machine{}, err
	}
	names, err := c.line(ctx, ec2Root+"meta-data/local-hostname", header)
	if err != nil {
		return Machine{}, err
	}
	name, _, _ := strings.Cut(names, " ")
	return Machine{Name: name, ProviderID: fmt.Sprintf("aws:///%s/%s", instance.Zone, instance.ID), Zone: instance.Zone, Region: instance.Region, Type: instance.Type}, nil
}

// gce uses the last elements of the values that are paths. The name of a zone is that of
// its region, a dash and a letter.
func (c *client) gce(ctx context.Context) (Machine, error) {
	header := map[string]string{"Metadata-Flavor": "Google"}
	values := map[string]string{}
	for _, path := range []string{"project/project-id", "instance/name", "instance/zone", "instance/machine-type"} {
		value, err := c.line(ctx, "/computeMetadata/v1/"+path, header)
		if err != nil {
			return Machine{}, err
		}
		values[path] = value[strings.LastIndex(value, "/")+1:]
	}
	zone, name := values["instance/zone"], values["instance/name"]
	m := Machine{Name: name, ProviderID: fmt.Sprintf("gce://%s/%s/%s", values["project/project-id"], zone, name), Zone: zone, Type: values["instance/machine-type"]}
	if i := strings.LastIndex(zone, "-"); i > 0 {
		m.Region = zone[:i]
	}
	return m, nil
}
