package kube

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"podd/server"
)

// notTracked tells how this apply differs from an apiserver's.
const notTracked = "podd does not track which manager set which field: what is applied is merged over what is there, a field that is left out stays as it is, and nothing conflicts"

// apply merges a configuration over the object that is there, as a strategic
// merge patch does, or makes one of it. Field managers are not tracked, and the
// client is told so.
func (c *write) apply() error {
	if c.r.URL.Query().Get("fieldManager") == "" {
		return apierrors.NewBadRequest("PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch")
	}
	body, err := readBody(c.w, c.r)
	if err != nil {
		return err
	}
	text, err := yaml.YAMLToJSON(body)
	if err != nil {
		return apierrors.NewBadRequest("error decoding YAML: " + err.Error())
	}
	o, err := c.decoded(text, nil)
	if err != nil {
		return err
	}
	switch {
	case o.GetName() == "":
		o.SetName(c.i.Name)
	case o.GetName() != c.i.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%.80s) does not match the name on the URL (%s)", o.GetName(), c.i.Name))
	}
	if len(o.GetManagedFields()) > 0 {
		return apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	_, _, exists := c.at(c.res, c.key())
	if !exists && c.i.Subresource == "" {
		if o.GetUID() != "" {
			return apierrors.NewConflict(c.res.gr(), c.i.Name, fmt.Errorf("uid mismatch: the provided object specified uid %.80s, and no existing object was found", o.GetUID()))
		}
		return c.add(o)
	}
	c.warn(notTracked)
	p := patch{types.StrategicMergePatchType, text}
	return c.change(func(s stored) (server.Object, error) { return c.patched(p, s) })
}
