package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// stored is an object as it is written, and as podd reads it.
type stored struct {
	key     server.Key
	entry   *entry // as it is shown
	written server.Object
	text    []byte // of written
	read    Checked
}

// update replaces an object by the body.
func (c *write) update() error {
	o, err := c.object()
	if err != nil {
		return err
	}
	return c.change(func(stored) (server.Object, error) { return o, nil })
}

// patch changes some of an object.
func (c *write) patch() error {
	if patchType(c.r) == types.ApplyYAMLPatchType {
		return c.apply()
	}
	p, err := readPatch(c.w, c.r)
	if err != nil {
		return err
	}
	return c.change(func(s stored) (server.Object, error) { return c.patched(p, s) })
}

// patched is what a patch makes of an object as it was read.
func (c *write) patched(p patch, s stored) (server.Object, error) {
	text, err := p.apply(s.shown())
	if err != nil {
		return nil, err
	}
	return c.decoded(text, nil)
}

// shown is the object as clients know it: without what podd shows of a claim and
// its volume beside what is written.
func (s stored) shown() server.Object {
	o := s.read.Object.DeepCopyObject().(server.Object)
	o.SetUID(s.entry.object.GetUID())
	o.SetCreationTimestamp(s.entry.object.GetCreationTimestamp())
	o.SetResourceVersion(s.entry.object.GetResourceVersion())
	switch o := o.(type) {
	case *v1.Pod:
		was := s.entry.object.(*v1.Pod)
		o.Status, o.Spec.EphemeralContainers = was.Status, was.Spec.EphemeralContainers
	case *v1.PersistentVolumeClaim:
		o.Status = s.entry.object.(*v1.PersistentVolumeClaim).Status
	case *v1.PersistentVolume:
		o.Status = s.entry.object.(*v1.PersistentVolume).Status
	}
	return o
}

// change writes what wanted makes of an object. Nobody else writes meanwhile.
func (c *write) change(wanted func(stored) (server.Object, error)) error {
	done, err := c.turn()
	if err != nil {
		return err
	}
	defer done()
	s, err := c.stored(c.key())
	if err != nil {
		return err
	}
	o, err := wanted(s)
	if err != nil {
		return err
	}
	if err := c.meets(o, s); err != nil {
		return err
	}
	next, err := c.next(o, s)
	if err != nil {
		return err
	}
	return c.keep(s, next)
}

// keep writes what an object is to be from now on.
func (c *write) keep(s stored, next server.Object) error {
	checked, text, err := c.kept(next)
	switch {
	case err != nil:
		return err
	case unchanged(checked.Object, s.read.Object):
		return c.reply(http.StatusOK, s.entry)
	case checked.Version != s.read.Version:
		return c.forbid(s, "spec", "this update would end the pod and start it anew; delete it and create it again")
	}
	c.warn(checked.Warnings...)
	if c.dry {
		s.read = checked
		return c.reply(http.StatusOK, c.res.entry(item{s.key, s.shown()}, s.entry.rev))
	}
	if err := c.Manifests.Write(c.res.kind, s.key, text); err != nil {
		return fmt.Errorf("changing %s %q: %w", c.res.singular, s.key.Name, err)
	}
	e, err := c.shown(c.r.Context(), s.key, text, checked.Object)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, e)
}

// unchanged tells whether an object is what it was, whenever its managers say that they
// wrote: who applies the same stringData once more counts as one who changed it.
func unchanged(is, was server.Object) bool {
	now, then := is.GetManagedFields(), was.GetManagedFields()
	if len(now) != len(then) {
		return false
	}
	now = slices.Clone(now)
	for i := range now {
		now[i].Time = then[i].Time
	}
	is = is.DeepCopyObject().(server.Object)
	is.SetManagedFields(now)
	return equality.Semantic.DeepEqual(is, was)
}

