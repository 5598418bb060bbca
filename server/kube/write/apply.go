package write

import (
	"bytes"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"podd/server"
)

// maxFields limits the number of fields in a configuration, because podd rejects larger
// manifests and the cost of merging is quadratic.
const maxFields = 100_000

// configuration is the body of a server-side apply. It contains the fields that the manager
// sets.
type configuration map[string]any

// apply merges a configuration into the existing object, or creates the object.
func (c *call) apply() error {
	config, err := c.readConfiguration()
	if err != nil {
		return err
	}
	if _, _, exists := c.origin(c.res, c.key()); exists || c.i.Subresource != "" {
		return c.change(func(s storedObject) (server.Object, error) { return c.merge(s.servedObject(), config) })
	}
	o, err := c.merge(c.newObject(), config)
	if err != nil {
		return err
	}
	if o.GetUID() != "" {
		return apierrors.NewConflict(c.res.GroupResource(), c.i.Name, fmt.Errorf("uid mismatch: the provided object specified uid %.80s, and no existing object was found", o.GetUID()))
	}
	return c.createObject(o)
}

// readConfiguration reads and validates the body.
func (c *call) readConfiguration() (configuration, error) {
	body, err := readBody(c.w, c.r)
	if err != nil {
		return nil, err
	}
	text, duplicates, err := yamlToJSON(body)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(",")); n > maxFields {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("too many fields and items in the configuration: %d (limit %d)", n, maxFields))
	}
	o, err := c.decodeJSON(text, duplicates)
	if err != nil {
		return nil, err
	}
	if o.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if name := o.GetName(); name != "" && name != c.i.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%.80s) does not match the name on the URL (%s)", name, c.i.Name))
	}
	var config configuration
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &config); err != nil {
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	return config, nil
}

// merge returns the result of merging a configuration into an object, with its
// managed fields.
func (c *call) merge(live server.Object, config configuration) (server.Object, error) {
	text, managers, err := c.fields.Apply(c.newChange(live), config, c.force)
	if err != nil {
		return nil, err
	}
	o, err := c.decodeJSON(text, nil)
	if err != nil {
		return nil, err
	}
	o.SetManagedFields(managers)
	if o.GetName() == "" {
		o.SetName(c.i.Name)
	}
	c.hasManagedFields = true
	return o, nil
}

// yamlToJSON converts YAML to JSON. duplicates contains an error for each duplicate field.
func yamlToJSON(body []byte) (text []byte, duplicates []error, err error) {
	if text, err = yaml.YAMLToJSON(body); err != nil {
		return nil, nil, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
	}
	if _, err := yaml.YAMLToJSONStrict(body); err != nil {
		duplicates = []error{err}
	}
	return text, duplicates, nil
}
