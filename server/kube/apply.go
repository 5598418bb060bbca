package kube

import (
	"bytes"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"podd/server"
)

// maxFields bounds a configuration: podd reads no manifest of more, and what it
// takes to merge grows with the square.
const maxFields = 100_000

// configuration is the body of a server-side apply: the fields that its manager
// wants to be as it says.
type configuration map[string]any

// apply merges a configuration into the object that is there, or makes one of it.
func (c *write) apply() error {
	config, err := c.configuration()
	if err != nil {
		return err
	}
	if _, _, exists := c.at(c.res, c.key()); exists || c.i.Subresource != "" {
		return c.change(func(s stored) (server.Object, error) { return c.merged(s.shown(), config) })
	}
	o, err := c.merged(c.blank(), config)
	if err != nil {
		return err
	}
	if o.GetUID() != "" {
		return apierrors.NewConflict(c.res.gr(), c.i.Name, fmt.Errorf("uid mismatch: the provided object specified uid %.80s, and no existing object was found", o.GetUID()))
	}
	return c.add(o)
}

// configuration reads the body, which must be such an object.
func (c *write) configuration() (configuration, error) {
	body, err := readBody(c.w, c.r)
	if err != nil {
		return nil, err
	}
	text, twice, err := fromYAML(body)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(",")); n > maxFields {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the configuration has %d fields and items, of at most %d", n, maxFields))
	}
	o, err := c.decoded(text, twice)
	if err != nil {
		return nil, err
	}
	if o.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if got := o.GetName(); got != "" && got != c.i.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%.80s) does not match the name on the URL (%s)", got, c.i.Name))
	}
	var config configuration
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &config); err != nil {
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	return config, nil
}

// merged is what a configuration makes of an object, with its managers.
func (c *write) merged(live server.Object, config configuration) (server.Object, error) {
	text, managers, err := c.fields.Apply(c.changes(live), config, c.force)
	if err != nil {
		return nil, err
	}
	o, err := c.decoded(text, nil)
	if err != nil {
		return nil, err
	}
	o.SetManagedFields(managers)
	if o.GetName() == "" {
		o.SetName(c.i.Name)
	}
	c.applied = true
	return o, nil
}

// fromYAML is JSON of YAML, and what stands twice in it.
func fromYAML(body []byte) (text []byte, twice []error, err error) {
	if text, err = yaml.YAMLToJSON(body); err != nil {
		return nil, nil, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
	}
	if _, err := yaml.YAMLToJSONStrict(body); err != nil {
		twice = []error{err}
	}
	return text, twice, nil
}
