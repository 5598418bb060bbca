package write

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"podd/server"
	"podd/server/kube/resource"
)

// A generated name consists of a base, which is cut to maxGeneratedBase characters, and
// randomLength random characters. It is at most as long as a label value.
const (
	randomLength     = 5
	maxGeneratedBase = 63 - randomLength
)

func (c *call) create() error {
	o, err := c.decodeObject()
	if err != nil {
		return err
	}
	return c.createObject(o)
}

// createObject validates an object, stores it in a new file, and responds when the View contains
// it. A dry run only validates the object.
func (c *call) createObject(o server.Object) error {
	if err := c.setNamespace(o); err != nil {
		return err
	}
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if base := o.GetGenerateName(); o.GetName() == "" && base != "" {
		o.SetName(base[:min(len(base), maxGeneratedBase)] + rand.String(randomLength))
	}
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.NewTime(c.now().Truncate(time.Second)))
	parsed, text, err := c.encodeNewObject(o)
	if err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	key := server.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	if err := c.checkNameFree(key); err != nil {
		return err
	}
	c.warn(parsed.Warnings...)
	if c.isDryRun {
		return c.reply(http.StatusCreated, c.res.NewEntry(resource.Item{Key: key, Object: parsed.Object}, c.state.View().Revision))
	}
	if err := c.manifests.Write(c.res.Kind, key, text); err != nil {
		return fmt.Errorf("creating %s %q: %w", c.res.Singular, key.Name, err)
	}
	// If another source contains the same object, the file must be removed, even if the client has
	// disconnected. Otherwise its object would be created as soon as the object of the other source
	// is deleted.
	e, err := c.waitUntilShown(context.WithoutCancel(c.r.Context()), key, text, parsed.Object)
	if overruled := (*overruledError)(nil); errors.As(err, &overruled) {
		return errors.Join(err, c.manifests.Remove(c.res.Kind, key))
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusCreated, e)
}

// setNamespace sets the namespace of an object to the namespace in the path. It returns an
// error if the object already has another namespace.
func (c *call) setNamespace(o server.Object) error {
	switch {
	case !c.res.Namespaced:
		return nil
	case o.GetNamespace() == "":
		o.SetNamespace(c.i.Namespace)
	case o.GetNamespace() != c.i.Namespace:
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object does not match the namespace sent on the request: %.80q in the object, %.80q in the request", o.GetNamespace(), c.i.Namespace))
	}
	return nil
}

// checkNameFree returns an error if any source, or the API's own directory, contains an object with
// the key.
func (c *call) checkNameFree(key server.Key) error {
	path, _, exists := c.origin(c.res, key)
	if !exists {
		_, err := c.manifests.Read(c.res.Kind, key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("creating %s %q: %w", c.res.Singular, key.Name, err)
		}
		path = c.manifests.Path(c.res.Kind, key)
	}
	err := apierrors.NewAlreadyExists(c.res.GroupResource(), key.Name)
	p := c.state.View().Pod(key)
	switch {
	case c.res.Name == "pods" && p != nil && p.Pod.DeletionTimestamp != nil:
		err.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", err.ErrStatus.Message)
	case path != "" && path != c.manifests.Path(c.res.Kind, key):
		err.ErrStatus.Message += ": it is defined in " + path
	}
	return err
}
