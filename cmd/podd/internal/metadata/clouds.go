package metadata

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// fetchOpenStack returns the metadata of an OpenStack server. The metadata contains no region.
func (c *client) fetchOpenStack(ctx context.Context) (Instance, error) {
	var server struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
		Zone string `json:"availability_zone"`
	}
	if err := c.getJSON(ctx, "/openstack/latest/meta_data.json", nil, &server); err != nil {
		return Instance{}, err
	}
	instanceType, err := c.getText(ctx, ec2Root+"meta-data/instance-type", nil)
	if err != nil && !errors.Is(err, errNotFound) { // not every OpenStack cloud serves this path
		return Instance{}, err
	}
	return Instance{Name: server.Name, ProviderID: "openstack:///" + server.UUID, Zone: server.Zone, Type: instanceType}, nil
}

// ec2Root is the parent of all paths of EC2.
const ec2Root = "/latest/"

// fetchEC2 returns the metadata of an EC2 instance. The name of the node is the first private DNS
// name of the instance.
func (c *client) fetchEC2(ctx context.Context) (Instance, error) {
	token, err := c.request(ctx, http.MethodPut, ec2Root+"api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
	if err != nil {
		return Instance{}, err
	}
	header := map[string]string{"X-aws-ec2-metadata-token": strings.TrimSpace(string(token))}
	var instance struct {
		ID     string `json:"instanceId"`
		Type   string `json:"instanceType"`
		Zone   string `json:"availabilityZone"`
		Region string `json:"region"`
	}
	if err := c.getJSON(ctx, ec2Root+"dynamic/instance-identity/document", header, &instance); err != nil {
		return Instance{}, err
	}
	names, err := c.getText(ctx, ec2Root+"meta-data/local-hostname", header)
	if err != nil {
		return Instance{}, err
	}
	name, _, _ := strings.Cut(names, " ")
	return Instance{Name: name, ProviderID: fmt.Sprintf("aws:///%s/%s", instance.Zone, instance.ID), Zone: instance.Zone, Region: instance.Region, Type: instance.Type}, nil
}

// fetchGCE returns the metadata of a Compute Engine instance. If a value is a path, such as
// projects/12345/zones/us-central1-a, only its last element is used. The name of a zone
// consists of the name of the region, a dash and a letter.
func (c *client) fetchGCE(ctx context.Context) (Instance, error) {
	header := map[string]string{"Metadata-Flavor": "Google"}
	values := map[string]string{}
	for _, path := range []string{"project/project-id", "instance/name", "instance/zone", "instance/machine-type"} {
		value, err := c.getText(ctx, "/computeMetadata/v1/"+path, header)
		if err != nil {
			return Instance{}, err
		}
		values[path] = value[strings.LastIndex(value, "/")+1:]
	}
	zone, name := values["instance/zone"], values["instance/name"]
	m := Instance{Name: name, ProviderID: fmt.Sprintf("gce://%s/%s/%s", values["project/project-id"], zone, name), Zone: zone, Type: values["instance/machine-type"]}
	if i := strings.LastIndex(zone, "-"); i > 0 {
		m.Region = zone[:i]
	}
	return m, nil
}
