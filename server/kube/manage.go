package kube

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

// maxText bounds what is kept of an object, its managers among it.
const maxText = 4 << 20

// managing reads whose the fields are that a request changes.
func (c *write) managing(q url.Values) error {
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
		c.manager = program(c.r.UserAgent())
	}
	return nil
}

// program is the name that a User-Agent begins with, as far as a manager's may go.
func program(userAgent string) string {
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

// changes is what this request makes of an object that is there or, blank, is not.
func (c *write) changes(live server.Object) managed.Change {
	return managed.Change{Live: live, Manager: c.manager, Subresource: c.i.Subresource}
}

// managers are whose the fields are of an object once it takes the place of the
// live one; is is how podd reads it. A client may say so itself, which is how
// kubectl hands over what it applied itself.
func (c *write) managers(live, o, is server.Object) ([]metav1.ManagedFieldsEntry, error) {
	all := o.GetManagedFields()
	if !c.applied {
		next := is.DeepCopyObject().(server.Object)
		next.SetManagedFields(all)
		// An object whose fields cannot be told, since a list of it has an entry
		// twice, is written all the same, and is nobody's, as an apiserver has it.
		all, _ = c.fields.Update(c.changes(live), next)
	}
	if errs := validation.ValidateManagedFields(all, field.NewPath("metadata", "managedFields")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.res.gvk().GroupKind(), o.GetName(), errs)
	}
	return all, nil
}

// blank is an object that is not there yet.
func (c *write) blank() server.Object {
	o := c.res.blank()
	o.GetObjectKind().SetGroupVersionKind(c.res.gvk())
	return o
}

// managedNew gives a new object its managers, and returns it as podd reads it and
// as it is written.
func (c *write) managedNew(o server.Object) (Checked, []byte, error) {
	checked, err := c.check(o.GetName(), text(o))
	if err != nil {
		return checked, nil, err
	}
	is := checked.Object
	if p, ok := is.(*v1.Pod); ok { // the machine's choice is nobody's
		p.Spec.NodeName = o.(*v1.Pod).Spec.NodeName
	}
	managers, err := c.managers(c.blank(), o, is)
	if err != nil {
		return checked, nil, err
	}
	o.SetManagedFields(managers)
	return c.kept(o)
}

// kept is how an object is written, and how podd reads that. One that is too large
// with its managers loses them, but not to a configuration, which is refused then.
func (c *write) kept(o server.Object) (Checked, []byte, error) {
	b := text(o)
	if len(b) > maxText && (c.applied || o.GetManagedFields() == nil) {
		return Checked{}, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q would take %d bytes, of at most %d", c.res.singular, o.GetName(), len(b), maxText))
	}
	checked, err := c.check(o.GetName(), b)
	if (err != nil || len(b) > maxText) && !c.applied && o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
		return c.kept(o)
	}
	return checked, b, err
}
