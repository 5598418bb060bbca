package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/kube/resource"
)

// A storedObject is an object that is stored in a file, with the content of the file.
type storedObject struct {
	key        server.Key
	entry      *resource.Entry // the object in the View
	fileObject server.Object   // the object in the file, without defaults
	text       []byte          // content of the file, from which fileObject is decoded
	parsed     ParsedManifest
}

// update replaces an object with the body.
func (c *call) update() error {
	o, err := c.decodeObject()
	if err != nil {
		return err
	}
	return c.change(func(storedObject) (server.Object, error) { return o, nil })
}

// patch applies a patch or a configuration to an object.
func (c *call) patch() error {
	if patchType(c.r) == types.ApplyYAMLPatchType {
		return c.apply()
	}
	p, err := readPatch(c.w, c.r)
	if err != nil {
		return err
	}
	return c.change(func(s storedObject) (server.Object, error) { return c.applyPatch(p, s) })
}

// applyPatch returns the result of applying a patch to an object.
func (c *call) applyPatch(p patch, s storedObject) (server.Object, error) {
	text, err := p.apply(s.servedObject())
	if err != nil {
		return nil, err
	}
	return c.decodeJSON(text, nil)
}

// servedObject returns the object that clients read. It does not contain the fields that podd adds
// to the spec of claims and volumes, because these fields are not in the file.
func (s storedObject) servedObject() server.Object {
	o := s.parsed.Object.DeepCopyObject().(server.Object)
	o.SetUID(s.entry.Object.GetUID())
	o.SetCreationTimestamp(s.entry.Object.GetCreationTimestamp())
	o.SetResourceVersion(s.entry.Object.GetResourceVersion())
	switch o := o.(type) {
	case *v1.Pod:
		servedPod := s.entry.Object.(*v1.Pod)
		o.Status, o.Spec.EphemeralContainers = servedPod.Status, servedPod.Spec.EphemeralContainers
	case *v1.PersistentVolumeClaim:
		o.Status = s.entry.Object.(*v1.PersistentVolumeClaim).Status
	case *v1.PersistentVolume:
		o.Status = s.entry.Object.(*v1.PersistentVolume).Status
	}
	return o
}

// change calls modify with the stored object, and writes the object that modify returns. No other
// write is made until change returns.
func (c *call) change(modify func(storedObject) (server.Object, error)) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	s, err := c.readStored(c.key())
	if err != nil {
		return err
	}
	o, err := modify(s)
	if err != nil {
		return err
	}
	if err := c.checkIdentity(o, s); err != nil {
		return err
	}
	newObject, err := c.withAllowedChanges(o, s)
	if err != nil {
		return err
	}
	return c.storeNext(s, newObject)
}

// storeNext writes the new version of an object, and responds with the object.
func (c *call) storeNext(s storedObject, newObject server.Object) error {
	parsed, text, err := c.encodeManifest(newObject)
	switch {
	case err != nil:
		return err
	case isUnchanged(parsed.Object, s.parsed.Object):
		return c.reply(http.StatusOK, s.entry)
	case parsed.Version != s.parsed.Version:
		return c.newForbiddenError(s, "spec", "this update would require a restart of the pod; delete it and create it again")
	}
	c.warn(parsed.Warnings...)
	if c.isDryRun {
		s.parsed = parsed
		return c.reply(http.StatusOK, c.res.NewEntry(resource.Item{Key: s.key, Object: s.servedObject()}, s.entry.Rev))
	}
	if err := c.manifests.Write(c.res.Kind, s.key, text); err != nil {
		return fmt.Errorf("changing %s %q: %w", c.res.Singular, s.key.Name, err)
	}
	e, err := c.waitUntilShown(c.r.Context(), s.key, text, parsed.Object)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, e)
}

// isUnchanged reports whether two versions of an object are equal except for the times of their
// managed fields. It ignores these times, because they also change when a client applies a Secret
// again with the same stringData.
func isUnchanged(newObject, oldObject server.Object) bool {
	newManagers, oldManagers := newObject.GetManagedFields(), oldObject.GetManagedFields()
	if len(newManagers) != len(oldManagers) {
		return false
	}
	newManagers = slices.Clone(newManagers)
	for i := range newManagers {
		newManagers[i].Time = oldManagers[i].Time
	}
	newObject = newObject.DeepCopyObject().(server.Object)
	newObject.SetManagedFields(newManagers)
	return equality.Semantic.DeepEqual(newObject, oldObject)
}

// readStored reads an object from the API's file. It waits until the View contains the content of
// the file. This is necessary because the last writer may have disconnected before podd read the
// file. If readStored did not wait, the caller would change the older version in the View, and this
// change would undo the last write.
func (c *call) readStored(key server.Key) (storedObject, error) {
	s := storedObject{key: key}
	var err error
	if s.entry, err = c.writableEntry(key); err != nil {
		return s, err
	}
	s.text, err = c.manifests.Read(c.res.Kind, key)
	if errors.Is(err, fs.ErrNotExist) {
		return s, apierrors.NewConflict(c.res.GroupResource(), key.Name, errors.New("object is being deleted"))
	}
	s.fileObject = c.res.NewObject()
	if err == nil {
		err = json.Unmarshal(s.text, s.fileObject)
	}
	if err != nil {
		return s, fmt.Errorf("reading %s %q: %w", c.res.Singular, key.Name, err)
	}
	if s.parsed, err = c.parseManifest(key.Name, s.text); err != nil {
		return s, err
	}
	s.entry, err = c.waitUntilShown(c.r.Context(), key, s.text, s.parsed.Object)
	if errors.Is(err, errNotShown) {
		err = apierrors.NewConflict(c.res.GroupResource(), key.Name, errors.New("an earlier change has not been applied yet; nothing was changed, try again"))
	}
	return s, err
}

