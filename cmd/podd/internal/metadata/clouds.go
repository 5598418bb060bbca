package metadata

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// openstack: the node has the server's name, and the region is not told.
func (c *client) openstack(ctx context.Context) (Machine, error) {
	var told struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
		Zone string `json:"availability_zone"`
	}
	if err := c.object(ctx, "/openstack/latest/meta_data.json", nil, &told); err != nil {
		return Machine{}, err
	}
	kind, err := c.word(ctx, ec2Root+"meta-data/instance-type", nil)
	if err != nil && !errors.Is(err, errNone) { // not every OpenStack has it
		return Machine{}, err
	}
	return Machine{Name: told.Name, ProviderID: "openstack:///" + told.UUID, Zone: told.Zone, Type: kind}, nil
}

const ec2Root = "/latest/"

// ec2: the node has the machine's private DNS name, the first where there are several.
func (c *client) ec2(ctx context.Context) (Machine, error) {
	token, err := c.ask(ctx, http.MethodPut, ec2Root+"api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
	if err != nil {
		return Machine{}, err
	}
	header := map[string]string{"X-aws-ec2-metadata-token": strings.TrimSpace(string(token))}
	var told struct {
		ID     string `json:"instanceId"`
		Type   string `json:"instanceType"`
		Zone   string `json:"availabilityZone"`
		Region string `json:"region"`
	}
	if err := c.object(ctx, ec2Root+"dynamic/instance-identity/document", header, &told); err != nil {
		return Machine{}, err
	}
	names, err := c.word(ctx, ec2Root+"meta-data/local-hostname", header)
	if err != nil {
		return Machine{}, err
	}
	name, _, _ := strings.Cut(names, " ")
	return Machine{Name: name, ProviderID: fmt.Sprintf("aws:///%s/%s", told.Zone, told.ID), Zone: told.Zone, Region: told.Region, Type: told.Type}, nil
}

// gce tells zones and types as paths. A zone is its region's, with a letter more.
func (c *client) gce(ctx context.Context) (Machine, error) {
	header := map[string]string{"Metadata-Flavor": "Google"}
	told := map[string]string{}
	for _, path := range []string{"project/project-id", "instance/name", "instance/zone", "instance/machine-type"} {
		word, err := c.word(ctx, "/computeMetadata/v1/"+path, header)
		if err != nil {
			return Machine{}, err
		}
		told[path] = word[strings.LastIndex(word, "/")+1:]
	}
	zone, name := told["instance/zone"], told["instance/name"]
	m := Machine{Name: name, ProviderID: fmt.Sprintf("gce://%s/%s/%s", told["project/project-id"], zone, name), Zone: zone, Type: told["instance/machine-type"]}
	if i := strings.LastIndex(zone, "-"); i > 0 {
		m.Region = zone[:i]
	}
	return m, nil
}
