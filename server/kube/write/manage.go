package write

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/server"
	"podd/server/kube/managed"
)

// maxManifestSize is the maximum size in bytes of a stored object, including its managed fields.
const maxManifestSize = 4 << 20

// readManager reads the field manager from the parameters of a request.
func (c *call) readManager(q url.Values) error {
	o := &metav1.PatchOptions{FieldManager: q.Get("fieldManager")}
	if q.Has("force") {
		c.force = q.Get("force") != "0" && !strings.EqualFold(q.Get("force"), "false")
		o.Force = &c.force
	}
	var errs field.ErrorList
	if c.i.Verb == "patch" {
		errs = validation.ValidatePatchOptions(o, patchType(c.r))
	} else {
		errs = validation.ValidateFieldManager(o.FieldManager, field.NewPath("fieldManager"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(metav1.Kind("PatchOptions"), "", errs)
	}
	if c.manager = o.FieldManager; c.manager == "" {
		c.manager = programName(c.r.UserAgent())
	}
	return nil
}

// programName returns the program name at the beginning of a User-Agent, shortened to the
// maximum length of a manager's name and without unprintable characters.
func programName(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	var b strings.Builder
	for _, r := range name {
		switch {
		case !unicode.IsPrint(r):
		case b.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength:
			return b.String()
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// newChange returns the parameters of the change that this request makes. liveObject is the current
// object; if the object does not exist yet, liveObject must be the result of newObject.
func (c *call) newChange(liveObject server.Object) managed.Change {
	return managed.Change{Live: liveObject, Manager: c.manager, Subresource: c.i.Subresource}
}

// managedFields returns the managed fields of o, which replaces liveObject. objectWithDefaults is o
// with defaults. If the client has changed the managed fields, the result is based on the client's
// managed fields, because kubectl changes them to migrate from client-side apply.
func (c *call) managedFields(liveObject, o, objectWithDefaults server.Object) ([]metav1.ManagedFieldsEntry, error) {
	managers := o.GetManagedFields()
	if !c.hasManagedFields {
		newObject := objectWithDefaults.DeepCopyObject().(server.Object)
		newObject.SetManagedFields(managers)
		// Ignore the error. Tracking fails for an object with duplicate entries in a list of type
		// map or set. As in an API server, this object is written without managers.
		managers, _ = c.fields.Update(c.newChange(liveObject), newObject)
	}
	if errs := validation.ValidateManagedFields(managers, field.NewPath("metadata", "managedFields")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.res.GroupVersionKind().GroupKind(), o.GetName(), errs)
	}
	return managers, nil
}

// newObject returns an empty object of the resource's kind.
func (c *call) newObject() server.Object {
	o := c.res.NewObject()
	o.GetObjectKind().SetGroupVersionKind(c.res.GroupVersionKind())
	return o
}

// encodeNewObject sets the managed fields of a new object. It returns the object as podd
// parses it, and the text of its file.
func (c *call) encodeNewObject(o server.Object) (ParsedManifest, []byte, error) {
	parsed, err := c.parseManifest(o.GetName(), manifestText(o))
	if err != nil {
		return parsed, nil, err
	}
	objectWithDefaults := parsed.Object
	if p, ok := objectWithDefaults.(*v1.Pod); ok { // ignore the node's name that podd has set, so that no manager owns this field
		p.Spec.NodeName = o.(*v1.Pod).Spec.NodeName
	}
	managers, err := c.managedFields(c.newObject(), o, objectWithDefaults)
	if err != nil {
		return parsed, nil, err
	}
	o.SetManagedFields(managers)
	return c.encodeManifest(o)
}

// encodeManifest returns the object as podd parses it, and the text of its file. If the text is too
// large, encodeManifest removes the managed fields. For a server-side apply, which needs them, it
// returns an error instead.
func (c *call) encodeManifest(o server.Object) (ParsedManifest, []byte, error) {
	b := manifestText(o)
	if len(b) > maxManifestSize && (c.hasManagedFields || o.GetManagedFields() == nil) {
		return ParsedManifest{}, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q is too large: %d bytes (limit %d)", c.res.Singular, o.GetName(), len(b), maxManifestSize))
	}
	parsed, err := c.parseManifest(o.GetName(), b)
	if (err != nil || len(b) > maxManifestSize) && !c.hasManagedFields && o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
		return c.encodeManifest(o)
	}
	return parsed, b, err
}