// checkIdentity returns an error unless o has the name of the stored object and, if o
// specifies them, its resourceVersion and UID.
func (c *call) checkIdentity(o server.Object, s storedObject) error {
	if err := c.setNamespace(o); err != nil {
		return err
	}
	oldObject := s.entry.Object
	switch {
	case o.GetName() != s.key.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%.80s) does not match the name on the URL (%s)", o.GetName(), s.key.Name))
	case o.GetUID() != "" && o.GetUID() != oldObject.GetUID():
		return apierrors.NewConflict(c.res.GroupResource(), s.key.Name, fmt.Errorf("precondition failed: UID in precondition: %.80s, UID in object meta: %s", o.GetUID(), oldObject.GetUID()))
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != oldObject.GetResourceVersion():
		return newConflictError(c.res.GroupResource(), s.key.Name)
	}
	return nil
}

// newConflictError returns the API's error Conflict for a change of an older version.
func newConflictError(gr schema.GroupResource, name string) error {
	return apierrors.NewConflict(gr, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// withAllowedChanges returns the object to write. For a pod, it is the stored pod with the allowed
// changes of o, because all other fields of a running pod must not change. For other kinds,
// it is o.
func (c *call) withAllowedChanges(o server.Object, s storedObject) (server.Object, error) {
	o.SetUID(s.fileObject.GetUID())
	o.SetCreationTimestamp(s.fileObject.GetCreationTimestamp())
	removeServedFields(o, s)
	parsed, err := c.parseManifest(s.key.Name, manifestText(o))
	if err != nil {
		return nil, err
	}
	managers, err := c.managedFields(s.servedObject(), o, parsed.Object)
	if err != nil {
		return nil, err
	}
	newObject, err := c.checkUpdate(o, parsed.Object, s)
	if err == nil {
		newObject.SetManagedFields(managers)
	}
	return newObject, err
}

// checkUpdate validates the change and returns the object to write. objectWithDefaults is o with
// defaults.
func (c *call) checkUpdate(o, objectWithDefaults server.Object, s storedObject) (server.Object, error) {
	switch oldObject := s.parsed.Object.(type) {
	case *v1.Pod:
		if c.i.Subresource == "resize" {
			return c.newResizedPod(s, oldObject, objectWithDefaults.(*v1.Pod))
		}
		return c.newUpdatedPod(s, oldObject, objectWithDefaults.(*v1.Pod))
	case *v1.ConfigMap:
		return o, c.checkConfigMap(s, oldObject, objectWithDefaults.(*v1.ConfigMap))
	case *v1.Secret:
		return o, c.checkSecret(s, oldObject, objectWithDefaults.(*v1.Secret))
	case *v1.PersistentVolumeClaim:
		return o, c.checkClaim(s, oldObject, objectWithDefaults.(*v1.PersistentVolumeClaim))
	case *v1.PersistentVolume:
		return o, c.checkVolume(s, oldObject, objectWithDefaults.(*v1.PersistentVolume))
	case *storage.CSIDriver:
		return o, c.checkCSIDriver(s, oldObject, objectWithDefaults.(*storage.CSIDriver))
	case *certificates.ClusterTrustBundle:
		return o, nil // no check: only signerName must not change, and the name of the object determines it
	}
	return nil, fmt.Errorf("changing %s %q: updates are not supported", c.res.Singular, s.key.Name)
}

// removeServedFields removes from o the fields that podd adds to the served object and that are not
// in the file.
func removeServedFields(o server.Object, s storedObject) {
	switch o := o.(type) {
	case *v1.Pod:
		if equality.Semantic.DeepEqual(o.Spec.EphemeralContainers, s.entry.Object.(*v1.Pod).Spec.EphemeralContainers) {
			o.Spec.EphemeralContainers = nil
		}
	case *v1.PersistentVolumeClaim:
		if o.Spec.VolumeName == s.entry.Object.(*v1.PersistentVolumeClaim).Spec.VolumeName {
			o.Spec.VolumeName = s.parsed.Object.(*v1.PersistentVolumeClaim).Spec.VolumeName
		}
	case *v1.PersistentVolume:
		if servedRef := s.entry.Object.(*v1.PersistentVolume).Spec.ClaimRef; o.Spec.ClaimRef != nil && servedRef != nil && *o.Spec.ClaimRef == *servedRef {
			o.Spec.ClaimRef = s.parsed.Object.(*v1.PersistentVolume).Spec.ClaimRef
		}
	}
}