// stored reads an object that the API has the file of, once it is shown as the file
// has it: who wrote that may have gone before. Else a change of the version before
// would undo it.
func (c *write) stored(key server.Key) (stored, error) {
	s := stored{key: key}
	var err error
	if s.entry, err = c.own(key); err != nil {
		return s, err
	}
	s.text, err = c.Manifests.Read(c.res.kind, key)
	if errors.Is(err, fs.ErrNotExist) {
		return s, apierrors.NewConflict(c.res.gr(), key.Name, errors.New("object is being deleted"))
	}
	s.written = c.res.blank()
	if err == nil {
		err = json.Unmarshal(s.text, s.written)
	}
	if err != nil {
		return s, fmt.Errorf("reading %s %q: %w", c.res.singular, key.Name, err)
	}
	if s.read, err = c.check(key.Name, s.text); err != nil {
		return s, err
	}
	s.entry, err = c.shown(c.r.Context(), key, s.text, s.read.Object)
	if errors.Is(err, errLate) {
		err = apierrors.NewConflict(c.res.gr(), key.Name, errors.New("an earlier change is not shown yet; nothing was changed now, try again"))
	}
	return s, err
}

// meets says whether an object may take the place of the one that is there: it is
// of the same name, and of the version and the uid that it says it is.
func (c *write) meets(o server.Object, s stored) error {
	if err := c.inPlace(o); err != nil {
		return err
	}
	was := s.entry.object
	switch {
	case o.GetName() != s.key.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%.80s) does not match the name on the URL (%s)", o.GetName(), s.key.Name))
	case o.GetUID() != "" && o.GetUID() != was.GetUID():
		return apierrors.NewConflict(c.res.gr(), s.key.Name, fmt.Errorf("precondition failed: UID in precondition: %.80s, UID in object meta: %s", o.GetUID(), was.GetUID()))
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != was.GetResourceVersion():
		return modified(c.res.gr(), s.key.Name)
	}
	return nil
}

// modified answers a change of an older version.
func modified(gr schema.GroupResource, name string) error {
	return apierrors.NewConflict(gr, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// next is what is to be written: the object that a client wants, but of a pod only
// what may be changed. What runs stays what it was made from.
func (c *write) next(o server.Object, s stored) (server.Object, error) {
	o.SetUID(s.written.GetUID())
	o.SetCreationTimestamp(s.written.GetCreationTimestamp())
	undecorate(o, s)
	checked, err := c.check(s.key.Name, text(o))
	if err != nil {
		return nil, err
	}
	managers, err := c.managers(s.shown(), o, checked.Object)
	if err != nil {
		return nil, err
	}
	next, err := c.permitted(o, checked.Object, s)
	if err == nil {
		next.SetManagedFields(managers)
	}
	return next, err
}

// permitted is what may be written of an object; is is the object as podd reads it.
func (c *write) permitted(o, is server.Object, s stored) (server.Object, error) {
	switch was := s.read.Object.(type) {
	case *v1.Pod:
		if c.i.Subresource == "resize" {
			return c.resized(s, was, is.(*v1.Pod))
		}
		return c.updated(s, was, is.(*v1.Pod))
	case *v1.ConfigMap:
		return o, c.fixedConfig(s, was, is.(*v1.ConfigMap))
	case *v1.Secret:
		return o, c.fixedSecret(s, was, is.(*v1.Secret))
	case *v1.PersistentVolumeClaim:
		return o, c.fixedClaim(s, was, is.(*v1.PersistentVolumeClaim))
	case *v1.PersistentVolume:
		return o, c.fixedVolume(s, was, is.(*v1.PersistentVolume))
	}
	return nil, fmt.Errorf("changing %s %q: nothing is known of what may be changed", c.res.singular, s.key.Name)
}

// undecorate takes from an object what podd shows of it and nobody wrote.
func undecorate(o server.Object, s stored) {
	switch o := o.(type) {
	case *v1.Pod:
		if equality.Semantic.DeepEqual(o.Spec.EphemeralContainers, s.entry.object.(*v1.Pod).Spec.EphemeralContainers) {
			o.Spec.EphemeralContainers = nil
		}
	case *v1.PersistentVolumeClaim:
		if o.Spec.VolumeName == s.entry.object.(*v1.PersistentVolumeClaim).Spec.VolumeName {
			o.Spec.VolumeName = s.read.Object.(*v1.PersistentVolumeClaim).Spec.VolumeName
		}
	case *v1.PersistentVolume:
		if shown := s.entry.object.(*v1.PersistentVolume).Spec.ClaimRef; o.Spec.ClaimRef != nil && shown != nil && *o.Spec.ClaimRef == *shown {
			o.Spec.ClaimRef = s.read.Object.(*v1.PersistentVolume).Spec.ClaimRef
		}
	}
}
