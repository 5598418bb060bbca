package kube

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
)

// A generated name ends in so many random characters, and is as long as a label
// may be at most.
const (
	randomLength     = 5
	longestGenerated = 63 - randomLength
)

func (c *write) create() error {
	o, err := c.object()
	if err != nil {
		return err
	}
	return c.add(o)
}

// add makes an object that is not there yet.
func (c *write) add(o server.Object) error {
	if err := c.inPlace(o); err != nil {
		return err
	}
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if base := o.GetGenerateName(); o.GetName() == "" && base != "" {
		o.SetName(base[:min(len(base), longestGenerated)] + rand.String(randomLength))
	}
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.NewTime(c.now().Truncate(time.Second)))
	checked, text, err := c.managedNew(o)
	if err != nil {
		return err
	}
	done, err := c.turn()
	if err != nil {
		return err
	}
	defer done()
	key := server.Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	if err := c.free(key); err != nil {
		return err
	}
	c.warn(checked.Warnings...)
	if c.dry {
		return c.reply(http.StatusCreated, c.res.entry(item{key, checked.Object}, c.State.View().Revision))
	}
	if err := c.Manifests.Write(c.res.kind, key, text); err != nil {
		return fmt.Errorf("creating %s %q: %w", c.res.singular, key.Name, err)
	}
	// Also for a client that went: a file that is overruled must not stay, and run
	// once nothing overrules it.
	e, err := c.shown(context.WithoutCancel(c.r.Context()), key, text, checked.Object)
	if conflict := (*overruled)(nil); errors.As(err, &conflict) {
		return errors.Join(err, c.Manifests.Remove(c.res.kind, key))
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusCreated, e)
}

// inPlace says whether an object is in the namespace of the path, and sets it where
// it is left out.
func (c *write) inPlace(o server.Object) error {
	switch {
	case !c.res.namespaced:
		return nil
	case o.GetNamespace() == "":
		o.SetNamespace(c.i.Namespace)
	case o.GetNamespace() != c.i.Namespace:
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object does not match the namespace sent on the request: got %.80q, want %.80q", o.GetNamespace(), c.i.Namespace))
	}
	return nil
}

// free says whether there is nothing of a name yet, in any source.
func (c *write) free(key server.Key) error {
	path, _, exists := c.at(c.res, key)
	if !exists {
		_, err := c.Manifests.Read(c.res.kind, key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("creating %s %q: %w", c.res.singular, key.Name, err)
		}
		path = c.Manifests.Path(c.res.kind, key)
	}
	err := apierrors.NewAlreadyExists(c.res.gr(), key.Name)
	p := c.State.View().Pod(key)
	switch {
	case c.res.name == "pods" && p != nil && p.Pod.DeletionTimestamp != nil:
		err.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", err.ErrStatus.Message)
	case path != "" && path != c.Manifests.Path(c.res.kind, key):
		err.ErrStatus.Message += ": it is written in " + path
	}
	return err
}

func (a *API) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}
